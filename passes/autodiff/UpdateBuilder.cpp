#include "passes/autodiff/UpdateBuilder.h"

#include "passes/autodiff/Passes.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;
using msc::autodiff::UpdateBuilder;

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

UpdateBuilder::UpdateBuilder(NetworkOp network, const TrainConfig &train)
    : train(train), block(network.getBody().front()), builder(getReturn(network)), location(network.getLoc()) {
  for (Operation &op : block)
    if (isa<ParamOp>(op) || !lastParam)
      lastParam = &op;
}

void UpdateBuilder::setSubject(ParamOp param) {
  subject = param;
  subjectId = param ? forwardIdOf(param) : std::nullopt;
  location = param ? param.getLoc() : block.getParentOp()->getLoc();
}

void UpdateBuilder::label(Operation *op) {
  setPhase(op, Phase::Update);
  setScope(op, "Default/optimizer-" + train.optimizer.name);
  setInstanceName(op, subject ? ("update." + subject.getName()).str() : "update");
  if (subjectId)
    setForwardId(op, *subjectId);
}

std::optional<int64_t> UpdateBuilder::forwardIdOf(ParamOp param) {
  std::optional<int64_t> first;
  for (Operation *user : param.getValue().getUsers())
    if (getPhase(user) == Phase::Forward && getId(user) && (!first || *getId(user) < *first))
      first = getId(user);
  return first;
}

ParamOp UpdateBuilder::addParam(StringRef name, Type type, double initial, StringRef stateOf) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(lastParam);
  auto number = [&](double value) { return builder.getF64FloatAttr(value); };
  auto initializer = builder.getDictionaryAttr(
      {builder.getNamedAttr("a", number(initial)), builder.getNamedAttr("b", number(0)),
       builder.getNamedAttr("kind", builder.getStringAttr(initial == 0 ? "zeros" : "constant"))});
  auto param = builder.create<ParamOp>(location, type, builder.getStringAttr(name), initializer,
                                       builder.getBoolAttr(false), builder.getStringAttr(stateOf), builder.getStringAttr(""));
  lastParam = param;
  return param;
}

ParamOp UpdateBuilder::state(StringRef prefix, ParamOp param, double initial) {
  return addParam((prefix + "." + param.getName()).str(), param.getValue().getType(), initial, param.getName());
}

ParamOp UpdateBuilder::scalarState(StringRef name, double initial, Type element) {
  for (ParamOp param : block.getOps<ParamOp>())
    if (param.getName() == name)
      return param;
  return addParam(name, RankedTensorType::get({}, element ? element : builder.getF32Type()), initial, "");
}

Value UpdateBuilder::scheduled(StringRef name, const ScheduleConfig &schedule, Type element) {
  uint64_t every = schedule.kind == "cycle" ? 1 : train.gradients.accumulateSteps;
  Type own = element.isF64() ? element : builder.getF32Type();
  Value &scalar = scalars[(name + (own.isF64() ? " f64" : " f32")).str()];
  if (!scalar) {
    bool isSecond = scalars.count((name + (own.isF64() ? " f32" : " f64")).str()) != 0;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastParam);
    SmallVector<Attribute> values;
    for (double value : schedule.values)
      values.push_back(builder.getF64FloatAttr(value));
    SmallVector<NamedAttribute> fields{builder.getNamedAttr("kind", builder.getStringAttr(schedule.kind)),
                                       builder.getNamedAttr("values", builder.getArrayAttr(values))};
    if (schedule.warmup != 0)
      fields.push_back(builder.getNamedAttr("warmup", builder.getI64IntegerAttr(schedule.warmup)));
    if (every != 1)
      fields.push_back(builder.getNamedAttr("every", builder.getI64IntegerAttr(every)));
    scalar = builder.create<ScalarOp>(location, RankedTensorType::get({}, own), isSecond ? (name + ".2").str() : name.str(),
                                      builder.getDictionaryAttr(fields));
  }
  return inElement(scalar, element);
}

Value UpdateBuilder::constant(double value, Type element) {
  return create<ConstantOp>(RankedTensorType::get({}, element), llvm::APFloat(value));
}

Value UpdateBuilder::inElement(Value scalar, Type element) {
  return elementOf(scalar) == element ? scalar : create<CastOp>(scalar, element);
}

Value UpdateBuilder::sumOfAll(Value value) {
  if (cast<RankedTensorType>(value.getType()).getRank() == 0)
    return value;
  return create<ReduceSumOp>(value, ArrayRef<int64_t>(), /*keep_dims=*/false);
}

Value UpdateBuilder::total(ArrayRef<Value> values) {
  bool isDouble = llvm::any_of(values, [](Value value) { return elementOf(value).isF64(); });
  Type element = isDouble ? Type(builder.getF64Type()) : Type(builder.getF32Type());
  Value sum;
  for (Value value : values) {
    Value term = inElement(value, element);
    sum = sum ? create<AddOp>(sum, term) : term;
  }
  return sum;
}

void UpdateBuilder::write(ParamOp target, Value newValue) {
  if (applies)
    newValue = create<SelectOp>(applies, newValue, target.getValue());
  create<UpdateOp>(target.getValue(), newValue);
}
