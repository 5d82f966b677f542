// AllReduce, AllGather, ReduceScatter, AlltoAll, Rank: what the ranks of a group hold changes its sharding.
#include "dialects/net/NetOps.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace msc::net;
using msc::ReduceKind;

//===-- constraints and result types --------------------------------------===//

/// Dimension `dim` falls into as many equal pieces as the group has ranks.
static LogicalResult checkDivides(const Inference &at, int64_t dim, const RankGroup &group) {
  int64_t size = at.shape(0)[dim];
  if (size % group.size == 0)
    return success();
  return at.error("'" + at.opName + "' gives each of " + Twine(group.size) + " ranks an equal piece of dimension " + Twine(dim) +
                      " of " + at.text(0) + ", which has " + Twine(size) + " elements",
                  {0});
}

static LogicalResult checkHasDimension(const Inference &at) {
  if (at.rank(0) != 0)
    return success();
  return at.error("'" + at.opName + "' works along dimension 0, but " + at.text(0) + " has none", {0});
}

static FailureOr<RankGroup> groupOf(const Inference &at, auto &op) {
  return groupOf(at, static_cast<int64_t>(op.getRankSize()), op.getRankList());
}

LogicalResult AllReduceOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Number)) ||                      // C1
      failed(checkWord(at, "op", op.getOp(), kRankReductions)) || failed(::groupOf(at, op))) // C2
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult AllGatherOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<RankGroup> group = ::groupOf(at, op);
  if (failed(group) || failed(checkHasDimension(at))) // C2, C1
    return failure();
  SmallVector<int64_t> shape(at.shape(0));
  shape[0] *= group->size;
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult ReduceScatterOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<RankGroup> group = ::groupOf(at, op);
  if (failed(group) || failed(at.checkElement(0, ElementSet::Number)) ||           // C2, C1
      failed(checkWord(at, "op", op.getOp(), kRankReductions)) || failed(checkHasDimension(at)) ||
      failed(checkDivides(at, 0, *group))) // C3
    return failure();
  SmallVector<int64_t> shape(at.shape(0));
  shape[0] /= group->size;
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

/// `dim`, counted from the end if negative; fails where there is no such dimension.
static FailureOr<int64_t> dimensionOf(const Inference &at, StringRef name, int64_t dim) {
  if (dim >= -at.rank(0) && dim < at.rank(0))
    return dim < 0 ? dim + at.rank(0) : dim;
  return at.error("'" + name + "' of '" + at.opName + "' is " + Twine(dim) + ", but " + at.text(0) + " has " + Twine(at.rank(0)) +
                      (at.rank(0) == 1 ? " dimension" : " dimensions"),
                  {0});
}

LogicalResult AlltoAllOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<RankGroup> group = ::groupOf(at, op); // C2
  FailureOr<int64_t> split = dimensionOf(at, "split_dim", static_cast<int64_t>(op.getSplitDim()));
  if (failed(group) || failed(split)) // C1
    return failure();
  FailureOr<int64_t> concat = dimensionOf(at, "concat_dim", static_cast<int64_t>(op.getConcatDim()));
  if (failed(concat))
    return failure();
  if (auto count = static_cast<int64_t>(op.getSplitCount()); count != group->size) // C3
    return at.error("'split_count' of 'AlltoAll' is " + Twine(count) + ", but the group has " + Twine(group->size) +
                    (group->size == 1 ? " rank" : " ranks"));
  if (failed(checkDivides(at, *split, *group)))
    return failure();
  SmallVector<int64_t> shape(at.shape(0));
  shape[*split] /= group->size;
  shape[*concat] *= group->size;
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult RankOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  results.push_back(tensorOf({}, IntegerType::get(at.context, 32)));
  return success();
}

//===-- gradients ---------------------------------------------------------===//

static Value allReduced(OpBuilder &builder, auto op, Value x, StringRef kind) {
  return builder.create<AllReduceOp>(op.getLoc(), x, builder.getStringAttr(kind), op.getGroupAttr(), op.getRankListAttr(),
                                     op.getRankSizeAttr());
}
static Value allGathered(OpBuilder &builder, auto op, Value x) {
  return builder.create<AllGatherOp>(op.getLoc(), x, op.getGroupAttr(), op.getRankListAttr(), op.getRankSizeAttr());
}
static Value reduceScattered(OpBuilder &builder, auto op, Value x, StringRef kind) {
  return builder.create<ReduceScatterOp>(op.getLoc(), x, builder.getStringAttr(kind), op.getGroupAttr(), op.getRankListAttr(),
                                         op.getRankSizeAttr());
}

/// `dy` where the element is the extremum.
static Value whereEqual(OpBuilder &builder, Location loc, Value x, Value extremum, Value dy) {
  return builder.create<SelectEqualOp>(loc, x, extremum, dy, scalarLike(builder, loc, 0, dy));
}

/// The gradient of a product over the ranks: the factors of all ranks side by side, multiplied, and back. Each rank gets its
/// own row of what `dy` gives to the factors; rows of several ranks are brought together by `kind`.
static Value gradientOfProduct(OpBuilder &builder, auto op, Value dy, StringRef kind) {
  SmallVector<int64_t> row(cast<RankedTensorType>(op.getX().getType()).getShape());
  row.insert(row.begin(), 1);
  Value factors = allGathered(builder, op, reshaped(builder, op.getLoc(), op.getX(), row));
  auto product = builder.create<ReduceProdOp>(op.getLoc(), factors, ArrayRef<int64_t>{0}, /*keep_dims=*/false);
  SmallVector<Value> slopes(1);
  if (failed(cast<Gradient>(product.getOperation()).buildGradient(builder, dy, llvm::SmallBitVector(1, true), slopes)))
    return {};
  Value own = reduceScattered(builder, op, slopes[0], kind);
  return reshaped(builder, op.getLoc(), own, ArrayRef(row).drop_front());
}

LogicalResult AllReduceOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> dx) {
  if (getOp() == "prod")
    return success((dx[0] = gradientOfProduct(builder, *this, dy[0], "sum")) != nullptr);
  Value total = allReduced(builder, *this, dy[0], "sum");
  dx[0] = getOp() == "sum" ? total : whereEqual(builder, getLoc(), getX(), getOutput(), total);
  return success();
}

LogicalResult AllGatherOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> dx) {
  dx[0] = reduceScattered(builder, *this, dy[0], "sum");
  return success();
}

LogicalResult ReduceScatterOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                             MutableArrayRef<Value> dx) {
  Value whole = allGathered(builder, *this, dy[0]);
  if (getOp() == "prod") // all ranks find the same rows
    return success((dx[0] = gradientOfProduct(builder, *this, whole, "max")) != nullptr);
  bool isSum = getOp() == "sum";
  dx[0] = isSum ? whole : whereEqual(builder, getLoc(), getX(), allGathered(builder, *this, getOutput()), whole);
  return success();
}

LogicalResult AlltoAllOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                        MutableArrayRef<Value> dx) {
  dx[0] = builder.create<AlltoAllOp>(getLoc(), dy[0], getSplitCountAttr(), getConcatDimAttr(), getSplitDimAttr(), getGroupAttr(),
                                     getRankListAttr(), getRankSizeAttr());
  return success();
}

//===-- rules -------------------------------------------------------------===//

ShardingRule AllReduceOp::shardingRule() { return rankTensorRule(*this); }
ShardingRule AllGatherOp::shardingRule() { return rankTensorRule(*this); }
ShardingRule ReduceScatterOp::shardingRule() { return rankTensorRule(*this); }
ShardingRule AlltoAllOp::shardingRule() { return rankTensorRule(*this); }
ShardingRule RankOp::shardingRule() { return rankTensorRule(*this); }

//===-- lowering ----------------------------------------------------------===//

static ReduceKind reductionOf(StringRef word) {
  return llvm::StringSwitch<ReduceKind>(word)
      .Case("max", ReduceKind::Max)
      .Case("min", ReduceKind::Min)
      .Case("prod", ReduceKind::Prod)
      .Default(ReduceKind::Sum);
}

static RankGroup groupOf(auto op) {
  return *rankGroup(static_cast<int64_t>(op.getRankSize()), op.getRankList().value_or(ArrayRef<int64_t>()));
}

LoweringKind AllReduceOp::loweringKind() { return LoweringKind::Expanded; }
Communication AllReduceOp::communication(unsigned) {
  std::vector<int64_t> own = shapeOf(getX());
  RankGroup group = ::groupOf(*this);
  return {group.shape(own), group.terms(own.size(), reductionOf(getOp())), group.whole(own.size()), {}};
}

LoweringKind AllGatherOp::loweringKind() { return LoweringKind::Expanded; }
Communication AllGatherOp::communication(unsigned) {
  std::vector<int64_t> own = shapeOf(getOutput());
  RankGroup group = ::groupOf(*this);
  return {group.shape(own), group.cut(own.size(), 0), group.whole(own.size()), {}};
}

LoweringKind ReduceScatterOp::loweringKind() { return LoweringKind::Expanded; }
Communication ReduceScatterOp::communication(unsigned) {
  std::vector<int64_t> own = shapeOf(getX());
  RankGroup group = ::groupOf(*this);
  return {group.shape(own), group.terms(own.size(), reductionOf(getOp())), group.cut(own.size(), 0), {}};
}

LoweringKind AlltoAllOp::loweringKind() { return LoweringKind::Expanded; }
Communication AlltoAllOp::communication(unsigned) {
  std::vector<int64_t> own = shapeOf(getX());
  auto dims = static_cast<int64_t>(own.size());
  auto dimension = [&](uint64_t dim) { return static_cast<size_t>((static_cast<int64_t>(dim) + dims) % dims); };
  RankGroup group = ::groupOf(*this);
  own[dimension(getConcatDim())] *= group.size;
  return {group.shape(own), group.cut(own.size(), dimension(getConcatDim())), group.cut(own.size(), dimension(getSplitDim())), {}};
}

/// Every rank's own number out of all of them.
LoweringKind RankOp::loweringKind() { return LoweringKind::Expanded; }
Communication RankOp::communication(unsigned) {
  RankGroup all{1, static_cast<int64_t>(getRankSize()), 1};
  return {{all.size}, all.whole(1), all.cut(1, 0), {}};
}
