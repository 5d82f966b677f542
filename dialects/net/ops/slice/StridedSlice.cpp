#include "dialects/net/NetOps.h"

using namespace mlir;
using namespace msc::net;

//===-- what the entries mean ---------------------------------------------===//

namespace {
/// The attributes in plain form.
struct Entries {
  ArrayRef<int64_t> begin, end, strides;
  int64_t beginMask, endMask, ellipsisMask, newAxisMask, shrinkMask;

  static bool has(int64_t mask, size_t entry) { return entry < 63 && (mask >> entry & 1) != 0; }
  bool isEllipsis(size_t entry) const { return has(ellipsisMask, entry); }
  bool isNewAxis(size_t entry) const { return has(newAxisMask, entry); }
  int64_t stride(size_t entry) const { return strides.empty() ? 1 : strides[entry]; }
  /// Entries that name one dimension each.
  size_t named() const {
    size_t count = 0;
    for (size_t entry = 0; entry < begin.size(); ++entry)
      count += !isEllipsis(entry) && !isNewAxis(entry);
    return count;
  }
};

/// What is taken: a region of as many dimensions as the operand, and how the result's dimensions come from these.
struct Selection {
  msc::CopyRegion region;
  SmallVector<int64_t> dims; ///< per dimension of the result one of the operand, -1: new

  SmallVector<int64_t> core() const { // sizes of the region
    return llvm::map_to_vector(region.ranges, [](const msc::CopyRange &range) { return range.size; });
  }
  SmallVector<int64_t> shape() const {
    return llvm::map_to_vector(dims, [&](int64_t dim) { return dim < 0 ? 1 : region.ranges[dim].size; });
  }
};
} // namespace

template <typename Op> static Entries entriesOf(Op op) {
  auto number = [](auto value) { return static_cast<int64_t>(value); };
  return {op.getBegin(),
          op.getEnd(),
          op.getStrides(),
          number(op.getBeginMask()),
          number(op.getEndMask()),
          number(op.getEllipsisMask()),
          number(op.getNewAxisMask()),
          number(op.getShrinkAxisMask())};
}

/// The elements that an entry takes of a dimension; size 0 or less: none.
static msc::CopyRange rangeOf(const Entries &entries, size_t entry, int64_t size) {
  int64_t stride = entries.stride(entry), begin = entries.begin[entry], end = entries.end[entry];
  if (Entries::has(entries.shrinkMask, entry)) {
    begin += begin < 0 ? size : 0;
    return {begin, 0, begin >= 0 && begin < size ? 1 : 0};
  }
  int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  auto bound = [&](int64_t index) { return std::clamp(index < 0 ? index + size : index, low, high); };
  begin = Entries::has(entries.beginMask, entry) ? (stride > 0 ? low : high) : bound(begin);
  end = Entries::has(entries.endMask, entry) ? (stride > 0 ? high : low) : bound(end);
  int64_t distance = stride > 0 ? end - begin : begin - end, step = std::abs(stride);
  int64_t count = distance <= 0 ? 0 : (distance + step - 1) / step;
  return {begin, 0, count, count == 1 ? 1 : stride};
}

static Selection selectionOf(const Entries &entries, ArrayRef<int64_t> from) {
  Selection selection;
  auto take = [&](msc::CopyRange range, bool keeps = true) {
    if (keeps)
      selection.dims.push_back(selection.region.ranges.size());
    selection.region.ranges.push_back(range);
  };
  auto takeWhole = [&] { take({0, 0, from[selection.region.ranges.size()]}); };
  for (size_t entry = 0; entry < entries.begin.size(); ++entry) {
    if (entries.isEllipsis(entry))
      for (size_t count = from.size() - entries.named(); count > 0; --count)
        takeWhole();
    else if (entries.isNewAxis(entry))
      selection.dims.push_back(-1);
    else
      take(rangeOf(entries, entry, from[selection.region.ranges.size()]), !Entries::has(entries.shrinkMask, entry));
  }
  while (selection.region.ranges.size() < from.size())
    takeWhole();
  return selection;
}

static Selection selectionOf(StridedSliceOp op) {
  return selectionOf(entriesOf(op), cast<RankedTensorType>(op.getInputX().getType()).getShape());
}

/// Between operand and result before dimensions are made and left out.
static RegionCopy coreCopyOf(StridedSliceOp op) {
  Selection selection = selectionOf(op);
  SmallVector<int64_t> core = selection.core();
  return {{cast<RankedTensorType>(op.getInputX().getType()).getShape().vec()},
          {{core.begin(), core.end()}},
          {{selection.region}}};
}

//===-- constraints and result type ---------------------------------------===//

LogicalResult StridedSliceOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  Entries entries = entriesOf(op);
  size_t count = entries.begin.size();
  if (entries.end.size() != count || (!entries.strides.empty() && entries.strides.size() != count)) // C1
    return at.error("'begin', 'end' and 'strides' of 'StridedSlice' have " + Twine(count) + ", " +
                    Twine(entries.end.size()) + " and " + Twine(entries.strides.size()) + " entries");
  if (llvm::is_contained(entries.strides, 0)) // C2
    return at.error("a stride of 'StridedSlice' is 0");
  if (llvm::popcount(static_cast<uint64_t>(entries.ellipsisMask)) > 1)
    return at.error("'ellipsis_mask' of 'StridedSlice' names more than one entry");
  if (entries.named() > at.shape(0).size())
    return at.error("'StridedSlice' has entries for " + Twine(entries.named()) + " dimensions, but " + at.text(0) +
                        " has " + Twine(at.rank(0)),
                    {0});
  Selection selection = selectionOf(entries, at.shape(0));
  for (auto [dim, range] : llvm::enumerate(selection.region.ranges))
    if (range.size < 1) // C3
      return at.error("'StridedSlice' takes no element of dimension " + Twine(dim) + " of " + at.text(0), {0});
  results.push_back(tensorOf(selection.shape(), at.element(0)));
  return success();
}

//===-- gradient, rule, cost, lowering ------------------------------------===//

msc::CopyRegions StridedSliceOp::copyRegions(unsigned) {
  return {selectionOf(*this).region};
}

LogicalResult StridedSliceOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                            MutableArrayRef<Value> gradients) {
  RegionCopy copy = coreCopyOf(*this);
  Value core = reshaped(builder, getLoc(), dy[0], copy.results[0]);
  gradients[0] = gradientOfRegions(builder, getLoc(), copy, core, 0);
  return success();
}

ShardingRule StridedSliceOp::shardingRule() {
  ShardingRule rule = regionsRule(coreCopyOf(*this));
  std::vector<DimFactors> core = std::move(rule.results[0]);
  rule.results[0].clear();
  for (int64_t dim : selectionOf(*this).dims)
    rule.results[0].push_back(dim < 0 ? DimFactors() : core[dim]);
  return rule;
}

OperatorCost StridedSliceOp::cost(ArrayRef<std::vector<int64_t>>, ArrayRef<std::vector<int64_t>> results) {
  return copyCost(*this, results);
}

LoweringKind StridedSliceOp::loweringKind() {
  Selection selection = selectionOf(*this);
  return selection.shape() == selection.core() ? LoweringKind::Regions : LoweringKind::Expanded;
}

SmallVector<Value> StridedSliceOp::expand(OpBuilder &builder, ValueRange operands) {
  Selection selection = selectionOf(*this);
  Value core = builder.create<CopyRegionsOp>(getLoc(), operands, selection.core(), msc::flattened({selection.region}),
                                             llvm::APFloat(0.0));
  return {reshaped(builder, getLoc(), core, selection.shape())};
}
