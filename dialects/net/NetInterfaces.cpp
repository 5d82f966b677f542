#include "dialects/net/NetInterfaces.h"

using namespace mlir;

#include "dialects/net/interfaces/NetInterfaces.cpp.inc"

static double bytesOf(ArrayRef<std::vector<int64_t>> shapes, ValueTypeRange<OperandRange> types) {
  double bytes = 0;
  for (auto [shape, type] : llvm::zip(shapes, types))
    bytes += static_cast<double>(msc::elementCount(shape)) * msc::net::elementBytes(type);
  return bytes;
}

double msc::net::elementBytes(Type tensor) {
  unsigned bits = cast<RankedTensorType>(tensor).getElementTypeBitWidth();
  return (bits + 7) / 8; // bool takes one byte
}

msc::net::OperatorCost msc::net::defaultCost(Operation *op, ArrayRef<std::vector<int64_t>> operandShapes,
                                             ArrayRef<std::vector<int64_t>> resultShapes) {
  OperatorCost cost;
  cost.bytesRead = bytesOf(operandShapes, op->getOperandTypes());
  for (auto [shape, type] : llvm::zip(resultShapes, op->getResultTypes())) {
    cost.flops += static_cast<double>(elementCount(shape));
    cost.bytesWritten += static_cast<double>(elementCount(shape)) * elementBytes(type);
  }
  return cost;
}
