#include "test/passes/partition/RankInterpreter.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/RegionExchange.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Decisions.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using msc::reference::Tensor;

namespace msc::test {

RankInterpreter::RankInterpreter(net::NetworkOp network) : network(network), devices(passes::getDevices(network)) {}

Shards RankInterpreter::cut(const Tensor &whole, Value value) const {
  Shards shards;
  for (int64_t rank = 0; rank < devices; ++rank)
    shards.push_back(reference::slice(whole, dist::shardingOf(value).localBox(whole.shape, rank)));
  return shards;
}

std::string RankInterpreter::run(const reference::Tensors &global) {
  for (Value input : network.getBody().getArguments())
    values[input] = cut(global.at(net::getValueName(input).str()), input);
  for (Operation &op : network.getBody().front()) {
    std::string wrong = llvm::TypeSwitch<Operation *, std::string>(&op)
                            .Case([&](net::ParamOp param) {
                              values[param.getValue()] = cut(global.at(param.getName().str()), param.getValue());
                              return "";
                            })
                            .Case([&](net::ScalarOp scalar) {
                              values[scalar.getValue()] = cut(global.at(scalar.getName().str()), scalar.getValue());
                              return "";
                            })
                            .Case([&](net::ConstantOp constant) {
                              Value value = constant.getValue();
                              values[value] =
                                  cut(Tensor(passes::shapeOf(value), constant.getSplat().convertToDouble()), value);
                              return "";
                            })
                            .Case([&](dist::CollectiveOp move) { return collective(move); })
                            .Case([&](dist::SliceOp move) { return slice(move); })
                            .Case<net::UpdateOp, net::ReturnOp>([](Operation *) { return ""; })
                            .Default([&](Operation *other) { return evaluate(*other); });
    if (!wrong.empty())
      return (op.getName().getStringRef() + " '" + net::getInstanceName(&op) + "': " + wrong).str();
  }
  return "";
}

/// Coordinates on the partial axes: which term a rank holds.
static std::vector<int64_t> termOf(const Sharding &sharding, int64_t rank) {
  std::vector<int64_t> at = sharding.coordinates(rank), term;
  for (const PartialAxis &partial : sharding.partial)
    term.push_back(at[partial.axis]);
  return term;
}

/// Every element that a rank wants comes from itself or from another member of its group.
std::string RankInterpreter::regions(Operation &op) {
  std::vector<Sharding> from, to;
  for (Value operand : op.getOperands())
    from.push_back(dist::shardingOf(operand));
  for (Value result : op.getResults())
    to.push_back(dist::shardingOf(result));
  net::RegionCopy copy = net::regionCopyOf(&op);
  net::RegionExchange exchange = net::regionExchange(copy, from, to);
  exchanges += exchange.communicates();
  std::string wrong;
  for (auto [index, result] : llvm::enumerate(op.getResults()))
    for (int64_t rank = 0; rank < devices; ++rank) {
      Box box = to[index].localBox(copy.results[index], rank);
      Tensor shard(sizes(box), cast<net::RegionsInterface>(op).fillValue());
      std::vector<int64_t> members = groupOf(exchange.groupMatrix, exchange.groupAxes, rank);
      members.insert(members.begin(), rank);
      for (const CopyRegion &region : copy.regions[index]) {
        const Shards &source = values[op.getOperand(region.operand)];
        const Sharding &sharding = from[region.operand];
        std::vector<int64_t> count;
        for (const CopyRange &range : region.ranges)
          count.push_back(range.size);
        reference::forEachIndex(count, [&](const std::vector<int64_t> &at) {
          std::vector<int64_t> in, out;
          bool wanted = true;
          for (size_t dim = 0; dim < at.size(); ++dim) {
            const CopyRange &range = region.ranges[dim];
            in.push_back(range.source + at[dim] * range.sourceStride);
            out.push_back(range.target + at[dim] * range.targetStride - box[dim].begin);
            wanted &= out.back() >= 0 && out.back() < box[dim].size();
          }
          if (!wanted)
            return;
          for (int64_t member : members) {
            Box have = sharding.localBox(copy.operands[region.operand], member);
            std::vector<int64_t> inside = in;
            bool holds = termOf(sharding, member) == termOf(sharding, rank);
            for (size_t dim = 0; dim < in.size(); ++dim) {
              inside[dim] -= have[dim].begin;
              holds &= inside[dim] >= 0 && inside[dim] < have[dim].size();
            }
            if (holds) {
              shard.at(out) = source[member].at(inside);
              return;
            }
          }
          wrong = "nobody in the group holds an element";
        });
      }
      values[result].push_back(std::move(shard));
    }
  return wrong;
}

std::string RankInterpreter::evaluate(Operation &op) {
  if (cast<net::Lower>(op).loweringKind() == net::LoweringKind::Regions)
    return regions(op);
  for (Value result : op.getResults())
    values[result].resize(devices);
  for (int64_t rank = 0; rank < devices; ++rank) {
    std::vector<Tensor> operands;
    for (Value operand : op.getOperands()) {
      const Tensor &shard = values[operand][rank];
      if (shard.shape != dist::shardingOf(operand).localShape(passes::shapeOf(operand), rank))
        return "an operand has another local shape than its sharding says";
      operands.push_back(shard);
    }
    std::vector<int64_t> local = dist::shardingOf(op.getResult(0)).localShape(passes::shapeOf(op.getResult(0)), rank);
    std::vector<Tensor> results;
    if (cast<net::Lower>(op).loweringKind() == net::LoweringKind::View) {
      results = {Tensor(local, operands[0].values)};
    } else if (isa<net::BroadcastToOp>(op)) {
      results = {Tensor(local)};
      reference::forEachIndex(
          local, [&](const std::vector<int64_t> &at) { results[0].at(at) = reference::broadcastAt(operands[0], at); });
    } else {
      results = reference.evaluate(&op, operands);
    }
    for (auto [result, shard] : llvm::zip(op.getResults(), results)) {
      std::vector<int64_t> shape = dist::shardingOf(result).localShape(passes::shapeOf(result), rank);
      if (shard.shape != shape)
        return "a result has another local shape than its sharding says";
      values[result][rank] = shard;
    }
  }
  return "";
}

std::string RankInterpreter::slice(dist::SliceOp op) {
  std::vector<int64_t> shape = passes::shapeOf(op.getSource());
  Sharding from = dist::shardingOf(op.getSource()), to = dist::shardingOf(op.getResult());
  Shards shards;
  for (int64_t rank = 0; rank < devices; ++rank) {
    Box have = from.localBox(shape, rank), wanted = to.localBox(shape, rank);
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      if (elementCount(wanted) != 0 && (wanted[dim].begin < have[dim].begin || wanted[dim].end > have[dim].end))
        return "a slice lacks elements";
      wanted[dim].begin -= have[dim].begin;
      wanted[dim].end -= have[dim].begin;
    }
    shards.push_back(elementCount(wanted) == 0 ? Tensor(sizes(wanted))
                                               : reference::slice(values[op.getSource()][rank], wanted));
  }
  values[op.getResult()] = std::move(shards);
  return "";
}

static double combine(ReduceKind kind, double a, double b) {
  switch (kind) {
  case ReduceKind::Sum:
    return a + b;
  case ReduceKind::Prod:
    return a * b;
  case ReduceKind::Min:
    return std::min(a, b);
  case ReduceKind::Max:
    return std::max(a, b);
  }
  return a;
}

std::string RankInterpreter::collective(dist::CollectiveOp op) {
  std::vector<int64_t> shape = passes::shapeOf(op.getSource()), matrix(op.getGroupMatrix());
  std::vector<int32_t> axes(op.getGroupAxes());
  Sharding from = dist::shardingOf(op.getSource()), to = dist::shardingOf(op.getResult());
  const Shards &source = values[op.getSource()];
  bool reduces =
      op.getKind() == dist::CollectiveKind::AllReduce || op.getKind() == dist::CollectiveKind::ReduceScatter;
  std::string wrong;
  Shards shards;
  for (int64_t rank = 0; rank < devices; ++rank) {
    Box box = to.localBox(shape, rank);
    Tensor shard(sizes(box));
    reference::forEachIndex(shard.shape, [&](const std::vector<int64_t> &local) {
      std::vector<int64_t> at = local;
      for (size_t dim = 0; dim < at.size(); ++dim)
        at[dim] += box[dim].begin;
      bool found = false;
      for (int64_t member : groupOf(matrix, axes, rank)) {
        Box have = from.localBox(shape, member);
        std::vector<int64_t> inside = at;
        bool holds = true;
        for (size_t dim = 0; dim < at.size(); ++dim) {
          inside[dim] -= have[dim].begin;
          holds &= at[dim] >= have[dim].begin && at[dim] < have[dim].end;
        }
        if (!holds)
          continue;
        double element = source[member].at(inside);
        shard.at(local) = reduces && found ? combine(dist::reductionOf(op), shard.at(local), element) : element;
        found = true;
      }
      if (!found)
        wrong = "nobody in the group holds an element";
    });
    shards.push_back(std::move(shard));
  }
  values[op.getResult()] = std::move(shards);
  return wrong;
}

std::string compareShards(Value value, const Shards &shards, const Tensor &whole) {
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    Tensor wanted = reference::slice(whole, dist::shardingOf(value).localBox(whole.shape, static_cast<int64_t>(rank)));
    if (shards[rank].shape != wanted.shape)
      return "rank " + std::to_string(rank) + " holds another shape";
    for (size_t i = 0; i < wanted.values.size(); ++i)
      if (!(std::abs(shards[rank].values[i] - wanted.values[i]) <= 1e-10 * std::max(1.0, std::abs(wanted.values[i]))))
        return "rank " + std::to_string(rank) + " element " + std::to_string(i) + " is " +
               std::to_string(shards[rank].values[i]) + ", should be " + std::to_string(wanted.values[i]);
  }
  return "";
}

} // namespace msc::test
