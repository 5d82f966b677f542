#include "passes/partition/Placements.h"

#include "dialects/net/NetAttributes.h"
#include "passes/sharding/Problem.h"

using namespace mlir;

namespace msc::passes {

void Placements::set(Value global, Value value, MoveReason reason) {
  Entry &entry = entries[global];
  entry = {value, {}, std::move(reason), {}};
  if (!dist::shardingOf(value).isPartial())
    entry.whole = value;
}

Sharding Placements::completedSharding(Value global) const { return passes::completed(dist::shardingOf(raw(global))); }

Value Placements::reshard(Value value, const Sharding &target, StringRef move, const MoveReason &reason) {
  Location location = reason.op ? reason.op->getLoc() : value.getLoc();
  auto op = builder.create<dist::ReshardOp>(location, dist::withSharding(value.getType(), target), value, move,
                                            reason.sentence);
  if (reason.op) {
    net::setPhase(op, net::getPhase(reason.op));
    net::setScope(op, net::getScope(reason.op));
  }
  return op.getResult();
}

Value Placements::completed(Value global) {
  Entry &entry = entries.find(global)->second;
  if (!entry.whole)
    entry.whole = reshard(entry.value, completedSharding(global), "completion", entry.completion);
  return entry.whole;
}

Value Placements::under(Value global, const Sharding &sharding, const MoveReason &reason) {
  Value whole = completed(global);
  if (dist::shardingOf(whole) == sharding)
    return whole;
  Entry &entry = entries.find(global)->second;
  Value &moved = entry.moved[sharding.str()];
  if (!moved)
    moved = reshard(whole, sharding, "redistribution", reason);
  return moved;
}

} // namespace msc::passes
