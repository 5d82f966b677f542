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
static double times(double a, double b) {
  return a * b;
}
static double smaller(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
}
static double both(double a, double b) {
  return a != 0 && b != 0 ? 1 : 0;
}
static double either(double a, double b) {
  return a != 0 || b != 0 ? 1 : 0;
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

template <typename Op> static void addFold(Table &table, double start, double (*combine)(double, double)) {
  table[Op::getOperationName().drop_front(4)] = [=](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto reduce = llvm::cast<Op>(op);
    return {folded(x[0], reduce.getAxis(), reduce.getKeepDims(), start, combine)};
  };
}

/// The first index with the best element along a dimension, and that element; NaN is better than all others.
static std::vector<Tensor> best(const Tensor &x, int64_t dim, bool keepDims, bool largest) {
  std::vector<int64_t> kept = x.shape;
  kept[dim] = 1;
  Tensor index(kept), value(kept);
  forEachIndex(x.shape, [&](const auto &at) {
    std::vector<int64_t> row = at;
    row[dim] = 0;
    double element = x.at(at), sofar = value.at(row);
    bool wins = at[dim] == 0 || (!std::isnan(sofar) && (std::isnan(element) || (largest ? element > sofar : element < sofar)));
    if (!wins)
      return;
    value.at(row) = element;
    index.at(row) = static_cast<double>(at[dim]);
  });
  if (!keepDims)
    kept.erase(kept.begin() + dim);
  index.shape = value.shape = kept;
  return {index, value};
}

template <typename Op> static void addBest(Table &table, bool largest) {
  table[Op::getOperationName().drop_front(4)] = [=](mlir::Operation *op, const std::vector<Tensor> &x) {
    auto search = llvm::cast<Op>(op);
    bool keepDims = false;
    if constexpr (requires { search.getKeepDims(); })
      keepDims = search.getKeepDims();
    std::vector<Tensor> results = best(x[0], search.dimension(), keepDims, largest);
    results.resize(op->getNumResults());
    return results;
  };
}

void addReductions(Table &table) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  addFold<ReduceMinOp>(table, infinity, smaller);
  addFold<ReduceProdOp>(table, 1, times);
  addFold<ReduceAllOp>(table, 1, both);
  addFold<ReduceAnyOp>(table, 0, either);
  addBest<ArgMaxWithValueOp>(table, true);
  addBest<ArgMinWithValueOp>(table, false);
  addBest<ArgmaxOp>(table, true);
  addBest<ArgminOp>(table, false);
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
