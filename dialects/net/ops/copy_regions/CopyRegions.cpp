#include "dialects/net/NetOps.h"

using namespace mlir;
using namespace msc::net;

LogicalResult CopyRegionsOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Any))) // C1
    return failure();
  std::vector<std::vector<int64_t>> operands;
  for (unsigned i = 0; i < at.operands.size(); ++i)
    operands.push_back(at.shape(i).vec());
  msc::CopyRegions regions = msc::regionsFrom(op.getRegions(), op.getShape().size());
  bool reads = !regions.empty() || op.getRegions().empty();
  std::string wrong = reads ? msc::checkRegions(regions, operands, op.getShape().vec()) // C1, C2, C3
                            : "'regions' has " + std::to_string(op.getRegions().size()) + " numbers";
  if (!wrong.empty())
    return at.error("'CopyRegions' to " + shapeText(op.getShape()) + ": " + wrong);
  results.push_back(tensorOf(op.getShape(), at.element(0)));
  return success();
}

msc::CopyRegions CopyRegionsOp::copyRegions(unsigned) {
  return msc::regionsFrom(getRegions(), getShape().size());
}

double CopyRegionsOp::fillValue() {
  return getFill().convertToDouble();
}
