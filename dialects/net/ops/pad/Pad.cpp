#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Words.h"

#include <algorithm>

using namespace mlir;
using namespace msc::net;

/// (C1) and the result type.
static LogicalResult inferPadded(const Inference &at, ArrayRef<int64_t> paddings, SmallVectorImpl<Type> &results) {
  if (static_cast<int64_t>(paddings.size()) != 2 * at.rank(0))
    return at.error("'paddings' of '" + at.opName + "' has " + Twine(paddings.size() / 2) + " pairs, but " + at.text(0) +
                        " has " + Twine(at.rank(0)) + " dimensions",
                    {0});
  SmallVector<int64_t> shape(at.shape(0));
  for (auto [i, count] : llvm::enumerate(paddings)) {
    if (count < 0)
      return at.error("'paddings' of '" + at.opName + "' has the number " + Twine(count) + " for dimension " +
                      Twine(i / 2));
    constexpr int64_t most = int64_t{1} << 60; // refused as a size
    shape[i / 2] = std::min(most, shape[i / 2] + std::min(count, most));
  }
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult PadOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferPadded(at, op.getPaddings(), results); // C1, C2
}

LogicalResult MirrorPadOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(inferPadded(at, op.getPaddings(), results)) || // C1
      failed(checkWord(at, "mode", op.getMode(), kMirrorModes)))
    return failure();
  for (auto [i, count] : llvm::enumerate(op.getPaddings())) {
    int64_t size = at.shape(0)[i / 2], most = op.getMode() == "REFLECT" ? size - 1 : size;
    if (count > most) // C2
      return at.error("'MirrorPad' cannot mirror " + Twine(count) + " elements of dimension " + Twine(i / 2) + " of " +
                          at.text(0) + ": with mode " + op.getMode() + " there are " + Twine(most),
                      {0});
  }
  return success();
}

msc::CopyRegions PadOp::copyRegions(unsigned) {
  msc::CopyRegion region = wholeRegion(cast<RankedTensorType>(getInputX().getType()).getShape());
  for (auto [dim, range] : llvm::enumerate(region.ranges))
    range.target = getPaddings()[2 * dim];
  return {region};
}

msc::CopyRegions MirrorPadOp::copyRegions(unsigned) {
  int64_t skipped = getMode() == "REFLECT" ? 1 : 0; // the outermost element
  std::vector<std::vector<msc::CopyRange>> ranges;
  for (auto [dim, size] : llvm::enumerate(cast<RankedTensorType>(getInputX().getType()).getShape())) {
    int64_t before = getPaddings()[2 * dim], behind = getPaddings()[2 * dim + 1];
    auto &list = ranges.emplace_back();
    list.push_back({0, before, size});
    if (before > 0)
      list.push_back({before - 1 + skipped, 0, before, -1});
    if (behind > 0)
      list.push_back({size - 1 - skipped, before + size, behind, -1});
  }
  return allRegions(ranges);
}
