#include "dialects/net/NetOps.h"
#include "dialects/net/ops/split/PartCount.h"

#include <numeric>

using namespace mlir;
using namespace msc::net;

static void addParts(const Inference &at, int64_t dim, ArrayRef<int64_t> sizes, SmallVectorImpl<Type> &results) {
  for (int64_t size : sizes) {
    SmallVector<int64_t> shape(at.shape(0));
    shape[dim] = size;
    results.push_back(tensorOf(shape, at.element(0)));
  }
}

LogicalResult SplitOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, static_cast<int64_t>(op.getAxis())); // C1
  if (failed(dims))
    return failure();
  int64_t dim = dims->front(), parts = op.getOutputNum(), size = at.shape(0)[dim];
  if (parts < 1 || parts > size || size % parts != 0) // C2
    return at.error("'Split' cannot part dimension " + Twine(dim) + " of " + at.text(0) + " into " + Twine(parts) +
                        " equal parts",
                    {0}, "SplitV takes the size of every part: size_splits: (...)");
  if (failed(checkPartCount(at, parts))) // C3
    return failure();
  addParts(at, dim, SmallVector<int64_t>(parts, size / parts), results);
  return success();
}

LogicalResult SplitVOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, static_cast<int64_t>(op.getSplitDim())); // C1
  if (failed(dims))
    return failure();
  SmallVector<int64_t> sizes(op.getSizeSplits());
  int64_t size = at.shape(0)[dims->front()], known = 0;
  for (int64_t part : sizes)
    known += part == -1 ? 0 : part;
  if (auto *open = llvm::find(sizes, -1); open != sizes.end())
    *open = size - known;
  bool sound = !sizes.empty() && llvm::all_of(sizes, [](int64_t part) { return part >= 1; });
  if (!sound || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != size) // C2
    return at.error("'SplitV' cannot part dimension " + Twine(dims->front()) + " of " + at.text(0) + " into " +
                        shapeText(op.getSizeSplits()) + ": the parts have to make up its " + Twine(size) + " elements",
                    {0});
  if (auto parts = static_cast<int64_t>(op.getNumSplit()); parts != 0 && parts != static_cast<int64_t>(sizes.size())) // C3
    return at.error("'num_split' of 'SplitV' is " + Twine(parts) + ", but 'size_splits' names " + Twine(sizes.size()) + " parts", {},
                    "leave it out, or make it " + std::to_string(sizes.size()));
  addParts(at, dims->front(), sizes, results);
  return success();
}

/// Part `part` of an operand that is parted along `axis`.
static msc::CopyRegions partRegions(ResultRange parts, int64_t axis, unsigned part) {
  auto shapeOfPart = [&](unsigned i) { return cast<RankedTensorType>(parts[i].getType()).getShape(); };
  msc::CopyRegion region = wholeRegion(shapeOfPart(part));
  int64_t dim = axis < 0 ? axis + static_cast<int64_t>(region.ranges.size()) : axis;
  for (unsigned i = 0; i < part; ++i)
    region.ranges[dim].source += shapeOfPart(i)[dim];
  return {region};
}

msc::CopyRegions SplitOp::copyRegions(unsigned result) {
  return partRegions(getResults(), getAxis(), result);
}
msc::CopyRegions SplitVOp::copyRegions(unsigned result) {
  return partRegions(getResults(), getSplitDim(), result);
}
