#include "test/reference/Interpreter.h"

using namespace mlir;
using namespace msc::net;

namespace msc::reference {

namespace {
std::vector<int64_t> shapeOfValue(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return {shape.begin(), shape.end()};
}

/// The constant that an initializer {kind, a, b} gives to every element, if it is one.
std::optional<double> constantInitializer(DictionaryAttr initializer) {
  auto kind = initializer.getAs<StringAttr>("kind");
  auto value = initializer.getAs<FloatAttr>("a");
  if (!kind)
    return std::nullopt;
  if (kind == "zeros" || kind == "ones")
    return kind == "ones" ? 1 : 0;
  return kind == "constant" && value ? std::optional(value.getValueAsDouble()) : std::nullopt;
}

/// The value of a schedule at the first step, for kinds whose formula is simple.
std::optional<double> firstOfSchedule(DictionaryAttr schedule) {
  auto kind = schedule.getAs<StringAttr>("kind");
  auto values = schedule.getAs<ArrayAttr>("values");
  if (!kind || !values || values.empty() || schedule.get("warmup"))
    return std::nullopt;
  double first = cast<FloatAttr>(values[0]).getValueAsDouble();
  if (kind == "correction")
    return 1 / (1 - first);
  if (kind == "cycle")
    return 0;
  return kind == "constant" ? std::optional(first) : std::nullopt;
}

/// Binds values to the tensors given for their names.
struct Binder {
  const Tensors &given;
  Step &step;

  LogicalResult bind(Value value, StringRef name, std::optional<double> otherwise = std::nullopt) {
    std::vector<int64_t> shape = shapeOfValue(value);
    auto at = given.find(name.str());
    if (at == given.end() && !otherwise)
      return emitError(value.getLoc(), "no tensor is given for '") << name << "'";
    Tensor tensor = at == given.end() ? Tensor(shape, *otherwise) : at->second;
    if (tensor.shape != shape)
      return emitError(value.getLoc(), "the tensor given for '") << name << "' has another shape";
    step.values[value] = std::move(tensor);
    return success();
  }
};

/// Values that no operator computes. Null optional: not such a value.
std::optional<LogicalResult> bindSource(Binder &binder, Operation &op) {
  if (auto param = dyn_cast<ParamOp>(op))
    return binder.bind(param.getValue(), param.getName(), constantInitializer(param.getInitializer()));
  if (auto scalar = dyn_cast<ScalarOp>(op))
    return binder.bind(scalar.getValue(), scalar.getName(), firstOfSchedule(scalar.getSchedule()));
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    binder.step.values[constant.getValue()] =
        Tensor(shapeOfValue(constant.getValue()), constant.getSplat().convertToDouble());
    return success();
  }
  return std::nullopt;
}
} // namespace

Interpreter::Interpreter() {
  addProducts(table);
  addPointwise(table);
  addReductions(table);
  addMovement(table);
  addSelections(table);
  addLosses(table);
  addNormalisations(table);
  addLookups(table);
  addAttention(table);
  addPooling(table);
  addConvolutions(table);
  addOptimizers(table);
  addRandom(table);
  addRanks(table);
}

std::vector<Tensor> Interpreter::inputsOf(Operation *op, const llvm::DenseMap<Value, Tensor> &values) {
  std::vector<Tensor> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(values.lookup(operand));
  if (auto dropout = dyn_cast<DropoutOp>(op); dropout && dropout.getCounter())
    for (auto param : op->getParentOfType<NetworkOp>().getBody().front().getOps<ParamOp>())
      if (param.getName() == dropout.getCounter())
        inputs.push_back(values.lookup(param.getValue()));
  return inputs;
}

std::vector<Tensor> Interpreter::evaluate(Operation *op, const std::vector<Tensor> &operands) const {
  return table.lookup(op->getName().stripDialect())(op, operands);
}

FailureOr<Step> Interpreter::run(NetworkOp network, const Tensors &given) const {
  Step step;
  Binder binder{given, step};
  Block &block = network.getBody().front();
  for (Value input : block.getArguments())
    if (failed(binder.bind(input, getValueName(input))))
      return failure();
  for (Operation &op : block) {
    if (std::optional<LogicalResult> bound = bindSource(binder, op)) {
      if (failed(*bound))
        return failure();
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      std::string name = update.getParameter().getDefiningOp<ParamOp>().getName().str();
      step.updated[name] = step.values[update.getNewValue()];
    } else if (auto results = dyn_cast<ReturnOp>(op)) {
      for (auto [value, name] : llvm::zip(results.getValues(), results.getNames().getAsValueRange<StringAttr>()))
        step.outputs[name.str()] = step.values[value];
    } else {
      if (!knows(op.getName().stripDialect()))
        return op.emitError("the reference does not know '") << op.getName().stripDialect() << "'";
      for (auto [value, tensor] : llvm::zip(op.getResults(), evaluate(&op, inputsOf(&op, step.values))))
        step.values[value] = tensor;
    }
  }
  return step;
}

} // namespace msc::reference
