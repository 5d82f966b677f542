// Broadcast, NeighborExchange, Send, Receive: tensors of some ranks go to others.
#include "dialects/net/NetOps.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

#include <map>

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

LogicalResult BroadcastOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<RankGroup> group = groupOf(at, static_cast<int64_t>(op.getRankSize()), op.getRankList()); // C2
  if (failed(group) || failed(checkRank(at, "root_rank", static_cast<int64_t>(op.getRootRank()), group->size))) // C1
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult SendOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkRank(at, "dest_rank", static_cast<int64_t>(op.getDestRank()), static_cast<int64_t>(op.getRankSize())))) // C1
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult ReceiveOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  auto ranks = static_cast<int64_t>(op.getRankSize());
  if (failed(checkRank(at, "src_rank", static_cast<int64_t>(op.getSrcRank()), ranks)) || // C1
      failed(checkRank(at, "dest_rank", static_cast<int64_t>(op.getDestRank().value_or(0)), ranks)))
    return failure();
  if (op.getShape() && *op.getShape() != at.shape(0)) // C2
    return at.error("'shape' of 'Receive' is " + Twine(shapeText(*op.getShape())) + ", but " + at.text(0) + " is sent", {0});
  if (op.getDtype() && *op.getDtype() != at.element(0)) // C2
    return at.error("'dtype' of 'Receive' is " + elementText(*op.getDtype()) + ", but " + at.name(0) + " is " +
                        elementText(at.element(0)),
                    {0});
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

namespace {

/// A list with a row of numbers of ranks for every rank.
struct Rows {
  ArrayRef<int64_t> numbers;
  int64_t ranks;

  size_t columns() const { return numbers.size() / static_cast<size_t>(ranks); }
  int64_t at(int64_t rank, size_t column) const { return numbers[static_cast<size_t>(rank) * columns() + column]; }
  /// How many entries of the rank's row up to the column name `other`.
  int64_t earlier(int64_t rank, size_t column, int64_t other) const {
    int64_t count = 0;
    for (size_t c = 0; c < column; ++c)
      count += at(rank, c) == other;
    return count;
  }
  /// The column of the rank's n-th entry that names `other`, or nothing.
  std::optional<size_t> find(int64_t rank, int64_t other, int64_t n) const {
    for (size_t c = 0; c < columns(); ++c)
      if (at(rank, c) == other && n-- == 0)
        return c;
    return std::nullopt;
  }
};

/// Every tensor that one list has on the way from a rank to another is in the other list, too.
std::optional<std::pair<int64_t, int64_t>> unmatched(const Rows &rows, const Rows &others) {
  for (int64_t rank = 0; rank < rows.ranks; ++rank)
    for (size_t column = 0; column < rows.columns(); ++column)
      if (int64_t other = rows.at(rank, column); other >= 0 && !others.find(other, rank, rows.earlier(rank, column, other)))
        return {{rank, other}};
  return std::nullopt;
}

} // namespace

/// Each row has a number for every tensor, within the ranks.
static LogicalResult checkRows(const Inference &at, StringRef name, const Rows &rows) {
  if (rows.numbers.size() % static_cast<size_t>(rows.ranks) != 0)
    return at.error("'" + name + "' of 'NeighborExchange' has " + Twine(rows.numbers.size()) + " numbers, which are no rows for " +
                    Twine(rows.ranks) + " ranks");
  for (int64_t rank : rows.numbers)
    if (rank < -1 || rank >= rows.ranks)
      return checkRank(at, name, rank, rows.ranks);
  return success();
}

LogicalResult NeighborExchangeOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Any)))
    return failure();
  for (unsigned i = 1; i < at.operands.size(); ++i)
    if (failed(at.checkSameShape(0, i))) // C1
      return failure();
  auto ranks = static_cast<int64_t>(op.getRankSize());
  Rows send{op.getSendRankIds(), ranks}, receive{op.getRecvRankIds(), ranks};
  if (failed(checkRows(at, "send_rank_ids", send)) || failed(checkRows(at, "recv_rank_ids", receive)))
    return failure();
  if (send.columns() != at.operands.size()) // C2
    return at.error("'send_rank_ids' of 'NeighborExchange' has rows of " + Twine(send.columns()) + ", but the number of operands is " +
                    Twine(at.operands.size()));
  if (auto pair = unmatched(send, receive)) // C3
    return at.error("rank " + Twine(pair->first) + " sends to rank " + Twine(pair->second) + " what that does not receive");
  if (auto pair = unmatched(receive, send)) // C3
    return at.error("rank " + Twine(pair->first) + " receives from rank " + Twine(pair->second) + " what that does not send");
  results.append(receive.columns(), tensorOf(at.shape(0), at.element(0)));
  return success();
}

//===-- gradients ---------------------------------------------------------===//

/// Whether the executing rank has this number within its group.
static Value isRankOfGroup(OpBuilder &builder, Location loc, const RankGroup &group, IntegerAttr ranks, int64_t place) {
  auto number = [&](int64_t value) {
    return builder.create<ConstantOp>(loc, RankedTensorType::get({}, builder.getI32Type()), llvm::APFloat(static_cast<double>(value)));
  };
  Value rank = builder.create<RankOp>(loc, ranks);
  if (group.inner != 1)
    rank = builder.create<FloorDivOp>(loc, rank, number(group.inner));
  if (group.outer != 1)
    rank = builder.create<FloorModOp>(loc, rank, number(group.size));
  return builder.create<EqualOp>(loc, rank, number(place));
}

LogicalResult BroadcastOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> dx) {
  RankGroup group = *rankGroup(static_cast<int64_t>(getRankSize()), getRankList().value_or(ArrayRef<int64_t>()));
  Value total = builder.create<AllReduceOp>(getLoc(), dy[0], builder.getStringAttr("sum"), getGroupAttr(), getRankListAttr(),
                                            getRankSizeAttr());
  Value isRoot = isRankOfGroup(builder, getLoc(), group, getRankSizeAttr(), static_cast<int64_t>(getRootRank()));
  dx[0] = builder.create<SelectOp>(getLoc(), isRoot, total, scalarLike(builder, getLoc(), 0, total));
  return success();
}

LogicalResult SendOp::buildGradient(OpBuilder &, ValueRange dy, const llvm::SmallBitVector &, MutableArrayRef<Value> dx) {
  dx[0] = dy[0];
  return success();
}

LogicalResult ReceiveOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &, MutableArrayRef<Value> dx) {
  dx[0] = builder.create<ReceiveOp>(getLoc(), dy[0], getSrTagAttr(),
                                    builder.getI64IntegerAttr(static_cast<int64_t>(getDestRank().value_or(0))), DenseI64ArrayAttr(),
                                    TypeAttr(), getSrcRankAttr(), getGroupAttr(), getRankSizeAttr());
  return success();
}

LogicalResult NeighborExchangeOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                                MutableArrayRef<Value> dx) {
  auto type = cast<RankedTensorType>(getX().front().getType());
  SmallVector<Value> sent;
  for (Value gradient : dy) {
    if (!gradient) {
      Value zero = builder.create<ConstantOp>(getLoc(), RankedTensorType::get({}, type.getElementType()), llvm::APFloat(0.0));
      gradient = builder.create<BroadcastToOp>(getLoc(), zero, type.getShape());
    }
    sent.push_back(gradient);
  }
  auto back = builder.create<NeighborExchangeOp>(getLoc(), ValueRange(sent), getRecvRankIdsAttr(), getSendRankIdsAttr(),
                                                 getGroupAttr(), getRankSizeAttr());
  for (auto [i, gradient] : llvm::enumerate(back->getResults()))
    if (wanted[i])
      dx[i] = gradient;
  return success();
}

//===-- rules -------------------------------------------------------------===//

ShardingRule BroadcastOp::shardingRule() { return rankTensorRule(*this); }
ShardingRule NeighborExchangeOp::shardingRule() { return rankTensorRule(*this); }
ShardingRule SendOp::shardingRule() { return rankTensorRule(*this); }
ShardingRule ReceiveOp::shardingRule() { return rankTensorRule(*this); }

//===-- lowering ----------------------------------------------------------===//

namespace {

/// A tensor of one rank of a group goes to another one.
struct Transfer {
  unsigned operand = 0;
  int64_t from = 0, to = 0;
};

/// The tensors of a group's ranks are the rows of one tensor, and rows are copied.
Communication copied(const RankGroup &group, ArrayRef<int64_t> own, ArrayRef<Transfer> transfers) {
  std::vector<int64_t> rows(own.begin(), own.end());
  rows.insert(rows.begin(), group.size);
  Communication result{group.shape(rows), group.cut(rows.size(), 0), group.cut(rows.size(), 0), {}};
  for (const Transfer &transfer : transfers) {
    msc::CopyRegion region = wholeRegion(result.shape, transfer.operand);
    region.ranges[group.leading()] = {.source = transfer.from, .target = transfer.to, .size = 1};
    result.regions.push_back(region);
  }
  return result;
}

} // namespace

LoweringKind BroadcastOp::loweringKind() { return LoweringKind::Expanded; }
Communication BroadcastOp::communication(unsigned) {
  RankGroup group = *rankGroup(static_cast<int64_t>(getRankSize()), getRankList().value_or(ArrayRef<int64_t>()));
  SmallVector<Transfer> transfers;
  for (int64_t rank = 0; rank < group.size; ++rank)
    transfers.push_back({0, static_cast<int64_t>(getRootRank()), rank});
  return copied(group, shapeOf(getX()), transfers);
}

LoweringKind NeighborExchangeOp::loweringKind() { return LoweringKind::Expanded; }
Communication NeighborExchangeOp::communication(unsigned output) {
  auto ranks = static_cast<int64_t>(getRankSize());
  Rows send{getSendRankIds(), ranks}, receive{getRecvRankIds(), ranks};
  SmallVector<Transfer> transfers;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (int64_t from = receive.at(rank, output); from >= 0)
      transfers.push_back({static_cast<unsigned>(*send.find(from, rank, receive.earlier(rank, output, from))), from, rank});
  return copied({1, ranks, 1}, shapeOf(getX().front()), transfers);
}

LoweringKind ReceiveOp::loweringKind() { return LoweringKind::Expanded; }
Communication ReceiveOp::communication(unsigned) {
  Transfer transfer{0, static_cast<int64_t>(getSrcRank()), static_cast<int64_t>(getDestRank().value_or(0))};
  return copied({1, static_cast<int64_t>(getRankSize()), 1}, shapeOf(getX()), transfer);
}

LoweringKind SendOp::loweringKind() { return LoweringKind::View; }
