#include "test/reference/Interpreter.h"

#include <cmath>
#include <limits>

using namespace msc::net;

namespace msc::reference {

/// Folds `x` over the dimensions of `axis` (empty: all).
static Tensor folded(const Tensor &x, llvm::ArrayRef<int64_t> axis, bool keepDims, double start,
                     double (*combine)(double, double)) {
  auto isReduced = [&](int64_t dim) {
    return axis.empty() || llvm::is_contained(axis, dim) || llvm::is_contained(axis, dim - x.rank());
  };
  std::vector<int64_t> kept, shape;
  for (int64_t dim = 0; dim < x.rank(); ++dim) {
    kept.push_back(isReduced(dim) ? 1 : x.shape[dim]);
    if (keepDims || !isReduced(dim))
      shape.push_back(kept.back());
  }
  Tensor result(kept, start);
  forEachIndex(x.shape, [&](std::vector<int64_t> index) {
    double element = x.at(index);
    for (int64_t dim = 0; dim < x.rank(); ++dim)
      if (isReduced(dim))
        index[dim] = 0;
    result.at(index) = combine(result.at(index), element);
  });
  result.shape = shape;
  return result;
}

static double plus(double a, double b) {
  return a + b;
}
static double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

/// The number of elements behind one element of the result, globally.
static double globalCount(ReduceMeanOp op) {
  auto from = llvm::cast<mlir::RankedTensorType>(op.getX().getType());
  auto to = llvm::cast<mlir::RankedTensorType>(op.getOutput().getType());
  return static_cast<double>(from.getNumElements()) / static_cast<double>(to.getNumElements());
}

void addReductions(Table &table) {
  table["ReduceSum"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto sum = llvm::cast<ReduceSumOp>(op);
    return {folded(x[0], sum.getAxis(), sum.getKeepDims(), 0, plus)};
  };
  table["ReduceMean"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto mean = llvm::cast<ReduceMeanOp>(op);
    Tensor result = folded(x[0], mean.getAxis(), mean.getKeepDims(), 0, plus);
    for (double &value : result.values)
      value /= globalCount(mean);
    return {result};
  };
  table["ReduceMax"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto max = llvm::cast<ReduceMaxOp>(op);
    return {folded(x[0], max.getAxis(), max.getKeepDims(), -std::numeric_limits<double>::infinity(), larger)};
  };
}

} // namespace msc::reference
