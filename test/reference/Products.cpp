#include "test/reference/Interpreter.h"

using namespace msc::net;

namespace msc::reference {

static std::vector<int64_t> batchOf(const Tensor &tensor) {
  return {tensor.shape.begin(), tensor.shape.end() - 2};
}

/// Element (row, column) of op(tensor) in the batch at `index`.
static double element(const Tensor &tensor, std::vector<int64_t> index, int64_t row, int64_t column, bool transposed) {
  index.push_back(transposed ? column : row);
  index.push_back(transposed ? row : column);
  // Batch dimensions broadcast, the last two never do: a size of 1 has index 0 anyway.
  return broadcastAt(tensor, index);
}

/// result[i, j] = sum over batches b and rows k of left[b, k, i] right[b, k, j].
static Tensor batchSum(const Tensor &left, const Tensor &right) {
  int64_t m = left.shape.back(), n = right.shape.back();
  Tensor result({m, n});
  int64_t rows = m == 0 ? 0 : static_cast<int64_t>(left.values.size()) / m;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        result.values[i * n + j] += left.values[row * m + i] * right.values[row * n + j];
  return result;
}

static Tensor productOf(const std::vector<Tensor> &x, bool ta, bool tb) {
  std::vector<int64_t> left = batchOf(x[0]), right = batchOf(x[1]), batch(std::max(left.size(), right.size()), 1);
  for (size_t back = 1; back <= batch.size(); ++back) {
    int64_t l = back <= left.size() ? left[left.size() - back] : 1;
    int64_t r = back <= right.size() ? right[right.size() - back] : 1;
    batch[batch.size() - back] = l == 1 ? r : l;
  }
  int64_t m = x[0].shape[x[0].rank() - (ta ? 1 : 2)], k = x[0].shape[x[0].rank() - (ta ? 2 : 1)];
  int64_t n = x[1].shape[x[1].rank() - (tb ? 2 : 1)];
  std::vector<int64_t> shape = batch;
  shape.insert(shape.end(), {m, n});
  Tensor result(shape);
  forEachIndex(shape, [&](const auto &index) {
    std::vector<int64_t> at(index.begin(), index.end() - 2);
    int64_t row = index[index.size() - 2], column = index.back();
    double sum = 0;
    for (int64_t i = 0; i < k; ++i)
      sum += element(x[0], at, row, i, ta) * element(x[1], at, i, column, tb);
    result.at(index) = sum;
  });
  return result;
}

static std::vector<Tensor> matMul(mlir::Operation *op, const std::vector<Tensor> &x) {
  auto product = llvm::cast<MatMulOp>(op);
  if (product.getSumBatch().value_or(false))
    return {batchSum(x[0], x[1])};
  return {productOf(x, product.getTransposeA(), product.getTransposeB())};
}

static Tensor dense(const std::vector<Tensor> &x) {
  Tensor result = productOf(x, false, true);
  if (x.size() > 2)
    forEachIndex(result.shape, [&](const auto &index) { result.at(index) += x[2].at({index.back()}); });
  return result;
}

static std::vector<Tensor> biasAdd(mlir::Operation *op, const std::vector<Tensor> &x) {
  Tensor result = x[0];
  bool last = result.rank() < 4 || llvm::cast<BiasAddOp>(op).getDataFormat() == "NHWC";
  int64_t channel = last ? result.rank() - 1 : 1;
  forEachIndex(result.shape, [&](const auto &index) { result.at(index) += x[1].at({index[channel]}); });
  return {result};
}

void addProducts(Table &table) {
  table["MatMul"] = matMul;
  table["BiasAdd"] = biasAdd;
  table["BatchMatMul"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto product = llvm::cast<BatchMatMulOp>(op);
    return {productOf(x, product.getTransposeA(), product.getTransposeB())};
  };
  table["Dense"] = [](mlir::Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> { return {dense(x)}; };
  table["AddN"] = [](mlir::Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    Tensor sum = x[0];
    for (size_t term = 1; term < x.size(); ++term)
      for (size_t i = 0; i < sum.values.size(); ++i)
        sum.values[i] += x[term].values[i];
    return {sum};
  };
}

} // namespace msc::reference
