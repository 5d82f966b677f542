#include "dialects/net/NetOps.h"

using namespace mlir;
using namespace msc::net;

LogicalResult ConcatOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Any))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, static_cast<int64_t>(op.getAxis())); // C2
  if (failed(dims))
    return failure();
  int64_t along = dims->front();
  SmallVector<int64_t> shape(at.shape(0));
  for (unsigned i = 1; i < at.operands.size(); ++i) {
    if (at.rank(i) != at.rank(0)) // C1
      return at.error("'Concat' takes tensors of as many dimensions, but " + at.text(0) + " has " + Twine(at.rank(0)) +
                          " and " + at.text(i) + " has " + Twine(at.rank(i)),
                      {0, i});
    for (int64_t dim = 0; dim < at.rank(0); ++dim)
      if (dim != along && at.shape(i)[dim] != shape[dim]) // C3
        return at.error("'Concat' along dimension " + Twine(along) + ": dimension " + Twine(dim) + " of " + at.text(0) +
                            " is " + Twine(shape[dim]) + ", of " + at.text(i) + " " + Twine(at.shape(i)[dim]),
                        {0, i});
    shape[along] += at.shape(i)[along];
  }
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

msc::CopyRegions ConcatOp::copyRegions(unsigned) {
  int64_t rank = cast<RankedTensorType>(getOutput().getType()).getRank(), axis = getAxis(), next = 0;
  msc::CopyRegions regions;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    regions.push_back(wholeRegion(cast<RankedTensorType>(input.getType()).getShape(), index));
    msc::CopyRange &range = regions.back().ranges[axis < 0 ? axis + rank : axis];
    range.target = next;
    next += range.size;
  }
  return regions;
}
