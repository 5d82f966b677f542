#include "dialects/net/Halo.h"

#include "dialects/net/ops/support/Rules.h"

#include <algorithm>
#include <functional>

using namespace mlir;

namespace msc::net {

/// The factor of a dimension if it has a halo, else -1.
static int32_t haloFactor(const ShardingRule &rule, const DimFactors &dim) {
  return dim.size() == 1 && rule.factors[dim[0]].halo ? dim[0] : -1;
}

/// The factors of the leader's dimensions.
static const std::vector<DimFactors> &leaderDims(Operation *op, const ShardingRule &rule) {
  Value leader = cast<HaloInterface>(op).haloLeader();
  if (auto result = dyn_cast<OpResult>(leader); result && result.getOwner() == op)
    return rule.results[result.getResultNumber()];
  return rule.operands[llvm::find(op->getOperands(), leader) - op->operand_begin()];
}

/// What the ranks of each piece need of a dimension of size `size`.
static std::vector<Range> needsOf(HaloInterface op, unsigned operand, unsigned dim, int64_t leaderSize, int64_t pieces) {
  std::vector<Range> needs;
  NeededIndices needed = op.neededIndices(operand, dim);
  for (int64_t piece = 0; piece < pieces; ++piece) {
    Range own = pieceOf(leaderSize, piece, pieces);
    needs.push_back(own.size() == 0 ? Range{0, 0} : needed(own));
  }
  return needs;
}

/// Every rank has what it needs.
static bool suffices(llvm::ArrayRef<Range> needs, int64_t size) {
  for (size_t piece = 0; piece < needs.size(); ++piece) {
    Range own = pieceOf(size, static_cast<int64_t>(piece), static_cast<int64_t>(needs.size()));
    if (needs[piece].size() != 0 && (needs[piece].begin < own.begin || needs[piece].end > own.end))
      return false;
  }
  return true;
}

static int64_t largest(llvm::ArrayRef<Range> needs) {
  int64_t most = 0;
  for (const Range &range : needs)
    most = std::max(most, range.size());
  return most;
}

static HaloWindows windowsOf(Operation *op, const ShardingRule &rule, unsigned operand, const Sharding &sharding) {
  HaloWindows windows{operand, sharding, shapeOf(op->getOperand(operand))};
  windows.windowShape = windows.shape;
  windows.windowed.assign(windows.shape.size(), 0);
  windows.needs.resize(windows.shape.size());
  auto reaches = cast<HaloInterface>(op);
  const std::vector<DimFactors> &leader = leaderDims(op, rule);
  std::vector<int64_t> leaderShape = shapeOf(reaches.haloLeader());
  for (unsigned dim = 0; dim < windows.shape.size(); ++dim) {
    int32_t factor = haloFactor(rule, rule.operands[operand][dim]);
    auto found = llvm::find_if(leader, [&](const DimFactors &dims) { return dims == DimFactors{factor}; });
    int64_t pieces = sharding.pieces(dim);
    if (factor < 0 || found == leader.end() || pieces == 1)
      continue;
    windows.needs[dim] = needsOf(reaches, operand, dim, leaderShape[found - leader.begin()], pieces);
    if (suffices(windows.needs[dim], windows.shape[dim]))
      continue;
    windows.windowed[dim] = windows.shape[dim];
    windows.windowShape[dim] = pieces * largest(windows.needs[dim]);
  }
  return windows;
}

/// Some dimension that has a halo is cut.
static bool isCut(const ShardingRule &rule, unsigned operand, const Sharding &sharding) {
  for (size_t dim = 0; dim < rule.operands[operand].size(); ++dim)
    if (!sharding.dims[dim].empty() && haloFactor(rule, rule.operands[operand][dim]) >= 0)
      return true;
  return false;
}

std::vector<HaloWindows> halosOf(Operation *op, const std::vector<Sharding> &operands) {
  return halosOf(op, cast<ShardingRuleInterface>(op).shardingRule(), operands);
}

std::vector<HaloWindows> halosOf(Operation *op, const ShardingRule &rule, const std::vector<Sharding> &operands) {
  std::vector<HaloWindows> all;
  const size_t leader = llvm::find(op->getOperands(), cast<HaloInterface>(op).haloLeader()) - op->operand_begin();
  for (unsigned operand = 0; operand < operands.size(); ++operand) {
    if (operand == leader || !isCut(rule, operand, operands[operand]))
      continue;
    HaloWindows windows = windowsOf(op, rule, operand, operands[operand]);
    if (llvm::any_of(windows.windowed, [](int64_t size) { return size != 0; }))
      all.push_back(std::move(windows));
  }
  return all;
}

CopyRegions HaloWindows::regions() const {
  std::vector<std::vector<CopyRange>> ranges;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<CopyRange> &here = ranges.emplace_back();
    if (windowed[dim] == 0)
      here.push_back({0, 0, shape[dim]});
    else
      for (size_t piece = 0; piece < needs[dim].size(); ++piece)
        if (const Range &need = needs[dim][piece]; need.size() != 0)
          here.push_back({need.begin, static_cast<int64_t>(piece) * largest(needs[dim]), need.size()});
  }
  return allRegions(ranges);
}

bool HaloWindows::fills() const {
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (windowed[dim] != 0 && llvm::any_of(needs[dim], [&](const Range &need) { return need.size() != largest(needs[dim]); }))
      return true;
  return false;
}

/// Elements that the rank with certain pieces of the windowed dimensions receives; of the other dimensions it has the most.
static int64_t receivedAt(const HaloWindows &windows, llvm::ArrayRef<int64_t> capacity, llvm::ArrayRef<int64_t> pieces) {
  int64_t needed = 1, held = 1;
  for (size_t dim = 0; dim < windows.shape.size(); ++dim) {
    if (pieces[dim] < 0) {
      needed *= capacity[dim];
      held *= capacity[dim];
      continue;
    }
    Range own = pieceOf(windows.shape[dim], pieces[dim], windows.sharding.pieces(dim));
    Range need = windows.windowed[dim] == 0 ? own : windows.needs[dim][pieces[dim]];
    needed *= need.size();
    held *= std::max<int64_t>(0, std::min(need.end, own.end) - std::max(need.begin, own.begin));
  }
  return needed - held;
}

/// Sets what every tensor receives on the rank that receives most in all. Dimensions in which some operand has windows are
/// cut alike in all operands that carry the factor.
static void countReceived(llvm::ArrayRef<HaloWindows> all, RegionExchange &exchange) {
  size_t rank = all.front().shape.size();
  std::vector<int64_t> pieces(rank, -1), most(all.size(), 0);
  int64_t mostInAll = -1;
  std::vector<std::vector<int64_t>> capacities;
  for (const HaloWindows &windows : all)
    capacities.push_back(windows.sharding.capacity(windows.shape));
  std::function<void(size_t)> visit = [&](size_t dim) {
    if (dim == rank) {
      std::vector<int64_t> received;
      int64_t sum = 0;
      for (auto [windows, capacity] : llvm::zip(all, capacities)) {
        received.push_back(receivedAt(windows, capacity, pieces));
        sum += received.back();
      }
      if (sum > mostInAll) {
        mostInAll = sum;
        most = std::move(received);
      }
      return;
    }
    bool hasWindows = llvm::any_of(all, [&](const HaloWindows &windows) { return windows.windowed[dim] != 0; });
    for (int64_t piece = hasWindows ? 0 : -1; piece < (hasWindows ? all.front().sharding.pieces(dim) : 0); ++piece) {
      pieces[dim] = piece;
      visit(dim + 1);
    }
  };
  visit(0);
  for (size_t i = 0; i < all.size(); ++i)
    exchange.tensors[i].received = most[i];
}

RegionExchange haloExchange(llvm::ArrayRef<HaloWindows> windows) {
  RegionExchange exchange;
  if (windows.empty())
    return exchange;
  std::vector<bool> moved(windows.front().shape.size(), false);
  std::vector<Sharding> shardings;
  for (const HaloWindows &tensor : windows) {
    for (size_t dim = 0; dim < moved.size(); ++dim)
      moved[dim] = moved[dim] || tensor.windowed[dim] != 0;
    exchange.fills.push_back(tensor.fills());
    auto result = static_cast<unsigned>(exchange.tensors.size());
    exchange.tensors.push_back({tensor.operand, result, {tensor.sharding, tensor.shape, tensor.sharding, tensor.windowShape, {}}});
    shardings.push_back(tensor.sharding);
  }
  findExchangeGroup(moved, shardings, exchange);
  countReceived(windows, exchange);
  return exchange;
}

} // namespace msc::net
