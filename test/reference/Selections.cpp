// Operators that take elements from other places: every element of a result by its own formula.
#include "test/reference/Interpreter.h"

using namespace msc::net;

namespace msc::reference {

namespace {
using Index = std::vector<int64_t>;
using List = std::vector<Tensor>;

Index shapeOfResult(mlir::Operation *op, unsigned result = 0) {
  return llvm::cast<mlir::RankedTensorType>(op->getResult(result).getType()).getShape().vec();
}

size_t dimensionOf(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

/// The tensor whose element at `index` is `element(index)`.
Tensor made(const Index &shape, const std::function<double(const Index &)> &element) {
  Tensor result(shape);
  forEachIndex(shape, [&](const Index &index) { result.at(index) = element(index); });
  return result;
}

/// Parts of the given sizes along `dim`.
List parts(const Tensor &x, size_t dim, const Index &sizes) {
  List results;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    Index shape = x.shape;
    shape[dim] = size;
    results.push_back(made(shape, [&](Index index) {
      index[dim] += begin;
      return x.at(index);
    }));
    begin += size;
  }
  return results;
}

Tensor without(const Tensor &x, size_t dim) {
  Index shape = x.shape;
  shape.erase(shape.begin() + static_cast<long>(dim));
  return {shape, x.values};
}

Tensor joined(const List &x, size_t dim) {
  Index shape = x[0].shape;
  shape[dim] = 0;
  for (const Tensor &part : x)
    shape[dim] += part.shape[dim];
  return made(shape, [&](Index index) {
    size_t part = 0;
    while (index[dim] >= x[part].shape[dim])
      index[dim] -= x[part++].shape[dim];
    return x[part].at(index);
  });
}

/// Python's x[begin:end:stride] for one dimension, walked step by step.
Index walked(int64_t begin, int64_t end, int64_t stride, bool noBegin, bool noEnd, int64_t size) {
  Index taken;
  begin = noBegin ? (stride > 0 ? 0 : size - 1) : begin < 0 ? begin + size : begin;
  end = noEnd ? (stride > 0 ? size : -1) : end < 0 ? std::max<int64_t>(end + size, -1) : end;
  for (int64_t i = begin; stride > 0 ? i < std::min(end, size) : i > end; i += stride)
    if (i >= 0 && i < size)
      taken.push_back(i);
  return taken;
}

List stridedSlice(mlir::Operation *operation, const List &x) {
  auto op = llvm::cast<StridedSliceOp>(operation);
  auto has = [](uint64_t mask, size_t entry) { return (mask >> entry & 1) != 0; };
  size_t entries = op.getBegin().size(), named = 0;
  for (size_t i = 0; i < entries; ++i)
    named += !has(op.getEllipsisMask(), i) && !has(op.getNewAxisMask(), i);
  std::vector<Index> taken; // per dimension of x
  auto whole = [&] {
    int64_t size = x[0].shape[taken.size()];
    taken.push_back(walked(0, size, 1, false, false, size));
  };
  for (size_t i = 0; i < entries; ++i) {
    if (has(op.getEllipsisMask(), i)) {
      for (size_t count = x[0].shape.size() - named; count > 0; --count)
        whole();
    } else if (!has(op.getNewAxisMask(), i)) {
      int64_t size = x[0].shape[taken.size()], begin = op.getBegin()[i];
      int64_t stride = op.getStrides().empty() ? 1 : op.getStrides()[i];
      if (has(op.getShrinkAxisMask(), i))
        taken.push_back({begin < 0 ? begin + size : begin});
      else
        taken.push_back(walked(begin, op.getEnd()[i], stride, has(op.getBeginMask(), i), has(op.getEndMask(), i), size));
    }
  }
  while (taken.size() < x[0].shape.size())
    whole();
  Index shape;
  for (const Index &indices : taken)
    shape.push_back(static_cast<int64_t>(indices.size()));
  Tensor core = made(shape, [&](Index index) {
    for (size_t dim = 0; dim < index.size(); ++dim)
      index[dim] = taken[dim][index[dim]];
    return x[0].at(index);
  });
  return {Tensor(shapeOfResult(operation), core.values)};
}

/// Where an element outside a dimension of size n comes from: mirrored at its ends.
int64_t mirrored(int64_t index, int64_t n, bool repeatsOutermost) {
  if (index < 0)
    return repeatsOutermost ? -1 - index : -index;
  return index < n ? index : repeatsOutermost ? 2 * n - 1 - index : 2 * n - 2 - index;
}

List padded(mlir::Operation *op, const Tensor &x, llvm::ArrayRef<int64_t> paddings, llvm::StringRef mode) {
  return {made(shapeOfResult(op), [&](Index index) {
    bool inside = true;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      index[dim] -= paddings[2 * dim];
      if (!mode.empty())
        index[dim] = mirrored(index[dim], x.shape[dim], mode == "SYMMETRIC");
      inside &= index[dim] >= 0 && index[dim] < x.shape[dim];
    }
    return inside ? x.at(index) : 0;
  })};
}

template <typename Op> List triangle(mlir::Operation *op, const Tensor &x, bool upper) {
  int64_t diagonal = llvm::cast<Op>(op).getDiagonal();
  return {made(x.shape, [&](const Index &index) {
    int64_t above = index.back() - index[index.size() - 2];
    return (upper ? above >= diagonal : above <= diagonal) ? x.at(index) : 0;
  })};
}

List copyRegions(mlir::Operation *operation, const List &x) {
  auto op = llvm::cast<CopyRegionsOp>(operation);
  size_t rank = op.getShape().size();
  Tensor result(op.getShape().vec(), op.getFill().convertToDouble());
  for (llvm::ArrayRef<int64_t> left = op.getRegions(); !left.empty(); left = left.drop_front(1 + 5 * rank)) {
    auto number = [&](size_t dim, size_t which) { return left[1 + 5 * dim + which]; };
    Index sizes;
    for (size_t dim = 0; dim < rank; ++dim)
      sizes.push_back(number(dim, 2));
    forEachIndex(sizes, [&](const Index &index) {
      Index from, to;
      for (size_t dim = 0; dim < rank; ++dim) {
        from.push_back(number(dim, 0) + index[dim] * number(dim, 3));
        to.push_back(number(dim, 1) + index[dim] * number(dim, 4));
      }
      result.at(to) = x[left.front()].at(from);
    });
  }
  return {result};
}
} // namespace

static void addParts(Table &table) {
  table["Slice"] = [](mlir::Operation *op, const List &x) -> List {
    return {made(shapeOfResult(op), [&](Index index) {
      for (size_t dim = 0; dim < index.size(); ++dim)
        index[dim] += llvm::cast<SliceOp>(op).getBegin()[dim];
      return x[0].at(index);
    })};
  };
  table["StridedSlice"] = stridedSlice;
  table["Split"] = [](mlir::Operation *op, const List &x) {
    size_t dim = dimensionOf(llvm::cast<SplitOp>(op).getAxis(), x[0].rank()), count = op->getNumResults();
    return parts(x[0], dim, Index(count, x[0].shape[dim] / static_cast<int64_t>(count)));
  };
  table["SplitV"] = [](mlir::Operation *op, const List &x) {
    size_t dim = dimensionOf(llvm::cast<SplitVOp>(op).getSplitDim(), x[0].rank());
    Index sizes;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      sizes.push_back(shapeOfResult(op, i)[dim]);
    return parts(x[0], dim, sizes);
  };
  table["Unstack"] = [](mlir::Operation *op, const List &x) {
    size_t dim = dimensionOf(llvm::cast<UnstackOp>(op).getAxis(), x[0].rank());
    List results;
    for (const Tensor &part : parts(x[0], dim, Index(x[0].shape[dim], 1)))
      results.push_back(without(part, dim));
    return results;
  };
}

static void addJoins(Table &table) {
  table["Concat"] = [](mlir::Operation *op, const List &x) -> List {
    return {joined(x, dimensionOf(llvm::cast<ConcatOp>(op).getAxis(), x[0].rank()))};
  };
  table["Stack"] = [](mlir::Operation *op, const List &x) -> List {
    size_t dim = dimensionOf(llvm::cast<StackOp>(op).getAxis(), x[0].rank() + 1);
    List layers;
    for (const Tensor &tensor : x) {
      Index shape = tensor.shape;
      shape.insert(shape.begin() + static_cast<long>(dim), 1);
      layers.emplace_back(shape, tensor.values);
    }
    return {joined(layers, dim)};
  };
  table["Pad"] = [](mlir::Operation *op, const List &x) {
    return padded(op, x[0], llvm::cast<PadOp>(op).getPaddings(), "");
  };
  table["MirrorPad"] = [](mlir::Operation *op, const List &x) {
    auto pad = llvm::cast<MirrorPadOp>(op);
    return padded(op, x[0], pad.getPaddings(), pad.getMode());
  };
  table["Tile"] = [](mlir::Operation *op, const List &x) -> List {
    return {made(shapeOfResult(op), [&](Index index) {
      index.erase(index.begin(), index.end() - x[0].rank());
      for (size_t dim = 0; dim < index.size(); ++dim)
        index[dim] %= x[0].shape[dim];
      return x[0].at(index);
    })};
  };
}

void addSelections(Table &table) {
  addParts(table);
  addJoins(table);
  table["Roll"] = [](mlir::Operation *op, const List &x) -> List {
    auto roll = llvm::cast<RollOp>(op);
    return {made(x[0].shape, [&](Index index) {
      for (auto [axis, shift] : llvm::zip(roll.getAxis(), roll.getShift())) {
        size_t dim = dimensionOf(axis, x[0].rank());
        int64_t size = x[0].shape[dim];
        index[dim] = ((index[dim] - shift) % size + size) % size;
      }
      return x[0].at(index);
    })};
  };
  table["ReverseV2"] = [](mlir::Operation *op, const List &x) -> List {
    return {made(x[0].shape, [&](Index index) {
      for (int64_t axis : llvm::cast<ReverseV2Op>(op).getAxis()) {
        size_t dim = dimensionOf(axis, x[0].rank());
        index[dim] = x[0].shape[dim] - 1 - index[dim];
      }
      return x[0].at(index);
    })};
  };
  table["Triu"] = [](mlir::Operation *op, const List &x) { return triangle<TriuOp>(op, x[0], true); };
  table["Tril"] = [](mlir::Operation *op, const List &x) { return triangle<TrilOp>(op, x[0], false); };
  table["CopyRegions"] = copyRegions;
}

} // namespace msc::reference
