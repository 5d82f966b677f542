#include "dialects/net/ops/support/Rules.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace msc::net;

std::string msc::net::factorName(int64_t dim) {
  return dim < 26 ? std::string(1, static_cast<char>('a' + dim)) : "d" + std::to_string(dim);
}

std::vector<int64_t> msc::net::shapeOf(mlir::Value value) {
  llvm::ArrayRef<int64_t> shape = llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  return {shape.begin(), shape.end()};
}

ShardingRule msc::net::ruleWithFactors(const std::vector<int64_t> &shape, FactorKind kind) {
  ShardingRule rule;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    rule.add({.name = factorName(dim), .size = shape[dim], .kind = kind});
  return rule;
}

std::vector<DimFactors> msc::net::broadcastDims(const std::vector<int64_t> &operand,
                                                const std::vector<int64_t> &shape) {
  std::vector<DimFactors> dims(operand.size());
  size_t offset = shape.size() - operand.size();
  for (size_t dim = 0; dim < operand.size(); ++dim)
    if (operand[dim] == shape[offset + dim])
      dims[dim] = {static_cast<int32_t>(offset + dim)};
  return dims;
}

std::vector<DimFactors> msc::net::identityDims(size_t rank) {
  std::vector<DimFactors> dims(rank);
  for (size_t dim = 0; dim < rank; ++dim)
    dims[dim] = {static_cast<int32_t>(dim)};
  return dims;
}

ShardingRule msc::net::pointwiseRule(mlir::Operation *op) {
  std::vector<int64_t> shape = shapeOf(op->getResult(0));
  ShardingRule rule = ruleWithFactors(shape);
  for (mlir::Value operand : op->getOperands())
    rule.operands.push_back(broadcastDims(shapeOf(operand), shape));
  rule.results.assign(op->getNumResults(), identityDims(shape.size()));
  return rule;
}
