#include "passes/codegen/Schedule.h"

#include "passes/codegen/BodyEmitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace msc::codegen {

namespace {

/// Bytes of row buffers on the stack of a worker thread.
constexpr int64_t maxScratchBytes = 64 * 1024;
/// Bytes of a cut row that make one piece, and how many there are at most: as the tasks of other kernels (passes/plan/Tasks.cpp).
constexpr int64_t pieceBytes = 256 * 1024, mostPieces = 64;
/// Bodies above this many vector instructions are unrolled less.
constexpr unsigned heavyBody = 16, hugeBody = 80;

unsigned cost(const Node &node) {
  unsigned sum = 0;
  for (mlir::Operation &op : *node.op.getBody())
    sum += bodyCost(op);
  return sum;
}

class Scheduler {
public:
  Scheduler(const Cluster &cluster, std::string &reason, const KernelForm *like)
      : cluster(cluster), reason(reason), like(like) {}
  mlir::FailureOr<Schedule> run();

private:
  void chooseLanes();
  void chooseVectorDim();
  void chooseForm();
  void followForm();
  void layOut();
  bool chooseTiles();
  void assignLevels();
  void chooseKept();
  void chooseUnroll();
  void choosePieces();
  mlir::LogicalResult check();
  /// Calls back for every access to memory.
  void forEachAccess(llvm::function_ref<void(unsigned pointer, const Access &, bool isStore)> visit) const;

  const Cluster &cluster;
  std::string &reason;
  const KernelForm *like;
  Schedule schedule;
};

void Scheduler::forEachAccess(llvm::function_ref<void(unsigned, const Access &, bool)> visit) const {
  for (const Node &node : cluster.nodes)
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer)
        visit(operand.index, operand.access, false);
  for (const Store &store : cluster.stores)
    visit(store.pointer, store.access, true);
}

// One vector register of v4 per value: 16 lanes, or 8 where a 64-bit type takes part.
void Scheduler::chooseLanes() {
  auto isWide = [](mlir::Type type) { return type.isIndex() || (type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 64); };
  for (const Node &node : cluster.nodes)
    for (mlir::Operation &op : *node.op.getBody())
      if (llvm::any_of(op.getOperandTypes(), isWide) || llvm::any_of(op.getResultTypes(), isWide))
        schedule.lanes = 8;
}

// The dimension along which most of the largest tensors are contiguous; stores count more, ties go to the last dimension.
void Scheduler::chooseVectorDim() {
  bool needsParallel = false; // a reduction whose partial values cannot be merged runs in order, with lanes beside it
  for (const Node &node : cluster.nodes)
    needsParallel |= node.isReduction() && llvm::is_contained(node.combiners, nullptr);
  auto width = [](const Access &access) { return llvm::count_if(access.positions, [](int p) { return p >= 0; }); };
  long widest = 0;
  forEachAccess([&](unsigned, const Access &access, bool) { widest = std::max<long>(widest, width(access)); });
  llvm::SmallVector<unsigned> votes(cluster.rank(), 0);
  forEachAccess([&](unsigned, const Access &access, bool isStore) {
    if (width(access) < widest)
      return;
    for (unsigned dim = 0; dim < cluster.rank(); ++dim)
      if (access.has(dim) && access.strides[dim] == 1)
        votes[dim] += isStore ? 3 : 2;
  });
  int best = -1;
  for (unsigned dim = 0; dim < cluster.rank(); ++dim)
    if (!(needsParallel && cluster.reduced[dim]) && (best < 0 || votes[dim] >= votes[best]))
      best = dim;
  schedule.vectorDim = best;
}

// Transposed tensors go through 16 x 16 tiles if all of them are contiguous along the same other dimension.
bool Scheduler::chooseTiles() {
  if (schedule.vectorDim < 0)
    return false;
  schedule.staged.resize(cluster.pointers.size());
  int tileDim = -1;
  bool possible = true;
  llvm::SmallVector<const Access *> first(cluster.pointers.size(), nullptr);
  forEachAccess([&](unsigned pointer, const Access &access, bool) {
    // A pointer that is read in two index orders would need two tiles.
    if (first[pointer] && !(*first[pointer] == access) && schedule.staged[pointer])
      possible = false;
    first[pointer] = first[pointer] ? first[pointer] : &access;
    if (!access.has(schedule.vectorDim) || access.strides[schedule.vectorDim] == 1)
      return;
    int contiguous = -1;
    for (unsigned dim = 0; dim < cluster.rank(); ++dim)
      if (int(dim) != schedule.vectorDim && access.has(dim) && access.strides[dim] == 1)
        contiguous = dim;
    // AVX2 has no masked byte moves: bool goes element by element.
    possible &= !cluster.pointers[pointer].element.isInteger(1) && contiguous >= 0 && (tileDim < 0 || tileDim == contiguous) && *first[pointer] == access &&
                !(cluster.pointers[pointer].read && cluster.pointers[pointer].written);
    tileDim = contiguous;
    schedule.staged.set(pointer);
  });
  if (!possible || schedule.staged.none()) {
    schedule.staged.reset();
    return false;
  }
  schedule.tileDim = tileDim;
  return true;
}

void Scheduler::chooseForm() {
  bool reduces = cluster.reduced.any();
  bool anyIndex = llvm::any_of(cluster.nodes, [](const Node &node) { return node.usesIndex; });
  if (!reduces && cluster.rank() == 1 && !anyIndex)
    schedule.form = Schedule::Flat;
  else if (!reduces && chooseTiles())
    schedule.form = Schedule::Tiles;
  else if (reduces && (schedule.vectorDim < 0 || !cluster.reduced[schedule.vectorDim]))
    schedule.form = Schedule::Columns;
  else
    schedule.form = Schedule::Rows;
}

// Takes over the form of a kernel for larger pieces of the same tensors.
void Scheduler::followForm() {
  schedule.vectorDim = like->vectorDim;
  schedule.form = static_cast<Schedule::Form>(like->form);
  if (schedule.form == Schedule::Tiles && (!chooseTiles() || schedule.tileDim != like->tileDim))
    schedule.staged.reset(); // sizes of 1 made every access contiguous or single
  schedule.tileDim = like->tileDim;
}

// Range and inner dimensions of the form.
void Scheduler::layOut() {
  auto without = [&](llvm::function_ref<bool(unsigned)> skip) {
    llvm::SmallVector<unsigned> dims;
    for (unsigned dim = 0; dim < cluster.rank(); ++dim)
      if (!skip(dim))
        dims.push_back(dim);
    return dims;
  };
  int vector = schedule.vectorDim, tile = schedule.tileDim;
  switch (schedule.form) {
  case Schedule::Flat:
    schedule.rangeDims = {0};
    schedule.unit = 64;
    return;
  case Schedule::Tiles:
    schedule.rangeDims = without([&](unsigned dim) { return int(dim) == vector || int(dim) == tile; });
    schedule.rangeDims.push_back(tile);
    schedule.innerDims = {unsigned(vector)};
    schedule.unit = 16;
    return;
  case Schedule::Columns:
    schedule.rangeDims = without([&](unsigned dim) { return cluster.reduced[dim] || int(dim) == vector; });
    if (vector >= 0)
      schedule.rangeDims.push_back(vector);
    schedule.innerDims = without([&](unsigned dim) { return !cluster.reduced[dim]; });
    schedule.unit = vector >= 0 ? 4 * int64_t(schedule.lanes) : 1;
    return;
  case Schedule::Rows:
    schedule.rangeDims = without([&](unsigned dim) { return cluster.reduced[dim] || int(dim) == vector; });
    schedule.innerDims = without([&](unsigned dim) { return !cluster.reduced[dim] || int(dim) == vector; });
    if (vector >= 0)
      schedule.innerDims.push_back(vector);
  }
}

// A value that follows from a reduction exists one sweep later.
void Scheduler::assignLevels() {
  for (const Node &node : cluster.nodes) {
    unsigned level = 0;
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Node)
        level = std::max(level, schedule.level[operand.index] + cluster.nodes[operand.index].isReduction());
    schedule.level.push_back(level);
    schedule.levels = std::max(schedule.levels, level + 1);
  }
  const unsigned lastSweep = schedule.levels - 1; // behind it sums are stored, and nothing is read
  for (const Store &store : cluster.stores) {
    const Node &node = cluster.nodes[store.node];
    unsigned level = schedule.level[store.node] + node.isReduction();
    // Memory that is updated in place keeps its old value until the last sweep has read it.
    if (cluster.pointers[store.pointer].read)
      level = std::max(level, lastSweep);
    schedule.storeLevel.push_back(level);
    schedule.levels = std::max(schedule.levels, level + 1);
  }
}

// Expensive values that a later sweep reads again wait in a row buffer, as far as the stack allows; the rest is computed anew.
void Scheduler::chooseKept() {
  unsigned count = cluster.nodes.size();
  schedule.kept.resize(count);
  if (schedule.form != Schedule::Rows)
    return;
  llvm::SmallVector<unsigned> lastUse(count, 0), total(count, 0);
  for (auto [store, level] : llvm::zip(cluster.stores, schedule.storeLevel))
    lastUse[store.node] = std::max(lastUse[store.node], level);
  for (unsigned id = count; id-- > 0;) {
    const Node &node = cluster.nodes[id];
    unsigned use = std::max(lastUse[id], schedule.level[id]);
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Node)
        lastUse[operand.index] = std::max(lastUse[operand.index], node.isReduction() ? schedule.level[id] : use);
  }
  int64_t elements = 1, free = maxScratchBytes;
  for (unsigned dim : schedule.innerDims)
    elements *= cluster.sizes[dim];
  for (unsigned id = 0; id < count; ++id) {
    const Node &node = cluster.nodes[id];
    total[id] = cost(node);
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Node && !schedule.kept[operand.index] && schedule.isSwept(cluster.nodes[operand.index]))
        total[id] += total[operand.index];
    mlir::Type type = mlir::getElementTypeOrSelf(node.op.getResultTypes()[0]);
    int64_t bytes = elements * std::max<int64_t>(1, (type.isIndex() ? 64 : type.getIntOrFloatBitWidth()) / 8);
    bool again = lastUse[id] > schedule.level[id] && !node.isReduction() && schedule.isSwept(node);
    if (again && total[id] >= 6 && bytes <= free && node.op.getNumResults() == 1 && elements > 0) {
      schedule.kept.set(id);
      free -= bytes;
    }
  }
}

// Light bodies need several vectors in flight to hide latency, heavy ones fill the machine and the registers alone.
void Scheduler::chooseUnroll() {
  unsigned work = 0;
  for (const Node &node : cluster.nodes)
    work += cost(node);
  schedule.unroll = work >= hugeBody ? 1 : work >= heavyBody ? 2 : 4;
}

// What sweeps a cut row for the second time does so in one thread. A row whose outermost dimension is short, and merges with no other one, has
// few pieces.
void Scheduler::choosePieces() {
  if (schedule.form != Schedule::Rows || !schedule.rangeDims.empty() || schedule.innerDims.empty() || schedule.kept.any() || cluster.reduced.none())
    return;
  llvm::SmallVector<int64_t> bytes(cluster.pointers.size(), 0);
  forEachAccess([&](unsigned pointer, const Access &access, bool) {
    int64_t elements = 1;
    for (unsigned dim = 0; dim < cluster.rank(); ++dim)
      elements *= access.has(dim) ? cluster.sizes[dim] : 1;
    mlir::Type element = cluster.pointers[pointer].element;
    bytes[pointer] = std::max(bytes[pointer], elements * std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8));
  });
  const int64_t size = cluster.sizes[schedule.innerDims[0]], steps = schedule.innerDims.size() == 1 ? int64_t(schedule.lanes) * schedule.unroll : 1;
  const int64_t wanted = std::min(std::accumulate(bytes.begin(), bytes.end(), int64_t(0)) / pieceBytes, mostPieces);
  if (wanted < 2 || size < 2 * steps)
    return;
  schedule.pieceSize = llvm::alignTo(llvm::divideCeil(size, wanted), steps);
  schedule.pieces = llvm::divideCeil(size, schedule.pieceSize);
  for (auto [node, level] : llvm::zip(cluster.nodes, schedule.level))
    schedule.parts += node.isReduction() && level == 0 ? node.op.getNumResults() : 0;
}

mlir::LogicalResult Scheduler::check() {
  for (const Node &node : cluster.nodes)
    for (mlir::Operation *combiner : node.combiners)
      if (!combiner && schedule.form == Schedule::Rows) {
        reason = "a reduction has no operation that merges partial values";
        return mlir::failure();
      }
  for (unsigned dim : schedule.rangeDims)
    for (unsigned loop : cluster.origin[dim])
      if (cluster.places[loop].first < 0) {
        reason = "no tensor has a dimension over which the work is cut";
        return mlir::failure();
      }
  for (const Store &store : cluster.stores)
    for (unsigned dim : schedule.rangeDims)
      if (!store.access.has(dim) && cluster.sizes[dim] != 1) {
        reason = "a result lacks a dimension over which the work is cut";
        return mlir::failure();
      }
  return mlir::success();
}

mlir::FailureOr<Schedule> Scheduler::run() {
  chooseLanes();
  if (like) {
    followForm();
  } else {
    chooseVectorDim();
    chooseForm();
  }
  layOut();
  assignLevels();
  chooseKept();
  chooseUnroll();
  choosePieces();
  if (mlir::failed(check()))
    return mlir::failure();
  return std::move(schedule);
}

} // namespace

mlir::FailureOr<Schedule> scheduleCluster(const Cluster &cluster, std::string &reason, const KernelForm *like) {
  return Scheduler(cluster, reason, like).run();
}

KernelForm formOf(const Cluster &cluster, const Schedule &schedule) {
  return {cluster.widest, cluster.origin, int(schedule.form), schedule.vectorDim, schedule.tileDim};
}

} // namespace msc::codegen
