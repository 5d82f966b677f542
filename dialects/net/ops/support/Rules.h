// Building blocks of sharding rules.
#pragma once

#include "dialects/net/ShardingRule.h"

#include "mlir/IR/Operation.h"

namespace msc::net {

/// "a", "b", ...: the name of the factor of dimension `dim` in rules without names of their own.
std::string factorName(int64_t dim);

/// The shape of an operand or result as plain data.
std::vector<int64_t> shapeOf(mlir::Value value);

/// One factor per dimension of `shape`, all of one kind.
ShardingRule ruleWithFactors(const std::vector<int64_t> &shape, FactorKind kind = FactorKind::PassThrough);

/// Factors of an operand whose dimensions are aligned with `shape` at the right; dimensions of size 1 that are repeated
/// carry none. Factor i belongs to dimension i of `shape`.
std::vector<DimFactors> broadcastDims(const std::vector<int64_t> &operand, const std::vector<int64_t> &shape);

/// Dimension i carries factor i.
std::vector<DimFactors> identityDims(size_t rank);

/// The same elements, in row-major order, under another shape.
ShardingRule reshapeRule(const std::vector<int64_t> &from, const std::vector<int64_t> &to);

/// One factor per result dimension; operands broadcast.
ShardingRule pointwiseRule(mlir::Operation *op);

} // namespace msc::net
