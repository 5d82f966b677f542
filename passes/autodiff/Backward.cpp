// Reverse accumulation. A value is *active* if it depends on a trained parameter through float values, *needed* if the
// loss depends on it, and *wanted* if both hold: only wanted values get gradients.
#include "dialects/net/GradientSum.h"
#include "dialects/net/NetOps.h"
#include "passes/autodiff/Passes.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

namespace {

bool isFloat(Value value) {
  return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
}

/// Values that depend on a trained parameter.
DenseSet<Value> activeValues(Block &block) {
  DenseSet<Value> active;
  for (Operation &op : block) {
    auto param = dyn_cast<ParamOp>(op);
    bool isActive =
        param ? param.getTrained() : llvm::any_of(op.getOperands(), [&](Value v) { return active.contains(v); });
    for (Value result : op.getResults())
      if (isActive && isFloat(result))
        active.insert(result);
  }
  return active;
}

/// Values that these depend on, and themselves.
DenseSet<Value> neededValues(Block &block, ValueRange values) {
  DenseSet<Value> needed(values.begin(), values.end());
  for (Operation &op : llvm::reverse(block))
    if (llvm::any_of(op.getResults(), [&](Value v) { return needed.contains(v); }))
      needed.insert(op.operand_begin(), op.operand_end());
  return needed;
}

class Backward {
public:
  Backward(NetworkOp network, Value loss, const LossScaleConfig &scale)
      : block(network.getBody().front()), loss(loss), scale(scale), builder(getReturn(network)), active(activeValues(block)),
        needed(neededValues(block, loss)), used(neededValues(block, getReturn(network).getValues())) {}

  FailureOr<autodiff::ParameterGradients> run() {
    SmallVector<Operation *> forward;
    for (Operation &op : block)
      if (isa<Operator>(op))
        forward.push_back(&op);
    seed();
    for (Operation *op : llvm::reverse(forward))
      if (failed(differentiate(op)))
        return failure();
    return parameterGradients();
  }

private:
  bool isWanted(Value value) const { return active.contains(value) && needed.contains(value); }

  /// The gradient of the loss with respect to itself, times the loss scale.
  void seed() {
    Operation *producer = loss.getDefiningOp();
    Operation *last = lastOperator();
    Value seed = scale.dynamic ? scaleState() : scalarLike(builder, loss.getLoc(), scale.scale, loss);
    if (seed.getType() != loss.getType())
      seed = builder.create<CastOp>(loss.getLoc(), seed, cast<RankedTensorType>(loss.getType()).getElementType());
    contributions[loss].push_back(seed);
    tagFrom(last, producer);
  }

  /// The state that holds a dynamic loss scale, behind all parameters.
  Value scaleState() {
    OpBuilder::InsertionGuard guard(builder);
    auto params = block.getOps<ParamOp>();
    builder.setInsertionPointToStart(&block);
    for (ParamOp param : params)
      builder.setInsertionPointAfter(param);
    auto number = [&](double value) { return builder.getF64FloatAttr(value); };
    auto initializer = builder.getDictionaryAttr({builder.getNamedAttr("a", number(scale.scale)), builder.getNamedAttr("b", number(0)),
                                                  builder.getNamedAttr("kind", builder.getStringAttr("constant"))});
    return builder.create<ParamOp>(loss.getLoc(), RankedTensorType::get({}, builder.getF32Type()),
                                   builder.getStringAttr("loss_scale"), initializer, builder.getBoolAttr(false),
                                   builder.getStringAttr(""), builder.getStringAttr(""));
  }

  /// Builds the gradients of the operands that are wanted.
  LogicalResult differentiate(Operation *op) {
    if (llvm::none_of(op->getResults(), [&](Value v) { return isWanted(v); }))
      return success();
    llvm::SmallBitVector wanted(op->getNumOperands());
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      wanted[i] = isWanted(operand);
    auto gradient = dyn_cast<net::Gradient>(op);
    if (!gradient)
      return reportNoGradient(op);
    Operation *last = lastOperator();
    SmallVector<Value> ofResults, ofOperands(op->getNumOperands());
    for (Value result : op->getResults())
      ofResults.push_back(total(result));
    if (llvm::all_of(ofResults, [](Value v) { return !v; }))
      return success(); // a zero gradient flows back
    if (failed(gradient.buildGradient(builder, ofResults, wanted, ofOperands)))
      return failure();
    tagFrom(last, op);
    markGradients(last, ofResults, ofOperands);
    for (auto [operand, given] : llvm::zip(op->getOperands(), ofOperands))
      if (given && isWanted(operand))
        contributions[operand].push_back(given);
    return success();
  }

  /// Says of the new operators which operands and results are gradients of the forward operator's: the partitioner
  /// brings a gradient to where its value lies.
  void markGradients(Operation *last, ArrayRef<Value> ofResults, ArrayRef<Value> ofOperands) {
    for (Operation *op = last->getNextNode(); op != &*builder.getInsertionPoint(); op = op->getNextNode()) {
      for (OpOperand &operand : op->getOpOperands())
        for (auto [index, gradient] : llvm::enumerate(ofResults))
          if (gradient && operand.get() == gradient)
            setGradientOfResult(op, operand.getOperandNumber(), index);
      for (auto [index, gradient] : llvm::enumerate(ofOperands))
        if (gradient && gradient.getDefiningOp() == op)
          setGradientOfOperand(op, index);
    }
  }

  /// The sum of what has arrived for a value, asked for once; null if nothing has.
  Value total(Value value) {
    ArrayRef<Value> terms = contributions[value];
    if (terms.empty())
      return {};
    Operation *last = lastOperator();
    Value sum = terms.front();
    auto result = dyn_cast<OpResult>(value);
    for (Value term : llvm::drop_begin(terms)) {
      sum = builder.create<AddOp>(value.getLoc(), sum, term);
      if (result && getId(result.getOwner()))
        setGradientSum(sum.getDefiningOp(), result.getResultNumber());
    }
    Operation *producer = value.getDefiningOp();
    tagFrom(last, producer && getId(producer) ? producer : firstUser(value));
    return sum;
  }

  autodiff::ParameterGradients parameterGradients() {
    autodiff::ParameterGradients gradients;
    for (ParamOp param : block.getOps<ParamOp>()) {
      if (!param.getTrained())
        continue;
      if (Value gradient = total(param.getValue()))
        gradients[param.getValue()] = gradient;
      else if (used.contains(param.getValue())) // else the check of the network has said so
        param.emitWarning("parameter '") << param.getName() << "' is not trained: the gradient of the loss '"
                                         << getValueName(loss) << "' with respect to it is zero";
    }
    return gradients;
  }

  /// The first forward operator that reads the value.
  Operation *firstUser(Value value) {
    Operation *first = nullptr;
    for (Operation *user : value.getUsers())
      if (getId(user) && getPhase(user) == Phase::Forward && (!first || user->isBeforeInBlock(first)))
        first = user;
    return first;
  }

  /// The operator behind which the next one is built.
  Operation *lastOperator() { return builder.getInsertionPoint()->getPrevNode(); }

  /// Marks all operators behind `last` as part of the gradient of `forward`.
  void tagFrom(Operation *last, Operation *forward) {
    for (Operation *op = last->getNextNode(); op != &*builder.getInsertionPoint(); op = op->getNextNode()) {
      setPhase(op, Phase::Backward);
      if (!forward)
        continue;
      op->setLoc(forward->getLoc());
      setScope(op, getScope(forward).empty() ? "Gradients" : ("Gradients/" + getScope(forward)).str());
      if (std::optional<int64_t> id = getId(forward))
        setForwardId(op, *id);
      if (isa<Operator>(op))
        setInstanceName(op, uniqueName(forward));
    }
  }

  /// "grad_matmul", "grad_matmul.1", ...
  std::string uniqueName(Operation *forward) {
    StringRef name = getInstanceName(forward);
    std::string text = ("grad_" + (name.empty() ? forward->getName().stripDialect() : name)).str();
    unsigned count = nameCounts[text]++;
    return count == 0 ? text : text + "." + std::to_string(count);
  }

  LogicalResult reportNoGradient(Operation *op) {
    ParamOp param = parameterBehind(op);
    StringRef name = getInstanceName(op);
    InFlightDiagnostic error = op->emitError("'")
                               << (name.empty() ? op->getName().stripDialect() : name) << "' has no gradient, but '"
                               << getValueName(loss) << "' depends on it through '" << param.getName() << "'";
    error.attachNote(param.getLoc()) << "'" << param.getName() << "' declared here";
    return error;
  }

  /// A trained parameter that the operator depends on; there is one, for its results are active.
  ParamOp parameterBehind(Operation *op) {
    while (!isa<ParamOp>(op)) {
      auto isActive = [&](Value v) { return active.contains(v); };
      op = (*llvm::find_if(op->getOperands(), isActive)).getDefiningOp();
    }
    return cast<ParamOp>(op);
  }

  Block &block;
  Value loss;
  const LossScaleConfig &scale;
  OpBuilder builder;
  DenseSet<Value> active, needed, used;
  DenseMap<Value, SmallVector<Value>> contributions;
  llvm::StringMap<unsigned> nameCounts;
};

} // namespace

FailureOr<autodiff::ParameterGradients> msc::autodiff::buildBackward(NetworkOp network, StringRef loss,
                                                                   const LossScaleConfig &scale) {
  FailureOr<Value> value = findLoss(network, loss);
  if (failed(value))
    return failure();
  numberOperators(network);
  return Backward(network, *value, scale).run();
}
