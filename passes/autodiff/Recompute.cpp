// Backward operators read copies of marked forward operators, made right in front of the first one that needs them, so that
// nothing in between holds the values.
#include "passes/autodiff/Passes.h"

#include "dialects/net/Recompute.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

namespace {

class Copies {
public:
  explicit Copies(NetworkOp network) : builder(network.getContext()) {}

  /// The result of a copy in front of `reader` if the value comes from a marked operator, else the value.
  Value of(Value value, Operation *reader) {
    Operation *producer = value.getDefiningOp();
    if (!producer || !isRecomputed(producer) || getPhase(producer) != Phase::Forward)
      return value;
    Operation *&copy = copies[producer];
    if (!copy)
      make(producer, reader);
    return copies[producer]->getResult(cast<OpResult>(value).getResultNumber());
  }

private:
  /// Copies the operator and the marked ones that it depends on, which come first.
  void make(Operation *last, Operation *reader) {
    SmallVector<Operation *> stack{last};
    while (!stack.empty()) {
      Operation *op = stack.back();
      size_t depth = stack.size();
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && isRecomputed(producer) && getPhase(producer) == Phase::Forward && !copies.lookup(producer))
          stack.push_back(producer);
      if (stack.size() > depth)
        continue;
      stack.pop_back();
      if (!copies.lookup(op))
        copies[op] = copy(op, reader);
    }
  }

  Operation *copy(Operation *op, Operation *reader) {
    builder.setInsertionPoint(reader);
    Operation *made = builder.clone(*op);
    for (OpOperand &operand : made->getOpOperands())
      if (Operation *known = operand.get().getDefiningOp() ? copies.lookup(operand.get().getDefiningOp()) : nullptr)
        operand.set(known->getResult(cast<OpResult>(operand.get()).getResultNumber()));
    for (StringRef name : {"net.value_names", "net.id", "net.in_strategy", "net.out_strategy", "net.strategy_origin", "net.alike"})
      made->removeAttr(name);
    setCopy(made);
    setPhase(made, Phase::Backward);
    setScope(made, getScope(op).empty() ? "Gradients" : ("Gradients/" + getScope(op)).str());
    setInstanceName(made, ("recompute_" + (getInstanceName(op).empty() ? op->getName().stripDialect() : getInstanceName(op))).str());
    if (std::optional<int64_t> id = getId(op))
      setForwardId(made, *id);
    return made;
  }

  OpBuilder builder;
  DenseMap<Operation *, Operation *> copies;
};

} // namespace

void msc::autodiff::recomputeForward(NetworkOp network) {
  Copies copies(network);
  for (Operation &op : llvm::make_early_inc_range(network.getBody().front()))
    if (getPhase(&op) == Phase::Backward && isa<Operator>(op) && !isCopy(&op))
      for (OpOperand &operand : op.getOpOperands())
        operand.set(copies.of(operand.get(), &op));
}
