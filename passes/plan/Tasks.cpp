#include "passes/plan/Tasks.h"

#include "dialects/dist/DistDialect.h"
#include "passes/plan/ClusterFunction.h"
#include "passes/plan/Units.h"

#include <algorithm>

using namespace mlir;

namespace msc::passes {

/// Bytes of a kernel's traffic that make one task.
constexpr int64_t taskBytes = 256 * 1024;
constexpr int64_t mostTasks = 64;
/// Scalar operations of a product that make one task.
constexpr int64_t taskFlops = 16 * 1000 * 1000;

/// Into how many tasks a product may be cut: columns, if there are few rows, else rows. Where the right operand is not packed once for all (runtime/device/cpu/MatMul.cpp),
/// the library packs it anew for every task, which costs as much as the arithmetic of some 20 rows.
static int64_t tasksOfPieces(int64_t rows, int64_t columns) {
  constexpr int64_t fewRows = 256, fewestColumns = 512; // the left operand is packed for each piece of columns
  const int64_t ofRows = std::max(rows / fewRows, std::min<int64_t>(rows / 128, 2));
  return std::clamp<int64_t>(rows < fewRows ? std::max(ofRows, columns / fewestColumns) : ofRows, 1, mostTasks);
}

int64_t tasksOfTraffic(int64_t bytes) { return std::clamp<int64_t>(bytes / taskBytes, 1, mostTasks); }

int64_t tasksOfCall(Operation *op) {
  net::OperatorCost cost = costOf(op);
  double tasks = std::max(cost.flops / static_cast<double>(taskFlops),
                          (cost.bytesRead + cost.bytesWritten) / static_cast<double>(taskBytes));
  return std::clamp<int64_t>(static_cast<int64_t>(tasks), 1, mostTasks);
}

int64_t depthOf(net::MatMulOp product, RankedTensorType left) {
  if (product.getSumBatch().value_or(false)) // all dimensions but the columns
    return elementCount(std::vector<int64_t>(left.getShape().drop_back().begin(), left.getShape().drop_back().end()));
  return left.getDimSize(left.getRank() - (product.getTransposeA() ? 2 : 1));
}

int64_t tasksOfProduct(net::MatMulOp product) {
  int64_t last = dist::shardingOf(product->getResult(0)).devices() - 1;
  RankedTensorType left = localType(product.getOperand(0).getType(), last);
  RankedTensorType out = localType(product->getResult(0).getType(), last);
  int64_t depth = depthOf(product, left);
  int64_t rows = out.getNumElements() / std::max<int64_t>(1, out.getShape().back());
  // Not one for each entry of a batch: those whose rows lie together are joined (runtime/device/JoinBatches.h).
  const bool isOne = cast<RankedTensorType>(product.getOperand(1).getType()).getRank() == 2 && (left.getRank() == 2 || !product.getTransposeA());
  return std::clamp<int64_t>(2 * out.getNumElements() * depth / taskFlops, 1, tasksOfPieces(rows, isOne ? out.getShape().back() : 0));
}

} // namespace msc::passes
