#include "dialects/net/NetAttributes.h"

#include "dialects/net/FixedPieces.h"

#include "dialects/net/Network.h"

using namespace mlir;

namespace msc::net {

namespace {
constexpr StringLiteral kPhase = "net.phase", kInstanceName = "net.instance_name", kScope = "net.scope",
                        kValueNames = "net.value_names", kInStrategy = "net.in_strategy",
                        kOutStrategy = "net.out_strategy", kOrigin = "net.strategy_origin", kForward = "net.forward",
                        kId = "net.id", kAlike = "net.alike", kGradientOfResult = "net.gradient_of_result",
                        kGradientOfOperand = "net.gradient_of_operand", kResultFactors = "net.result_factors", kWhole = "net.whole";

StringRef getString(Operation *op, StringRef key) {
  auto attr = op->getAttrOfType<StringAttr>(key);
  return attr ? attr.getValue() : StringRef();
}

/// An empty string removes the attribute.
void setString(Operation *op, StringRef key, StringRef value) {
  if (value.empty())
    op->removeAttr(key);
  else
    op->setAttr(key, StringAttr::get(op->getContext(), value));
}

std::optional<int64_t> getInt(Operation *op, StringRef key) {
  auto attr = op->getAttrOfType<IntegerAttr>(key);
  return attr ? std::optional(attr.getInt()) : std::nullopt;
}

void setInt(Operation *op, StringRef key, int64_t value) {
  op->setAttr(key, IntegerAttr::get(IntegerType::get(op->getContext(), 64), value));
}

std::optional<Strategy> getStrategy(Operation *op, StringRef key) {
  auto attr = op->getAttrOfType<ArrayAttr>(key);
  if (!attr)
    return std::nullopt;
  Strategy strategy;
  for (auto pieces : attr.getAsRange<DenseI64ArrayAttr>())
    strategy.emplace_back(pieces.asArrayRef().begin(), pieces.asArrayRef().end());
  return strategy;
}

void setStrategy(Operation *op, StringRef key, const Strategy &strategy) {
  SmallVector<Attribute> operands;
  for (const std::vector<int64_t> &pieces : strategy)
    operands.push_back(DenseI64ArrayAttr::get(op->getContext(), pieces));
  op->setAttr(key, ArrayAttr::get(op->getContext(), operands));
}
} // namespace

StringRef phaseName(Phase phase) {
  switch (phase) {
  case Phase::Forward:
    return "forward";
  case Phase::Backward:
    return "backward";
  case Phase::Update:
    return "update";
  }
  return "";
}

Phase getPhase(Operation *op) {
  StringRef name = getString(op, kPhase);
  if (name == phaseName(Phase::Backward))
    return Phase::Backward;
  return name == phaseName(Phase::Update) ? Phase::Update : Phase::Forward;
}

void setPhase(Operation *op, Phase phase) {
  setString(op, kPhase, phase == Phase::Forward ? StringRef() : phaseName(phase));
}

StringRef getInstanceName(Operation *op) {
  StringRef name = getString(op, kInstanceName);
  return name.empty() && op->getNumResults() ? getValueName(op->getResult(0)) : name;
}
void setInstanceName(Operation *op, StringRef name) {
  setString(op, kInstanceName, name);
}

StringRef getScope(Operation *op) {
  return getString(op, kScope);
}
void setScope(Operation *op, StringRef scope) {
  setString(op, kScope, scope);
}

StringRef getValueName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (auto repeat = dyn_cast_or_null<RepeatOp>(argument.getOwner()->getParentOp()))
      return getValueName(repeat.getInitial()[argument.getArgNumber()]);
    auto network = dyn_cast_or_null<NetworkOp>(argument.getOwner()->getParentOp());
    if (!network || argument.getArgNumber() >= network.getInputNames().size())
      return {};
    return cast<StringAttr>(network.getInputNames()[argument.getArgNumber()]).getValue();
  }
  auto result = cast<OpResult>(value);
  auto names = result.getOwner()->getAttrOfType<ArrayAttr>(kValueNames);
  if (names && result.getResultNumber() < names.size())
    return cast<StringAttr>(names[result.getResultNumber()]).getValue();
  if (auto param = dyn_cast<ParamOp>(result.getOwner()))
    return param.getName();
  if (auto scalar = dyn_cast<ScalarOp>(result.getOwner()))
    return scalar.getName();
  if (auto repeat = dyn_cast<RepeatOp>(result.getOwner()))
    if (Value last = repeat.yielded()[result.getResultNumber()]; !isa<BlockArgument>(last))
      return getValueName(last);
  return {};
}

void setValueNames(Operation *op, ArrayRef<StringRef> names) {
  op->setAttr(kValueNames, Builder(op->getContext()).getStrArrayAttr(names));
}

void renameAll(Operation *op, llvm::function_ref<std::string(StringRef)> rename) {
  Builder builder(op->getContext());
  for (StringRef key : {StringRef(kInstanceName), StringRef(kScope), StringRef(kOrigin)})
    if (StringRef text = getString(op, key); !text.empty())
      setString(op, key, rename(text));
  if (auto names = op->getAttrOfType<ArrayAttr>(kValueNames)) {
    SmallVector<Attribute> renamed;
    for (StringRef name : names.getAsValueRange<StringAttr>())
      renamed.push_back(builder.getStringAttr(rename(name)));
    op->setAttr(kValueNames, builder.getArrayAttr(renamed));
  }
  if (auto param = dyn_cast<ParamOp>(op)) {
    param.setName(rename(param.getName()));
    param.setDrawName(rename(param.getDrawName()));
  }
}

std::optional<Strategy> getInStrategy(Operation *op) {
  return getStrategy(op, kInStrategy);
}
void setInStrategy(Operation *op, const Strategy &strategy) {
  setStrategy(op, kInStrategy, strategy);
}
std::optional<Strategy> getOutStrategy(Operation *op) {
  return getStrategy(op, kOutStrategy);
}
void setOutStrategy(Operation *op, const Strategy &strategy) {
  setStrategy(op, kOutStrategy, strategy);
}

ArrayRef<int64_t> getAlike(Operation *op) {
  auto ordinals = op->getAttrOfType<DenseI64ArrayAttr>(kAlike);
  return ordinals ? ordinals.asArrayRef() : ArrayRef<int64_t>();
}
void setAlike(Operation *op, ArrayRef<int64_t> ordinals) {
  op->setAttr(kAlike, DenseI64ArrayAttr::get(op->getContext(), ordinals));
}

void clearAlike(Operation *op) {
  op->removeAttr(kAlike);
}

StringRef getStrategyOrigin(Operation *op) {
  return getString(op, kOrigin);
}
void setStrategyOrigin(Operation *op, StringRef origin) {
  setString(op, kOrigin, origin);
}

void clearStrategy(Operation *op) {
  op->removeAttr(kInStrategy);
  op->removeAttr(kOutStrategy);
  op->removeAttr(kOrigin);
  setFixedPieces(op, {}, "");
}

std::optional<int64_t> getForwardId(Operation *op) {
  return getInt(op, kForward);
}
void setForwardId(Operation *op, int64_t id) {
  setInt(op, kForward, id);
}

std::optional<int64_t> getGradientOfResult(Operation *op, unsigned operand) {
  auto list = op->getAttrOfType<DenseI64ArrayAttr>(kGradientOfResult);
  if (!list || operand >= list.size() || list[operand] < 0)
    return std::nullopt;
  return list[operand];
}
void setGradientOfResult(Operation *op, unsigned operand, int64_t result) {
  SmallVector<int64_t> list(op->getNumOperands(), -1);
  if (auto known = op->getAttrOfType<DenseI64ArrayAttr>(kGradientOfResult))
    list.assign(known.asArrayRef().begin(), known.asArrayRef().end());
  list[operand] = result;
  op->setAttr(kGradientOfResult, DenseI64ArrayAttr::get(op->getContext(), list));
}
std::optional<int64_t> getGradientOfOperand(Operation *op) {
  return getInt(op, kGradientOfOperand);
}
void setGradientOfOperand(Operation *op, int64_t operand) {
  setInt(op, kGradientOfOperand, operand);
}

SmallVector<int64_t> getResultFactors(Operation *op) {
  auto factors = op->getAttrOfType<DenseI64ArrayAttr>(kResultFactors);
  return factors ? SmallVector<int64_t>(factors.asArrayRef()) : SmallVector<int64_t>();
}
void setResultFactors(Operation *op, ArrayRef<int64_t> factors) {
  op->setAttr(kResultFactors, DenseI64ArrayAttr::get(op->getContext(), factors));
}

std::optional<Whole> getWhole(Operation *part) {
  auto whole = part->getAttrOfType<ArrayAttr>(kWhole);
  if (!whole)
    return std::nullopt;
  return Whole{cast<StringAttr>(whole[0]).getValue(), cast<StringAttr>(whole[1]).getValue(),
               cast<IntegerAttr>(whole[2]).getInt()};
}
void setWhole(Operation *part, Operation *whole, int64_t index) {
  if (Attribute outer = whole->getAttr(kWhole))
    return part->setAttr(kWhole, outer);
  Builder builder(part->getContext());
  part->setAttr(kWhole, builder.getArrayAttr({builder.getStringAttr(getInstanceName(whole)),
                                              builder.getStringAttr(whole->getName().stripDialect()),
                                              builder.getI64IntegerAttr(index)}));
}
StringRef getUserName(Operation *op) {
  std::optional<Whole> whole = getWhole(op);
  return whole ? whole->name : getInstanceName(op);
}
StringRef getUserOp(Operation *op) {
  std::optional<Whole> whole = getWhole(op);
  return whole ? whole->op : op->getName().stripDialect();
}

std::optional<int64_t> getId(Operation *op) {
  return getInt(op, kId);
}
void setId(Operation *op, int64_t id) {
  setInt(op, kId, id);
}

} // namespace msc::net
