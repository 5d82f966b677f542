#include "dialects/net/NetOps.h"

using namespace mlir;
using namespace msc::net;

LogicalResult SliceOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  ArrayRef<int64_t> begin = op.getBegin(), size = op.getSize(), from = at.shape(0);
  if (begin.size() != from.size() || size.size() != from.size()) // C1
    return at.error("'begin' and 'size' of 'Slice' have " + Twine(begin.size()) + " and " + Twine(size.size()) +
                        " entries, but " + at.text(0) + " has " + Twine(from.size()) + " dimensions",
                    {0});
  SmallVector<int64_t> shape;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    bool starts = begin[dim] >= 0 && begin[dim] < from[dim];
    int64_t left = starts ? from[dim] - begin[dim] : 0, count = size[dim] == -1 ? left : size[dim];
    if (!starts || count < 1 || count > left) // C2
      return at.error("'Slice' takes " + Twine(size[dim]) + " elements from " + Twine(begin[dim]) + " on of dimension " +
                          Twine(dim) + " of " + at.text(0) + ", whose size is " + Twine(from[dim]),
                      {0});
    shape.push_back(count);
  }
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

msc::CopyRegions SliceOp::copyRegions(unsigned) {
  msc::CopyRegion region = wholeRegion(cast<RankedTensorType>(getOutput().getType()).getShape());
  for (auto [range, begin] : llvm::zip(region.ranges, getBegin()))
    range.source = begin;
  return {region};
}
