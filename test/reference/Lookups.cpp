// Look-ups by number, sums by number, running sums, the largest elements.
#include "test/reference/Interpreter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace msc::net;

namespace msc::reference {

static int64_t axisOf(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

/// The shape of the rows that `indices` number along `axis` of `table`.
static std::vector<int64_t> rowsShape(const std::vector<int64_t> &table, const std::vector<int64_t> &indices, int64_t axis) {
  std::vector<int64_t> shape = table;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  return shape;
}

/// Calls visit(index into the rows, index into the table) for every row element whose number the table has.
static void forRows(const std::vector<int64_t> &rows, const std::vector<int64_t> &table, const Tensor &indices, int64_t axis,
                    int64_t offset, const std::function<void(const std::vector<int64_t> &, const std::vector<int64_t> &)> &visit) {
  int64_t rank = indices.rank();
  forEachIndex(rows, [&](const auto &at) {
    auto row = static_cast<int64_t>(indices.at({at.begin() + axis, at.begin() + axis + rank})) - offset;
    if (row < 0 || row >= table[axis])
      return;
    std::vector<int64_t> from = at;
    from.erase(from.begin() + axis, from.begin() + axis + rank);
    from.insert(from.begin() + axis, row);
    visit(at, from);
  });
}

static Tensor lookUp(const Tensor &table, const Tensor &indices, int64_t axis, int64_t offset) {
  Tensor rows(rowsShape(table.shape, indices.shape, axis));
  forRows(rows.shape, table.shape, indices, axis, offset,
          [&](const auto &at, const auto &from) { rows.at(at) = table.at(from); });
  return rows;
}

static Tensor sumRows(std::vector<int64_t> shape, const Tensor &rows, const Tensor &indices, int64_t axis, int64_t offset) {
  Tensor table(std::move(shape));
  forRows(rows.shape, table.shape, indices, axis, offset,
          [&](const auto &at, const auto &from) { table.at(from) += rows.at(at); });
  return table;
}

/// The table shape behind rows: the dimensions of the indices become one of `size`.
static std::vector<int64_t> tableShape(const Tensor &rows, const Tensor &indices, int64_t axis, int64_t size) {
  std::vector<int64_t> shape = rows.shape;
  shape.erase(shape.begin() + axis, shape.begin() + axis + indices.rank());
  shape.insert(shape.begin() + axis, size);
  return shape;
}

/// The element of a table along `dim` that an element of `index` numbers.
static std::vector<int64_t> alongside(const Tensor &index, const std::vector<int64_t> &at, int64_t dim, int64_t size) {
  std::vector<int64_t> from = at;
  from[dim] = static_cast<int64_t>(index.at(at));
  if (from[dim] < 0)
    from[dim] += size;
  return from;
}

static Tensor cumSum(CumSumOp op, const Tensor &x) {
  int64_t axis = axisOf(op.getAxis(), x.rank());
  Tensor y(x.shape);
  forEachIndex(x.shape, [&](const auto &at) {
    std::vector<int64_t> from = at;
    for (from[axis] = 0; from[axis] < x.shape[axis]; ++from[axis]) {
      int64_t behind = op.getReverse() ? at[axis] - from[axis] : from[axis] - at[axis];
      if (behind < 0 || (behind == 0 && !op.getExclusive()))
        y.at(at) += x.at(from);
    }
  });
  return y;
}

static std::vector<Tensor> topK(TopKOp op, const Tensor &x) {
  std::vector<int64_t> shape = x.shape;
  int64_t length = shape.back(), k = op.getK();
  shape.back() = k;
  Tensor values(shape), indices(shape);
  auto rows = k == 0 ? 0 : static_cast<int64_t>(values.values.size()) / k;
  for (int64_t row = 0; row < rows; ++row) {
    auto at = [&](int64_t i) { return x.values[row * length + i]; };
    std::vector<int64_t> order(length);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      if (std::isnan(at(i)) || std::isnan(at(j)))
        return std::isnan(at(i)) && (i < j || !std::isnan(at(j)));
      return at(i) != at(j) ? at(i) > at(j) : i < j;
    });
    order.resize(k);
    if (!op.getSorted())
      std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < k; ++i) {
      values.values[row * k + i] = at(order[i]);
      indices.values[row * k + i] = static_cast<double>(order[i]);
    }
  }
  return {values, indices};
}

void addLookups(Table &table) {
  using Tensors = std::vector<Tensor>;
  table["Gather"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    return {lookUp(x[0], x[1], axisOf(llvm::cast<GatherOp>(op).getAxis(), x[0].rank()), 0)};
  };
  table["EmbeddingLookup"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    return {lookUp(x[0], x[1], 0, llvm::cast<EmbeddingLookupOp>(op).getOffset())};
  };
  table["GatherGrad"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    auto sum = llvm::cast<GatherGradOp>(op);
    int64_t axis = sum.getAxis();
    return {sumRows(tableShape(x[1], x[0], axis, sum.getSize()), x[1], x[0], axis, sum.getOffset())};
  };
  table["UnsortedSegmentSum"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    return {sumRows(tableShape(x[0], x[1], 0, llvm::cast<UnsortedSegmentSumOp>(op).getNumSegments()), x[0], x[1], 0, 0)};
  };
  table["ScatterAdd"] = [](mlir::Operation *, const Tensors &x) -> Tensors {
    Tensor sum = sumRows(x[0].shape, x[2], x[1], 0, 0);
    for (size_t i = 0; i < sum.values.size(); ++i)
      sum.values[i] += x[0].values[i];
    return {sum};
  };
  table["GatherD"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    int64_t dim = axisOf(llvm::cast<GatherDOp>(op).getDim(), x[0].rank());
    Tensor y(x[1].shape);
    forEachIndex(y.shape, [&](const auto &at) { y.at(at) = x[0].at(alongside(x[1], at, dim, x[0].shape[dim])); });
    return {y};
  };
  table["GatherDGrad"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    auto sum = llvm::cast<GatherDGradOp>(op);
    int64_t dim = axisOf(sum.getDim(), x[0].rank()), size = sum.getSize();
    std::vector<int64_t> shape = x[0].shape;
    shape[dim] = size;
    Tensor dx(shape);
    forEachIndex(x[0].shape, [&](const auto &at) {
      std::vector<int64_t> to = alongside(x[0], at, dim, size);
      if (to[dim] >= 0 && to[dim] < size)
        dx.at(to) += x[1].at(at);
    });
    return {dx};
  };
  table["CumSum"] = [](mlir::Operation *op, const Tensors &x) -> Tensors { return {cumSum(llvm::cast<CumSumOp>(op), x[0])}; };
  table["TopK"] = [](mlir::Operation *op, const Tensors &x) { return topK(llvm::cast<TopKOp>(op), x[0]); };
}

} // namespace msc::reference
