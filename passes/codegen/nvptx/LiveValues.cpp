#include "passes/codegen/nvptx/LiveValues.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace msc::codegen {

namespace {

/// Walks through a cluster as the emitter does and notes when each value begins and when it was used last.
class LiveValues {
public:
  LiveValues(const Cluster &cluster, const Schedule &schedule) : cluster(cluster), schedule(schedule) {}

  unsigned most() {
    for (unsigned level = 0; level < schedule.levels; ++level)
      walk(level);
    std::vector<int> change(time + 2, 0);
    for (const auto &[name, life] : lives) {
      change[life.begin] += life.registers;
      change[life.end] -= life.registers; // its register may hold what is computed from it
    }
    int now = 0, most = 1;
    for (int step : change)
      most = std::max(most, now += step);
    return most;
  }

private:
  struct Life {
    unsigned begin = 0, end = 0;
    int registers = 1;
  };
  using Name = std::pair<int, std::vector<int64_t>>; ///< a node and its result, or a pointer and how it is indexed

  void walk(unsigned level) {
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
      lives[name].end = time;
  }

  bool isElement(unsigned node) const { return !cluster.nodes[node].isReduction() && schedule.isSwept(cluster.nodes[node]); }

  /// Computes what the node reads, and uses it up at the same time.
  void use(const Node &node) {
    std::vector<Name> read;
    for (const Operand &operand : node.operands) {
      if (operand.kind == Operand::Pointer && llvm::any_of(schedule.innerDims, [&](unsigned dim) { return operand.access.has(dim); }))
        read.push_back(begin({-1 - int(operand.index), {operand.access.strides.begin(), operand.access.strides.end()}},
                             cluster.pointers[operand.index].element));
      if (operand.kind == Operand::Node && isElement(operand.index))
        read.push_back(compute(operand.index, operand.result));
    }
    for (const Name &name : read)
      lives[name].end = time + 1;
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
    }
    return entry->first;
  }

  const Cluster &cluster;
  const Schedule &schedule;
  std::map<Name, Life> lives;
  unsigned time = 0;
};

} // namespace

unsigned liveRegisters(const Cluster &cluster, const Schedule &schedule) { return LiveValues(cluster, schedule).most(); }

} // namespace msc::codegen
