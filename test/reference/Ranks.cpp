// Communication as rank 0 sees it where all ranks have equal tensors.
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "test/reference/Interpreter.h"

#include <cmath>
#include <map>

using namespace msc::net;

namespace msc::reference {

static int64_t groupSize(auto op) {
  return rankGroup(static_cast<int64_t>(op.getRankSize()), op.getRankList().value_or(llvm::ArrayRef<int64_t>()))->size;
}

/// As many ranks combine equal tensors.
static Tensor reduced(const Tensor &x, llvm::StringRef kind, int64_t ranks) {
  Tensor y = x;
  for (double &value : y.values)
    value = kind == "sum" ? value * static_cast<double>(ranks) : kind == "prod" ? std::pow(value, ranks) : value;
  return y;
}

/// The first of `pieces` pieces along a dimension.
static Tensor firstPiece(const Tensor &x, size_t dim, int64_t pieces) {
  Box box;
  for (int64_t size : x.shape)
    box.push_back({0, size});
  box[dim].end /= pieces;
  return slice(x, box);
}

/// `times` times x along a dimension.
static Tensor repeated(const Tensor &x, size_t dim, int64_t times) {
  std::vector<int64_t> shape = x.shape;
  shape[dim] *= times;
  Tensor y(shape);
  forEachIndex(shape, [&](std::vector<int64_t> index) {
    double &target = y.at(index);
    index[dim] %= x.shape[dim];
    target = x.at(index);
  });
  return y;
}

static Tensor allToAll(AlltoAllOp op, const Tensor &x) {
  auto dimension = [&](uint64_t dim) { return static_cast<size_t>((static_cast<int64_t>(dim) + x.rank()) % x.rank()); };
  int64_t ranks = groupSize(op);
  return repeated(firstPiece(x, dimension(op.getSplitDim()), ranks), dimension(op.getConcatDim()), ranks);
}

/// What rank 0 receives where all ranks have the same tensors: of a rank that sends it several, the first one first; zeros
/// where nobody sends.
static std::vector<Tensor> received(NeighborExchangeOp op, const std::vector<Tensor> &x) {
  auto send = op.getSendRankIds(), receive = op.getRecvRankIds();
  size_t ranks = op.getRankSize(), sends = send.size() / ranks;
  std::map<int64_t, size_t> taken; // of the tensors of each rank
  std::vector<Tensor> results;
  for (size_t output = 0; output < receive.size() / ranks; ++output) {
    int64_t from = receive[output];
    if (from < 0) {
      results.emplace_back(x[0].shape, 0.0);
      continue;
    }
    size_t &next = taken[from];
    while (send[static_cast<size_t>(from) * sends + next] != 0)
      ++next;
    results.push_back(x.at(next++));
  }
  return results;
}

void addRanks(Table &table) {
  using Operands = std::vector<Tensor>;
  table["Rank"] = [](mlir::Operation *, const Operands &) { return Operands{Tensor({}, 0.0)}; };
  table["AllReduce"] = [](mlir::Operation *op, const Operands &x) {
    auto reduce = llvm::cast<AllReduceOp>(op);
    return Operands{reduced(x[0], reduce.getOp(), groupSize(reduce))};
  };
  table["AllGather"] = [](mlir::Operation *op, const Operands &x) {
    return Operands{repeated(x[0], 0, groupSize(llvm::cast<AllGatherOp>(op)))};
  };
  table["ReduceScatter"] = [](mlir::Operation *op, const Operands &x) {
    auto scatter = llvm::cast<ReduceScatterOp>(op);
    return Operands{firstPiece(reduced(x[0], scatter.getOp(), groupSize(scatter)), 0, groupSize(scatter))};
  };
  table["AlltoAll"] = [](mlir::Operation *op, const Operands &x) { return Operands{allToAll(llvm::cast<AlltoAllOp>(op), x[0])}; };
  table["NeighborExchange"] = [](mlir::Operation *op, const Operands &x) {
    return received(llvm::cast<NeighborExchangeOp>(op), x);
  };
  table["Receive"] = [](mlir::Operation *op, const Operands &x) {
    return Operands{llvm::cast<ReceiveOp>(op).getDestRank().value_or(0) == 0 ? x[0] : Tensor(x[0].shape, 0.0)};
  };
  for (const char *same : {"Broadcast", "Send"})
    table[same] = [](mlir::Operation *, const Operands &x) { return Operands{x[0]}; };
}

} // namespace msc::reference
