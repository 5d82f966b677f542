#include "passes/codegen/nvptx/LiveValues.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace msc::codegen {

namespace {

/// Walks through a cluster as the emitter does and notes when each value begins and when it was used last.
class LiveValues {
public:
  LiveValues(const Cluster &cluster, const Schedule &schedule, bool rereads)
      : cluster(cluster), schedule(schedule), rereads(rereads) {}

  LiveRegisters most() {
    LiveRegisters result;
    std::vector<unsigned> ends; // of the sweeps
    for (unsigned level = 0; level < schedule.levels; ++level) {
      read = 0;
      walk(level);
      ends.push_back(time);
      result.read = std::max(result.read, read);
    }
    std::vector<int> live(time + 2, 0);
    for (const auto &[name, life] : lives)
      for (unsigned at = life.begin; at < life.end; ++at) // at its end the register may hold what is computed from it
        live[at] += life.registers;
    result.inSweep = std::max(1, *llvm::max_element(live));
    for (unsigned end : ends)
      result.kept = std::max<unsigned>(result.kept, live[end]);
    return result;
  }

private:
  struct Life {
    unsigned begin = 0, end = 0;
    int registers = 1;
  };
  using Name = std::pair<int, std::vector<int64_t>>; ///< a node and its result, or a pointer and how it is indexed

  void walk(unsigned level) {
    sweep = level;
    for (unsigned id = 0; id < cluster.nodes.size(); ++id)
      if (cluster.nodes[id].isReduction() && schedule.level[id] == level) {
        use(cluster.nodes[id]);
        ++time;
      }
    std::vector<Name> stored;
    for (auto [store, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel))
      if (storeLevel == level && isElement(store.node))
        stored.push_back(compute(store.node, store.result));
    ++time;
    for (const Name &name : stored)
      lives[name].end = std::max(lives[name].end, time);
    ++time; // nothing but what is kept lives here
  }

  bool isElement(unsigned node) const { return !cluster.nodes[node].isReduction() && schedule.isSwept(cluster.nodes[node]); }

  /// Computes what the node reads, and uses it up at the same time.
  void use(const Node &node) {
    std::vector<Name> read;
    for (const Operand &operand : node.operands) {
      if (operand.kind == Operand::Pointer && llvm::any_of(schedule.innerDims, [&](unsigned dim) { return operand.access.has(dim); }))
        read.push_back(load(operand));
      if (operand.kind == Operand::Node && isElement(operand.index))
        read.push_back(compute(operand.index, operand.result));
    }
    for (const Name &name : read)
      lives[name].end = std::max(lives[name].end, time + 1);
  }

  Name load(const Operand &operand) {
    std::vector<int64_t> place(operand.access.strides.begin(), operand.access.strides.end());
    place.push_back(rereads ? sweep : 0);
    return begin({-1 - int(operand.index), place}, cluster.pointers[operand.index].element);
  }

  Name compute(unsigned id, unsigned result) {
    Name name(id, {result});
    const Node &node = cluster.nodes[id];
    if (lives.count(name))
      return name;
    use(node);
    for (auto [i, type] : llvm::enumerate(node.op.getResultTypes()))
      begin({int(id), {int64_t(i)}}, mlir::getElementTypeOrSelf(type));
    return name;
  }

  const Name &begin(const Name &name, mlir::Type type) {
    auto [entry, isNew] = lives.try_emplace(name);
    if (isNew) {
      ++time;
      bool isWide = type.isIndex() || type.getIntOrFloatBitWidth() == 64;
      entry->second = {time, time + 1, isWide ? 2 : 1};
      read += name.first < 0 ? entry->second.registers : 0;
    }
    return entry->first;
  }

  const Cluster &cluster;
  const Schedule &schedule;
  const bool rereads;
  std::map<Name, Life> lives;
  unsigned time = 0, sweep = 0, read = 0;
};

} // namespace

LiveRegisters liveRegisters(const Cluster &cluster, const Schedule &schedule, bool rereads) {
  return LiveValues(cluster, schedule, rereads).most();
}

} // namespace msc::codegen
