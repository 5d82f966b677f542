// Emits the GPU kernel of one scheduled cluster as LLVM IR for NVPTX. Every thread computes on scalars; several of them at a
// time, so that accesses are wide and loads are in flight together.
#pragma once

#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/nvptx/GpuSchedule.h"
#include "passes/codegen/nvptx/PackedMemory.h"
#include "passes/codegen/nvptx/ThreadBuilder.h"

#include <map>

namespace msc::codegen {

class KernelEmitter {
public:
  KernelEmitter(const Cluster &cluster, const Schedule &schedule, const GpuSchedule &gpu, llvm::Module &module,
                llvm::StringRef symbol);
  llvm::Function *emit();

private:
  /// One value per element of a step, or a single one that holds for all.
  using Lanes = Values;
  /// The vectors that a thread computes in one step.
  struct Group {
    Values position;              ///< [dim] of its first element; inside the tensors even where the group does not count
    llvm::Value *valid = nullptr; ///< null: it counts
    /// So many further along a dim: constants in the access, for which no address is computed.
    std::map<unsigned, int64_t> shift;
    Group shifted(unsigned dim, int64_t by) const {
      Group next = *this;
      next.shift[dim] += by;
      return next;
    }
  };
  struct Point {
    llvm::SmallVector<Group> groups;
    unsigned vector = 1;
    unsigned elements() const { return groups.size() * vector; }
  };
  /// What is known at the current nesting: kernel, row, step of a sweep. Inner scopes see the outer ones.
  struct Scope {
    std::map<std::pair<unsigned, unsigned>, Lanes> values;            ///< (node, result)
    std::map<std::pair<unsigned, std::vector<int64_t>>, Lanes> loads; ///< (pointer, strides)
  };

  // Outer structure, one function per form.
  void emitElements();
  void emitTeams();
  void emitTiles();
  void moveTiles(const Point &corner, llvm::Value *tileExtent, bool in);

  // One unit of the range.
  void emitRow(const Point &row);
  void emitPiece(llvm::Value *base, llvm::Value *unit, llvm::Value *bundle);
  std::pair<Point, llvm::Value *> rowOf(llvm::Value *base, llvm::Value *unit);
  void storeRowValues(unsigned level, const Point &row);
  /// Returns what the team has found for the reductions of the level.
  Values emitSweep(unsigned level, const Point &row);
  Point stepOf(const Point &row, llvm::Value *start, int64_t left);
  Values emitResidentSweep(unsigned level, const Point &row);
  Values emitStep(unsigned level, const Point &point, const Values &carried);
  /// Reads what the sweep needs of the point and is not known.
  unsigned loadAhead(unsigned level, const Point &point);
  void startReductions(unsigned level, const Point &row);
  Values partsOf(const Values &carried);
  void finishReductions(unsigned level, const Point &row, const Values &parts);
  /// Where the block of a piece hands over its part of the unit of the range.
  llvm::Value *partSlot(unsigned part, llvm::Value *piece, llvm::Value *unit);
  void handOver(llvm::Value *part, llvm::Value *slot);
  /// What all blocks have handed over.
  Values gatherPieces(const Values &parts, llvm::Value *unit);
  /// The parts of all threads of the team, in a tree that depends on the sizes alone. Every thread gets the result.
  void mergeTeam(llvm::ArrayRef<mlir::Operation *> combiners, Values &parts);
  /// How many parts of so many elements go through shared memory at a time: SIZE_MAX, each through an array of its own, unless those of all levels
  /// are more than a block may declare.
  size_t partsTogether(unsigned elements) const;
  llvm::Value *mergeTree(mlir::Operation &combiner, Values parts);
  bool hasWork(unsigned level) const;
  /// Sums that a thread carries per reduction: one per element of a step, or of a vector where a row stays.
  unsigned sums() const { return gpu.resident ? gpu.vector : gpu.elements(); }

  // Values.
  Lanes value(unsigned node, unsigned result, const Point &point);
  Lanes operandValue(const Operand &operand, const Point &point);
  Lanes load(unsigned pointer, const Access &access, const Point &point);
  void preload(const Point &point, llvm::function_ref<bool(const Access &)> fits);
  /// All targets of a step; `condition` holds for the whole thread.
  void storeAll(llvm::ArrayRef<std::pair<const Store *, Lanes>> targets, const Point &point, llvm::Value *condition);
  void store(const Store &target, const Lanes &lanes, const Point &point, unsigned group);
  llvm::Value *address(unsigned pointer, const Access &access, const Group &group);
  llvm::Value *tilePlace(unsigned pointer, llvm::Value *line, llvm::Value *column);
  llvm::Value *positionOf(const Group &group, unsigned dim, int64_t further = 0);
  llvm::Value *indexValue(const Node &node, unsigned loop, const Point &point, unsigned element);
  /// Positions along `dims`, the last one fastest; the size of the first is not needed.
  void decompose(llvm::Value *number, llvm::ArrayRef<unsigned> dims, Group &group);
  bool varies(const llvm::SmallBitVector &dims) const { return dims.anyCommon(varying); }
  bool varies(const Access &access) const;
  bool reduces(unsigned node, unsigned level) const {
    return cluster.nodes[node].isReduction() && schedule.level[node] == level;
  }
  llvm::Value *at(const Lanes &lanes, unsigned element) { return lanes[lanes.size() == 1 ? 0 : element]; }
  llvm::Value *number(int64_t value) { return llvm::ConstantInt::get(index, value); }
  Group origin();

  const Cluster &cluster;
  const Schedule &schedule;
  const GpuSchedule &gpu;
  llvm::Function *function;
  llvm::IRBuilder<> builder;
  llvm::Type *index;
  BodyEmitter body;
  PackedMemory memory;
  LoopBuilder loops;
  ThreadBuilder threads;
  std::vector<Scope> scopes;
  std::vector<Scope> kept;                           ///< [group] of a row that stays in registers
  llvm::SmallBitVector varying;                      ///< dims in which the elements of a step differ
  llvm::Value *thread = nullptr, *end = nullptr;
  llvm::Value *lane = nullptr;                       ///< Teams: number in the team
  llvm::Value *piece = nullptr;                      ///< Teams with pieces: the one that the block sweeps
  llvm::Value *active = nullptr;                     ///< Teams: the team has a unit of the range; null: always
  llvm::DenseMap<unsigned, llvm::Value *> tiles;     ///< staged pointer -> tile in shared memory
  llvm::Value *tileLine = nullptr, *tileColumn = nullptr;
  /// Reductions of the current sweep.
  Values initial;
  llvm::SmallVector<mlir::Operation *> carriedCombiners;
  unsigned mergingLevels = 0;
  Values sharedArrays;                               ///< for a part each, where levels take turns in the same ones
};

} // namespace msc::codegen
