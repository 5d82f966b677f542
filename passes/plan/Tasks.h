// Into how many tasks the threads of a rank cut a step: small enough to balance, large enough to hide the hand-over. All ranks
// cut alike.
#pragma once

#include "dialects/net/NetOps.h"

#include "mlir/IR/BuiltinTypes.h"

namespace msc::passes {

/// Of a kernel that reads and writes so many bytes on the rank with the largest shards.
int64_t tasksOfTraffic(int64_t bytes);

/// Of an operator that a kernel of the runtime computes, by its work on the rank with the largest shards.
int64_t tasksOfCall(mlir::Operation *op);

/// Of a matrix product, whose rows are cut, or, where they are few, its columns.
int64_t tasksOfProduct(net::MatMulOp product);

/// Terms of one element of a product's result on one rank; `left` is the left operand's local type there.
int64_t depthOf(net::MatMulOp product, mlir::RankedTensorType left);

} // namespace msc::passes
