#include "passes/codegen/nvptx/GpuSchedule.h"

#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/nvptx/LiveValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace msc::codegen {

namespace {

constexpr int64_t accessBytes = 16;     ///< of the widest load and store
constexpr int64_t narrowPositions = int64_t(1) << 30; ///< elements that positions of 32 bits count
constexpr unsigned tileLine = 33;       ///< 32 and one more, so that columns lie in different banks
constexpr unsigned mostGroups = 4;
constexpr int64_t manyBlocks = 512;     ///< of 512 threads, that keep a large GPU busy
constexpr unsigned mostParts = 16;      ///< that blocks hand over
constexpr unsigned mostThreads = 512;   ///< of a team whose row stays in registers: more would leave each thread 64
/// Values that a thread may hold per sweep, in 32-bit registers. Beyond, ptxas spills.
constexpr unsigned registerBudget = 96;
constexpr unsigned residentBudget = 84; ///< for what a row keeps between its sweeps, and for one vector
/// The same where a processor has 1024 threads. Rows that fit only in the second one may cost a few bytes of stack, which is
/// less than to be alone on the processor.
constexpr unsigned lightBudget = 36, fullBudget = 46;
constexpr unsigned mostElements = 20;   ///< of a row per thread: the code for each stands there
constexpr unsigned narrowBudget = 32;   ///< in a block of 1024 threads

class GpuScheduler {
public:
  GpuScheduler(const Cluster &cluster, const Schedule &schedule) : cluster(cluster), schedule(schedule) {}

  GpuSchedule run() {
    for (unsigned dim : schedule.innerDims)
      swept *= cluster.sizes[dim];
    gpu.swept = swept;
    bool reduces = cluster.reduced.any();
    if (reduces || updatesRowValues())
      layOutTeams();
    else if (schedule.form == Schedule::Tiles && schedule.staged.any() && tilesFit())
      layOutTiles();
    else
      layOutElements();
    int64_t all = 1;
    for (int64_t size : cluster.sizes)
      all = std::max<int64_t>(1, size) * all;
    gpu.wide = all >= narrowPositions;
    gpu.mostRange = (gpu.wide ? int64_t(1) << 60 : narrowPositions) / std::max<int64_t>(1, swept);
    return gpu;
  }

private:
  void forEachAccess(llvm::function_ref<void(unsigned pointer, const Access &)> visit) const {
    for (const Node &node : cluster.nodes)
      for (const Operand &operand : node.operands)
        if (operand.kind == Operand::Pointer)
          visit(operand.index, operand.access);
    for (const Store &store : cluster.stores)
      visit(store.pointer, store.access);
  }

  int64_t bytesOf(unsigned pointer) const {
    mlir::Type type = cluster.pointers[pointer].element;
    return std::max<int64_t>(1, (type.isIndex() ? 64 : type.getIntOrFloatBitWidth()) / 8);
  }

  /// Registers that one element takes if everything that is read and written is held at the same time.
  unsigned registersPerElement() const {
    unsigned registers = 2;
    for (unsigned pointer = 0; pointer < cluster.pointers.size(); ++pointer)
      registers += bytesOf(pointer) == 8 ? 2 : 1;
    for (const Node &node : cluster.nodes)
      registers += node.isReduction() ? node.op.getNumResults() : 0;
    return registers;
  }

  /// A value of a whole row is read and then overwritten: no thread may write it before all have read it.
  bool updatesRowValues() const {
    return llvm::any_of(cluster.stores, [&](const Store &store) {
      return cluster.pointers[store.pointer].read &&
             llvm::any_of(schedule.innerDims, [&](unsigned dim) { return cluster.sizes[dim] != 1 && !store.access.has(dim); });
    });
  }

  /// Of the numbers along the vector dimension; bools only decide where there are no numbers.
  int64_t narrowestBytes() const {
    int64_t narrowest = 0;
    forEachAccess([&](unsigned pointer, const Access &access) {
      if (schedule.vectorDim >= 0 && access.has(schedule.vectorDim) && !cluster.pointers[pointer].element.isInteger(1))
        narrowest = narrowest ? std::min(narrowest, bytesOf(pointer)) : bytesOf(pointer);
    });
    return std::max<int64_t>(1, narrowest);
  }

  /// Neighbours along the vector dimension that one access moves: as many as fill 16 bytes of the narrowest numbers, if
  /// every tensor has its vectors at multiples of their size.
  unsigned chooseVector(int64_t size, bool sizeIsCounted, unsigned most) const {
    if (schedule.vectorDim < 0)
      return 1;
    int64_t vector = accessBytes / narrowestBytes();
    while (vector > 1 && vector > most)
      vector /= 2;
    auto fits = [&] {
      bool aligned = sizeIsCounted || size % vector == 0;
      forEachAccess([&](unsigned, const Access &access) {
        if (access.has(schedule.vectorDim) && access.strides[schedule.vectorDim] == 1)
          for (unsigned dim = 0; dim < cluster.rank(); ++dim)
            aligned &= int(dim) == schedule.vectorDim || access.strides[dim] % vector == 0;
      });
      return aligned;
    };
    while (vector > 1 && !fits())
      vector /= 2;
    return vector;
  }

  void layOutElements() {
    gpu.form = GpuSchedule::Elements;
    bool flat = schedule.form == Schedule::Flat;
    gpu.vector = chooseVector(flat || schedule.vectorDim < 0 ? 0 : cluster.sizes[schedule.vectorDim], flat,
                              registerBudget / registersPerElement());
    // Where accesses are narrow, several of them are in flight.
    int64_t narrow = accessBytes / (gpu.vector * narrowestBytes()), may = registerBudget / (gpu.vector * registersPerElement());
    gpu.groups = std::clamp<int64_t>(std::min(narrow, may), 1, mostGroups);
    gpu.block = 256;
    gpu.items = std::max<int64_t>(1, swept);
    gpu.blockItems = gpu.block * gpu.elements();
  }

  int64_t units() const {
    int64_t count = 1;
    for (unsigned dim : schedule.rangeDims)
      count *= cluster.sizes[dim];
    return count;
  }

  /// Only the first sweep visits elements; what follows are values of the row.
  bool sweepsOnce() const {
    for (unsigned id = 0; id < cluster.nodes.size(); ++id)
      if (cluster.nodes[id].isReduction() && schedule.level[id] > 0)
        return false;
    for (auto [store, level] : llvm::zip(cluster.stores, schedule.storeLevel)) {
      const Node &node = cluster.nodes[store.node];
      if (level > 0 && !node.isReduction() && schedule.isSwept(node))
        return false;
    }
    return true;
  }

  /// Cuts the sweep where the units alone make few blocks.
  void cutIntoPieces() {
    for (const Node &node : cluster.nodes)
      gpu.parts += node.isReduction() ? node.op.getNumResults() : 0;
    int64_t perStep = int64_t(gpu.team) * gpu.elements(), steps = swept / perStep;
    int64_t wanted = std::min(manyBlocks / std::max<int64_t>(1, llvm::divideCeil(units(), gpu.teams())), steps / 2);
    if (wanted < 2 || gpu.parts > mostParts || !sweepsOnce() || updatesRowValues())
      return;
    gpu.pieceSize = llvm::divideCeil(llvm::divideCeil(swept, perStep), wanted) * perStep;
    gpu.pieces = llvm::divideCeil(swept, gpu.pieceSize);
  }

  /// Blocks with `side` columns beside each other.
  void layOutColumns(int64_t side) {
    int64_t wanted = llvm::PowerOf2Ceil(std::max<int64_t>(1, llvm::divideCeil(swept, gpu.groups)));
    gpu.block = std::clamp<int64_t>(side * wanted, 32, mostThreads);
    gpu.team = gpu.block / side;
  }

  /// Registers per element of a sweep of which nothing stays.
  unsigned passingRegisters() const {
    llvm::SmallVector<unsigned> sums(schedule.levels, 0);
    for (unsigned id = 0; id < cluster.nodes.size(); ++id)
      sums[schedule.level[id]] += cluster.nodes[id].isReduction() ? cluster.nodes[id].op.getNumResults() : 0;
    return std::min(registersPerElement(), liveRegisters(cluster, schedule, true).inSweep + *llvm::max_element(sums));
  }

  /// A row for a part of a warp, for a warp or for a block.
  void layOutRows() {
    bool inVectors = schedule.vectorDim >= 0 && schedule.isInner(schedule.vectorDim);
    unsigned passing = registerBudget / passingRegisters();
    gpu.vector = inVectors ? chooseVector(cluster.sizes[schedule.vectorDim], false, passing) : 1;
    int64_t vectors = std::max<int64_t>(1, llvm::divideCeil(swept, gpu.vector));
    for (unsigned budget : {lightBudget, fullBudget, residentBudget})
      for (bool rereads : {false, true}) {
        int64_t groups = mayHold(budget, rereads) / gpu.vector;
        if (groups == 0 || vectors > mostThreads * groups)
          continue;
        gpu.rereads = rereads;
        gpu.minBlocks = budget == residentBudget || isWide() ? 1 : 2;
        return layOutResidentRows(vectors, groups);
      }
    layOutLongRows(passing / gpu.vector);
  }

  /// Elements of a row that stays.
  unsigned mayHold(unsigned budget, bool rereads) const {
    LiveRegisters live = liveRegisters(cluster, schedule, rereads);
    unsigned current = (live.inSweep + live.read) * gpu.vector; // the vector that is computed, and what is read for the next
    return current > budget ? 0 : std::min(mostElements, gpu.vector + (budget - current) / std::max(1u, live.kept));
  }

  void layOutResidentRows(int64_t vectors, int64_t most) {
    int64_t groups = std::clamp<int64_t>(most, 1, several());
    if (vectors <= 32 * groups) {
      gpu.team = std::min<int64_t>(32, llvm::PowerOf2Ceil(vectors));
      gpu.block = 128;
    } else {
      groups = std::max<int64_t>(groups, llvm::divideCeil(vectors, mostThreads));
      for (int64_t even = groups; even > groups / 2; --even)
        if (vectors % (32 * even) == 0 && vectors <= mostThreads * even) { // no thread idles
          groups = even;
          break;
        }
      gpu.block = gpu.team = 32 * llvm::divideCeil(vectors, 32 * groups);
    }
    gpu.groups = std::min<int64_t>(groups, llvm::divideCeil(vectors, gpu.team));
    LiveRegisters live = liveRegisters(cluster, schedule, gpu.rereads);
    int64_t free = gpu.minBlocks > 1 ? lightBudget - int64_t(live.inSweep + live.read) * gpu.vector : residentBudget;
    gpu.ahead = std::max<int64_t>(0, free - live.kept * gpu.elements()); // beyond it the assembler decides
    gpu.minBlocks = gpu.minBlocks > 1 ? 2 * mostThreads / gpu.block : 1;
  }

  /// Accesses in flight that are enough.
  int64_t several() const { return gpu.vector == 1 ? 2 * mostGroups : mostGroups; }

  /// Rows that are swept several times: by so many threads that those which are read at the same time stay in the cache.
  void layOutLongRows(int64_t groups) {
    gpu.block = gpu.team = mostThreads;
    gpu.groups = std::clamp<int64_t>(groups, 1, several());
    cutIntoPieces();
    shareProcessor();
    int64_t narrow = narrowBudget / passingRegisters() / gpu.vector;
    if (sweepsOnce() || narrow == 0 || isWide())
      return;
    gpu.block = gpu.team = 2 * mostThreads;
    gpu.groups = std::min(narrow, several());
    gpu.minBlocks = 1;
  }

  /// Two blocks where their registers suffice: one reads while the other waits at a barrier.
  void shareProcessor() {
    gpu.minBlocks = gpu.elements() * passingRegisters() <= fullBudget && !isWide() ? 2 * mostThreads / gpu.block : 1;
  }

  /// Something is computed in f64: its functions need many registers.
  bool isWide() const {
    return llvm::any_of(cluster.nodes, [](const Node &node) {
      return llvm::any_of(*node.op.getBody(), [](mlir::Operation &op) {
        return llvm::any_of(op.getResultTypes(), [](mlir::Type type) { return type.isF64(); });
      });
    });
  }

  void layOutTeams() {
    gpu.form = GpuSchedule::Teams;
    bool mergeable = true;
    for (const Node &node : cluster.nodes)
      mergeable &= !llvm::is_contained(node.combiners, nullptr);
    gpu.strided = mergeable && schedule.form == Schedule::Columns;
    if (!mergeable) { // the elements of a reduction are taken in order
      gpu.block = 128;
    } else if (gpu.strided) {
      gpu.groups = std::clamp(registerBudget / passingRegisters(), 1u, mostGroups);
      layOutColumns(std::clamp<int64_t>(llvm::PowerOf2Ceil(units()), 8, 32));
      cutIntoPieces();
      // 32 bytes of neighbours are as good for the memory as a whole line; narrow blocks are many.
      if (gpu.pieces == 1)
        layOutColumns(units() >= 4096 ? 32 : units() >= 2048 ? 16 : 8);
      shareProcessor();
    } else {
      layOutRows();
    }
    gpu.resident = mergeable && swept > 0 && swept <= int64_t(gpu.team) * gpu.elements();
    gpu.items = gpu.pieces;
    gpu.blockItems = gpu.teams();
  }

  /// Shared memory holds a tile of every transposed tensor.
  bool tilesFit() const {
    int64_t bytes = 0;
    for (unsigned pointer : schedule.staged.set_bits())
      bytes += 32 * tileLine * bytesOf(pointer);
    return bytes <= mostSharedBytes;
  }

  void layOutTiles() {
    gpu.form = GpuSchedule::Tiles;
    gpu.block = 256; // 32 x 8
    gpu.groups = 4;  // rows of the tile that a thread has
    gpu.items = std::max<int64_t>(1, llvm::divideCeil(swept, 32));
    gpu.blockItems = 32;
  }

  const Cluster &cluster;
  const Schedule &schedule;
  GpuSchedule gpu;
  int64_t swept = 1;
};

} // namespace

GpuSchedule scheduleForGpu(const Cluster &cluster, const Schedule &schedule) { return GpuScheduler(cluster, schedule).run(); }

} // namespace msc::codegen
