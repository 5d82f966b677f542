#include "dialects/net/NetOps.h"

using namespace mlir;
using namespace msc::net;

/// Dimension `axis`, negative from the end.
static size_t dimensionOf(int64_t axis, size_t rank) {
  return axis < 0 ? axis + rank : axis;
}

static LogicalResult inferSameShape(const Inference &at, ArrayRef<int64_t> axis, SmallVectorImpl<Type> &results) {
  if (failed(resolveAxes(at, 0, axis)))
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult RollOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (op.getShift().size() != op.getAxis().size()) // C2
    return at.error("'Roll' has " + Twine(op.getShift().size()) + " shifts for " + Twine(op.getAxis().size()) +
                    " dimensions");
  return inferSameShape(at, op.getAxis(), results); // C1
}

LogicalResult ReverseV2Op::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferSameShape(at, op.getAxis(), results); // C1
}

msc::CopyRegions RollOp::copyRegions(unsigned) {
  std::vector<std::vector<msc::CopyRange>> ranges;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getInputX().getType()).getShape();
  for (int64_t size : shape)
    ranges.push_back({{0, 0, size}});
  for (auto [axis, shift] : llvm::zip(getAxis(), getShift())) {
    auto &list = ranges[dimensionOf(axis, shape.size())];
    int64_t size = list.front().size, forward = (shift % size + size) % size;
    if (forward != 0)
      list = {{0, forward, size - forward}, {size - forward, 0, forward}};
  }
  return allRegions(ranges);
}

msc::CopyRegions ReverseV2Op::copyRegions(unsigned) {
  msc::CopyRegion region = wholeRegion(cast<RankedTensorType>(getInputX().getType()).getShape());
  for (int64_t axis : getAxis()) {
    msc::CopyRange &range = region.ranges[dimensionOf(axis, region.ranges.size())];
    if (range.size > 1)
      range = {range.size - 1, 0, range.size, -1};
  }
  return {region};
}
