#include "dialects/net/ops/support/Gradients.h"

#include "dialects/net/NetOps.h"

using namespace mlir;
using namespace msc::net;

Value msc::net::reshaped(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  if (cast<RankedTensorType>(value.getType()).getShape() == shape)
    return value;
  return builder.create<ReshapeOp>(loc, value, shape);
}

Value msc::net::sumTo(OpBuilder &builder, Location loc, Value value, Type target) {
  ArrayRef<int64_t> from = cast<RankedTensorType>(value.getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(target).getShape();
  int64_t added = from.size() - to.size();
  SmallVector<int64_t> axis;
  for (int64_t dim = 0; dim < static_cast<int64_t>(from.size()); ++dim)
    if (dim < added || from[dim] != to[dim - added])
      axis.push_back(dim);
  if (!axis.empty())
    value = builder.create<ReduceSumOp>(loc, value, axis, /*keep_dims=*/false);
  return reshaped(builder, loc, value, to);
}

void msc::net::giveSummed(OpBuilder &builder, Operation *op, const llvm::SmallBitVector &wanted,
                          MutableArrayRef<Value> gradients, unsigned i, llvm::function_ref<Value()> make) {
  if (wanted[i])
    gradients[i] = sumTo(builder, op->getLoc(), make(), op->getOperand(i).getType());
}

namespace {
/// Reverse accumulation over the parts of one operator.
class PartGradients {
public:
  PartGradients(OpBuilder &builder, Operation *op) : builder(builder), op(op) {}

  LogicalResult run(ValueRange resultGradients, const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (wanted[i])
        active.insert(operand);
    Operation *before = builder.getInsertionPoint()->getPrevNode();
    SmallVector<Value> results = cast<Lower>(op).expand(builder, op->getOperands());
    SmallVector<Operation *> parts;
    for (Operation *part = before->getNextNode(); part != &*builder.getInsertionPoint(); part = part->getNextNode())
      parts.push_back(part);
    for (Operation *part : parts)
      if (llvm::any_of(part->getOperands(), [&](Value v) { return active.contains(v); }))
        activate(part->getResults());
    for (auto [value, gradient] : llvm::zip(results, resultGradients))
      if (gradient)
        add(value, gradient);
    for (Operation *part : llvm::reverse(parts))
      if (failed(differentiate(part)))
        return failure();
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (wanted[i])
        gradients[i] = sums.lookup(operand);
    return success();
  }

private:
  void activate(ValueRange values) {
    for (Value value : values)
      if (isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()))
        active.insert(value);
  }

  void add(Value value, Value term) {
    Value &sum = sums[value];
    sum = sum ? builder.create<AddOp>(op->getLoc(), sum, term).getResult() : term;
  }

  LogicalResult differentiate(Operation *part) {
    llvm::SmallBitVector wanted(part->getNumOperands());
    for (auto [i, operand] : llvm::enumerate(part->getOperands()))
      wanted[i] = active.contains(operand);
    SmallVector<Value> ofResults, ofOperands(part->getNumOperands());
    for (Value result : part->getResults())
      ofResults.push_back(sums.lookup(result));
    if (wanted.none() || llvm::none_of(ofResults, [](Value v) { return static_cast<bool>(v); }))
      return success();
    if (failed(cast<Gradient>(part).buildGradient(builder, ofResults, wanted, ofOperands)))
      return failure();
    for (auto [operand, gradient] : llvm::zip(part->getOperands(), ofOperands))
      if (gradient && active.contains(operand))
        add(operand, gradient);
    return success();
  }

  OpBuilder &builder;
  Operation *op;
  DenseSet<Value> active;      // depend on an operand whose gradient is wanted
  DenseMap<Value, Value> sums; // of what has arrived so far
};
} // namespace

LogicalResult msc::net::expansionGradient(OpBuilder &builder, Operation *op, ValueRange resultGradients,
                                          const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  return PartGradients(builder, op).run(resultGradients, wanted, gradients);
}

Value msc::net::scalarLike(OpBuilder &builder, Location loc, double splat, Value like) {
  Type element = cast<RankedTensorType>(like.getType()).getElementType();
  return builder.create<ConstantOp>(loc, RankedTensorType::get({}, element), llvm::APFloat(splat));
}

Value msc::net::scaled(OpBuilder &builder, Location loc, Value value, double factor) {
  return builder.create<MulOp>(loc, value, scalarLike(builder, loc, factor, value));
}

Value msc::net::shiftedByMaximum(OpBuilder &builder, Location loc, Value value, int64_t dim) {
  Value maximum = builder.create<ReduceMaxOp>(loc, value, dim, /*keep_dims=*/true);
  return builder.create<SubOp>(loc, value, maximum);
}
