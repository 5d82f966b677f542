// From gradients to new parameters: what the optimizers say, and one step of them per parameter.
#include "passes/autodiff/Passes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;
using msc::autodiff::Optimizer;

//===-- reading -----------------------------------------------------------===//

namespace {
/// One option of an optimizer: a number or a flag.
struct OptimizerField {
  StringRef name;
  double Optimizer::*number = nullptr;
  bool Optimizer::*flag = nullptr;
};
} // namespace

/// The options in MindSpore's positional order (without the parameters themselves).
static ArrayRef<OptimizerField> fieldsOf(StringRef kind) {
  static const OptimizerField momentum[] = {{"learning_rate", &Optimizer::learningRate},
                                            {"momentum", &Optimizer::momentum},
                                            {"weight_decay", &Optimizer::weightDecay},
                                            {"loss_scale", &Optimizer::lossScale},
                                            {"use_nesterov", nullptr, &Optimizer::nesterov}};
  static const OptimizerField sgd[] = {
      {"learning_rate", &Optimizer::learningRate}, {"momentum", &Optimizer::momentum},
      {"dampening", &Optimizer::dampening},        {"weight_decay", &Optimizer::weightDecay},
      {"nesterov", nullptr, &Optimizer::nesterov}, {"loss_scale", &Optimizer::lossScale}};
  if (kind == "Momentum")
    return momentum;
  return kind == "SGD" ? ArrayRef<OptimizerField>(sgd) : ArrayRef<OptimizerField>();
}

static std::optional<double> numberOf(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto number = dyn_cast<IntegerAttr>(attribute); number && !isa<BoolAttr>(attribute))
    return static_cast<double>(number.getInt());
  return std::nullopt;
}

static LogicalResult setField(Optimizer &optimizer, const OptimizerField &field, Attribute value, Location location) {
  auto flag = dyn_cast<BoolAttr>(value);
  std::optional<double> number = numberOf(value);
  if (field.number ? !number : !flag)
    return emitError(location, "'") << field.name << "' of '" << optimizer.kind << "' is "
                                    << (field.number ? "a number" : "true or false");
  if (field.number)
    optimizer.*field.number = *number;
  else
    optimizer.*field.flag = flag.getValue();
  return success();
}

/// Puts positional and named values where they belong.
static LogicalResult setFields(Optimizer &optimizer, DictionaryAttr spec, Location location) {
  ArrayRef<OptimizerField> fields = fieldsOf(optimizer.kind);
  auto args = spec.getAs<ArrayAttr>("args");
  if (args && args.size() > fields.size())
    return emitError(location, "'") << optimizer.kind << "' takes " << fields.size() << " options, but " << args.size()
                                    << " are given";
  for (auto [value, field] : llvm::zip(args ? args.getValue() : ArrayRef<Attribute>(), fields))
    if (failed(setField(optimizer, field, value, location)))
      return failure();
  auto named = spec.getAs<DictionaryAttr>("named");
  for (NamedAttribute entry : named ? named.getValue() : ArrayRef<NamedAttribute>()) {
    const auto *field = llvm::find_if(fields, [&](const auto &f) { return f.name == entry.getName(); });
    if (field == fields.end()) {
      auto names = llvm::map_range(fields, [](const OptimizerField &f) { return f.name; });
      return emitError(location, "'") << optimizer.kind << "' has no option '" << entry.getName().getValue()
                                      << "'; it knows " << llvm::join(names, ", ");
    }
    if (failed(setField(optimizer, *field, entry.getValue(), location)))
      return failure();
  }
  return success();
}

/// Values that no run can mean.
static LogicalResult checkValues(const Optimizer &optimizer, Location location) {
  if (optimizer.lossScale <= 0)
    return emitError(location, "'loss_scale' is ") << optimizer.lossScale << ", but it must be above 0";
  if (optimizer.momentum < 0)
    return emitError(location, "'momentum' is ") << optimizer.momentum << ", but it must not be negative";
  if (optimizer.nesterov && (optimizer.momentum == 0 || optimizer.dampening != 0))
    return emitError(location, "nesterov needs a momentum above 0 and no dampening, but they are ")
           << optimizer.momentum << " and " << optimizer.dampening;
  return success();
}

FailureOr<Optimizer> msc::autodiff::readOptimizer(DictionaryAttr spec, Location location) {
  auto callee = spec ? spec.getAs<StringAttr>("callee") : StringAttr();
  if (!callee || fieldsOf(callee).empty())
    return emitError(location, "optimizer '")
           << (callee ? callee.getValue() : StringRef("?")) << "' is not supported; known are Momentum, SGD";
  Optimizer optimizer;
  optimizer.kind = callee.str();
  if (failed(setFields(optimizer, spec, location)) || failed(checkValues(optimizer, location)))
    return failure();
  return optimizer;
}

//===-- building ----------------------------------------------------------===//

namespace {

class Update {
public:
  Update(NetworkOp network, const Optimizer &optimizer)
      : block(network.getBody().front()), optimizer(optimizer), builder(getReturn(network)) {
    for (Operation &op : block)
      if (isa<ParamOp>(op) || !lastParam)
        lastParam = &op;
  }

  void add(ParamOp param, Value gradient) {
    Operation *last = &*std::prev(builder.getInsertionPoint());
    if (optimizer.momentum != 0 || optimizer.kind == "Momentum")
      applyMomentum(param, gradient);
    else
      applySGD(param, gradient);
    std::string scope = "Default/optimizer-" + optimizer.kind;
    for (Operation *op = last->getNextNode(); op != &*builder.getInsertionPoint(); op = op->getNextNode()) {
      setPhase(op, Phase::Update);
      setScope(op, scope);
      setInstanceName(op, ("update." + param.getName()).str());
      if (std::optional<int64_t> id = forwardIdOf(param))
        setForwardId(op, *id);
    }
  }

private:
  FloatAttr number(double value) { return builder.getF64FloatAttr(value); }

  /// MindSpore leaves normalisation parameters alone.
  FloatAttr decayOf(ParamOp param) {
    bool spared = param.getName().contains("beta") || param.getName().contains("gamma");
    return number(spared ? 0 : optimizer.weightDecay);
  }

  void applyMomentum(ParamOp param, Value gradient) {
    ParamOp accum = state(param);
    auto step =
        builder.create<ApplyMomentumOp>(param.getLoc(), param.getValue(), accum.getValue(), learningRate(param),
                                        gradient, number(optimizer.momentum), builder.getBoolAttr(optimizer.nesterov),
                                        decayOf(param), number(optimizer.lossScale), number(optimizer.dampening));
    builder.create<UpdateOp>(param.getLoc(), param.getValue(), step.getNewVar());
    builder.create<UpdateOp>(param.getLoc(), accum.getValue(), step.getNewAccum());
  }

  void applySGD(ParamOp param, Value gradient) {
    auto step = builder.create<SGDOp>(param.getLoc(), param.getValue(), learningRate(param), gradient, decayOf(param),
                                      number(optimizer.lossScale));
    builder.create<UpdateOp>(param.getLoc(), param.getValue(), step.getNewVar());
  }

  /// The running direction of a parameter, behind all parameters and states so far.
  ParamOp state(ParamOp param) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastParam);
    auto zeros = builder.getDictionaryAttr({builder.getNamedAttr("a", number(0)), builder.getNamedAttr("b", number(0)),
                                            builder.getNamedAttr("kind", builder.getStringAttr("zeros"))});
    auto state = builder.create<ParamOp>(param.getLoc(), param.getValue().getType(),
                                         builder.getStringAttr("moments." + param.getName()), zeros,
                                         builder.getBoolAttr(false), param.getNameAttr(), builder.getStringAttr(""));
    lastParam = state;
    return state;
  }

  /// The learning rate in the element type of the parameter: a scalar that the runtime writes before each step.
  Value learningRate(ParamOp param) {
    Type element = cast<RankedTensorType>(param.getValue().getType()).getElementType();
    Type own = isa<Float64Type>(element) ? element : builder.getF32Type();
    Value rate = rates[own];
    if (!rate) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfter(lastParam);
      auto schedule = builder.getDictionaryAttr(
          {builder.getNamedAttr("kind", builder.getStringAttr("constant")),
           builder.getNamedAttr("values", builder.getArrayAttr(number(optimizer.learningRate)))});
      StringRef name = rates.size() == 1 ? "learning_rate" : "learning_rate.2"; // one per precision
      rate = builder.create<ScalarOp>(param.getLoc(), RankedTensorType::get({}, own), name, schedule);
      rates[own] = rate;
    }
    return own == element ? rate : builder.create<CastOp>(param.getLoc(), rate, element);
  }

  /// The first forward operator that reads the parameter.
  static std::optional<int64_t> forwardIdOf(ParamOp param) {
    std::optional<int64_t> first;
    for (Operation *user : param.getValue().getUsers())
      if (getPhase(user) == Phase::Forward && getId(user) && (!first || *getId(user) < *first))
        first = getId(user);
    return first;
  }

  Block &block;
  const Optimizer &optimizer;
  OpBuilder builder;
  Operation *lastParam = nullptr; ///< states and scalars follow it
  DenseMap<Type, Value> rates;
};

} // namespace

void msc::autodiff::buildUpdate(NetworkOp network, const ParameterGradients &gradients, const Optimizer &optimizer) {
  Update update(network, optimizer);
  for (auto [parameter, gradient] : gradients)
    update.add(parameter.getDefiningOp<ParamOp>(), gradient);
}
