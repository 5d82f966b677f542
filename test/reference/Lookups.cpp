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

/// The piece of a dimension that an index lies in.
static int64_t pieceAt(int64_t index, int64_t size, int64_t pieces) {
  int64_t p = 0;
  while (msc::pieceOf(size, p, pieces).end <= index)
    ++p;
  return p;
}

template <typename Op> static Tensor cumSum(Op op, const Tensor &x, int64_t pieces) {
  int64_t axis = axisOf(op.getAxis(), x.rank()), size = x.shape[axis];
  Tensor y(x.shape);
  forEachIndex(x.shape, [&](const auto &at) {
    std::vector<int64_t> from = at;
    for (from[axis] = 0; from[axis] < size; ++from[axis]) {
      if (pieceAt(from[axis], size, pieces) != pieceAt(at[axis], size, pieces))
        continue;
      int64_t behind = op.getReverse() ? at[axis] - from[axis] : from[axis] - at[axis];
      if (behind < 0 || (behind == 0 && !op.getExclusive()))
        y.at(at) += x.at(from);
    }
  });
  return y;
}

/// An element and where it stands.
struct Candidate {
  double value, place;
  bool operator<(const Candidate &other) const { // stands in front of
    bool isNan = std::isnan(value), otherIsNan = std::isnan(other.value);
    if (isNan || otherIsNan)
      return isNan && (!otherIsNan || place < other.place);
    return value != other.value ? value > other.value : place < other.place;
  }
};

/// The first `k` of candidates in order, or in the order of their places.
static std::vector<Candidate> best(std::vector<Candidate> candidates, int64_t k, bool sorted) {
  std::sort(candidates.begin(), candidates.end());
  candidates.resize(k);
  if (!sorted)
    std::sort(candidates.begin(), candidates.end(), [](const auto &a, const auto &b) { return a.place < b.place; });
  return candidates;
}

/// The k best of every piece of every row. `places`: where the elements stand; null: as they are.
static std::vector<Tensor> topK(const Tensor &x, const Tensor *places, int64_t k, bool sorted, int64_t pieces, double lowest) {
  std::vector<int64_t> shape = x.shape;
  int64_t length = shape.back();
  shape.back() = k * pieces;
  Tensor values(shape), indices(shape);
  auto rows = k == 0 ? 0 : static_cast<int64_t>(values.values.size()) / (k * pieces);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t p = 0; p < pieces; ++p) {
      msc::Range piece = msc::pieceOf(length, p, pieces);
      std::vector<Candidate> candidates;
      for (int64_t i = piece.begin; i < piece.end; ++i)
        candidates.push_back({x.values[row * length + i], places ? places->values[row * length + i] : static_cast<double>(i)});
      while (static_cast<int64_t>(candidates.size()) < k)
        candidates.push_back({lowest, static_cast<double>(length)});
      candidates = best(candidates, k, sorted);
      for (int64_t i = 0; i < k; ++i) {
        values.values[(row * pieces + p) * k + i] = candidates[i].value;
        indices.values[(row * pieces + p) * k + i] = candidates[i].place;
      }
    }
  return {values, indices};
}

/// The number below which none of the element type lies.
static double lowestOf(mlir::Value value) {
  auto integer = llvm::dyn_cast<mlir::IntegerType>(llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType());
  return integer ? -std::ldexp(1.0, static_cast<int>(integer.getWidth()) - 1) : -INFINITY;
}

/// Table and indices share their first `batch` dimensions.
static Tensor gatherBatches(const Tensor &table, const Tensor &indices, int64_t axis, int64_t batch) {
  std::vector<int64_t> shape = table.shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.shape.begin() + batch, indices.shape.end());
  Tensor rows(shape);
  int64_t more = indices.rank() - batch;
  forEachIndex(shape, [&](const auto &at) {
    std::vector<int64_t> number(at.begin(), at.begin() + batch), from = at;
    number.insert(number.end(), at.begin() + axis, at.begin() + axis + more);
    from.erase(from.begin() + axis, from.begin() + axis + more);
    from.insert(from.begin() + axis, static_cast<int64_t>(indices.at(number)));
    rows.at(at) = table.at(from);
  });
  return rows;
}

/// Calls visit(index into the slices, index into the tensor) for every element whose index lies within the tensor, in order.
static void forSlices(const Tensor &tensor, const Tensor &indices, const std::vector<int64_t> &slices,
                      const std::function<void(const std::vector<int64_t> &, const std::vector<int64_t> &)> &visit) {
  int64_t depth = indices.shape.back(), leading = indices.rank() - 1;
  forEachIndex(slices, [&](const auto &at) {
    std::vector<int64_t> number(at.begin(), at.begin() + leading), to;
    number.push_back(0);
    for (int64_t d = 0; d < depth; ++d) {
      number.back() = d;
      to.push_back(static_cast<int64_t>(indices.at(number)));
      if (to.back() < 0 || to.back() >= tensor.shape[d])
        return;
    }
    to.insert(to.end(), at.begin() + leading, at.end());
    visit(at, to);
  });
}

static void addIndexed(Table &table) {
  using Tensors = std::vector<Tensor>;
  table["GatherNd"] = [](mlir::Operation *, const Tensors &x) -> Tensors {
    std::vector<int64_t> shape(x[1].shape.begin(), x[1].shape.end() - 1);
    shape.insert(shape.end(), x[0].shape.begin() + x[1].shape.back(), x[0].shape.end());
    Tensor result(shape);
    forSlices(x[0], x[1], shape, [&](const auto &at, const auto &from) { result.at(at) = x[0].at(from); });
    return {result};
  };
  table["TensorScatterAdd"] = [](mlir::Operation *, const Tensors &x) -> Tensors {
    Tensor result = x[0];
    forSlices(x[0], x[1], x[2].shape, [&](const auto &at, const auto &to) { result.at(to) += x[2].at(at); });
    return {result};
  };
  table["TensorScatterUpdate"] = [](mlir::Operation *, const Tensors &x) -> Tensors {
    Tensor result = x[0];
    forSlices(x[0], x[1], x[2].shape, [&](const auto &at, const auto &to) { result.at(to) = x[2].at(at); });
    return {result};
  };
}

void addLookups(Table &table) {
  using Tensors = std::vector<Tensor>;
  table["Gather"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    if (int64_t batch = llvm::cast<GatherOp>(op).getBatchDims(); batch != 0)
      return {gatherBatches(x[0], x[1], axisOf(llvm::cast<GatherOp>(op).getAxis(), x[0].rank()), batch)};
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
  table["CumSum"] = [](mlir::Operation *op, const Tensors &x) -> Tensors { return {cumSum(llvm::cast<CumSumOp>(op), x[0], 1)}; };
  table["CumSumPieces"] = [](mlir::Operation *op, const Tensors &x) -> Tensors {
    auto sums = llvm::cast<CumSumPiecesOp>(op);
    return {cumSum(sums, x[0], sums.getPieces())};
  };
  table["TopK"] = [](mlir::Operation *op, const Tensors &x) {
    auto top = llvm::cast<TopKOp>(op);
    return topK(x[0], nullptr, top.getK(), top.getSorted(), 1, 0);
  };
  table["TopKPieces"] = [](mlir::Operation *op, const Tensors &x) {
    auto top = llvm::cast<TopKPiecesOp>(op);
    return topK(x[0], nullptr, top.getK(), true, top.getPieces(), lowestOf(top.getInputX()));
  };
  table["TopKMerge"] = [](mlir::Operation *op, const Tensors &x) {
    auto top = llvm::cast<TopKMergeOp>(op);
    return topK(x[0], &x[1], top.getK(), top.getSorted(), 1, 0);
  };
  for (bool largest : {true, false})
    table[largest ? "UnsortedSegmentMax" : "UnsortedSegmentMin"] = [largest](mlir::Operation *op, const Tensors &x) -> Tensors {
      auto segments = op->getAttrOfType<mlir::IntegerAttr>("num_segments").getInt();
      double start = -lowestOf(op->getOperand(0)) - (std::isinf(lowestOf(op->getOperand(0))) ? 0 : 1);
      Tensor result(tableShape(x[0], x[1], 0, segments), largest ? lowestOf(op->getOperand(0)) : start);
      forRows(x[0].shape, result.shape, x[1], 0, 0, [&](const auto &at, const auto &to) {
        result.at(to) = largest ? std::max(result.at(to), x[0].at(at)) : std::min(result.at(to), x[0].at(at));
      });
      return {result};
    };
  addIndexed(table);
}

} // namespace msc::reference
