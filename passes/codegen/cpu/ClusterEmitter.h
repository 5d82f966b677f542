// Emits the kernel function of one scheduled cluster as LLVM IR.
#pragma once

#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/cpu/LaneMemory.h"
#include "passes/codegen/Schedule.h"

#include "llvm/IR/Module.h"

#include <map>
#include <optional>

namespace msc::codegen {

/// Creates `void symbol(ptr..., i64 begin, i64 end)` with the attributes that all kernels have. A row that is cut has the memory through which
/// pieces hand over their values as its last pointer; its range counts the pieces, and behind them what adds these values up.
llvm::Function *createKernel(llvm::Module &module, llvm::StringRef symbol, unsigned pointers);

class ClusterEmitter {
public:
  ClusterEmitter(const Cluster &cluster, const Schedule &schedule, llvm::Module &module, llvm::StringRef symbol);
  llvm::Function *emit();

private:
  /// One vector per lane group, or a single one that holds for all groups.
  using Lanes = Values;
  /// Where in the domain code is emitted: positions (of lane 0 for the vector dimension), groups of lanes, their masks.
  struct Point {
    Values position;
    unsigned groups = 1;
    llvm::SmallVector<LaneMask> masks; ///< per group; empty: all lanes
    LaneMask mask(unsigned group) const { return masks.empty() ? LaneMask() : masks[group]; }
  };
  /// What is known at the current nesting: kernel, row, step of a sweep. Inner scopes see the outer ones.
  struct Scope {
    std::map<std::pair<unsigned, unsigned>, Lanes> values; ///< (node, result)
    std::map<std::pair<unsigned, std::vector<int64_t>>, Lanes> loads; ///< (pointer, strides)
    std::map<std::pair<unsigned, std::vector<int64_t>>, llvm::Value *> bases; ///< addresses of the row
  };

  // Outer structure, one function per form.
  void emitRows();
  void emitPieces();
  void emitColumns();
  void emitTiles();
  void emitTile(Point point, llvm::Value *tileRows, llvm::Value *columnsLeft);
  void forEachOuter(llvm::ArrayRef<unsigned> dims, int64_t chunk,
                    llvm::function_ref<void(Point, llvm::Value *low, llvm::Value *high)> body);
  void decompose(llvm::Value *index, llvm::ArrayRef<unsigned> dims, Point &point);

  // One row: reductions level by level.
  void beginRow(const Point &point);
  void emitRow(Point point);
  void emitSweep(unsigned level, Point point);
  Values emitSteps(unsigned level, Point point, unsigned depth, const Values &carried);
  Values emitLaneSteps(unsigned level, Point point, const Values &carried);
  Values emitStep(unsigned level, const Point &point, const Values &carried);
  Values blockedLoop(int64_t high, int64_t step, const Values &carried, LoopBuilder::Body body);
  void startReductions(unsigned level, const Point &point);
  void finishReductions(unsigned level, const Point &point, const Values &carried);
  void gatherParts(const Point &point);
  void keepReduced(unsigned node, unsigned result, const Point &point, llvm::Value *total);
  llvm::Value *mergeLanes(mlir::Operation &combiner, Values parts);
  bool hasWork(unsigned level) const;

  // Values.
  Lanes value(unsigned node, unsigned result, const Point &point);
  Lanes operandValue(unsigned node, const Operand &operand, const Point &point);
  Lanes load(unsigned pointer, const Access &access, const Point &point);
  void store(const Store &target, const Lanes &lanes, const Point &point);
  /// Every whole vector of this result starts at a multiple of its size, and nobody reads it here.
  bool canStream(const Store &target) const;
  llvm::Value *address(unsigned pointer, const Access &access, const Point &point);
  llvm::Value *scratchAddress(unsigned node, const Point &point);
  llvm::Value *indexVector(const Node &node, unsigned loop, const Point &point, unsigned group);
  void preload(llvm::function_ref<bool(const Access &)> fits, const Point &point);
  llvm::Value *at(const Lanes &lanes, unsigned group) { return lanes[lanes.size() == 1 ? 0 : group]; }
  llvm::Value *number(int64_t value) { return builder.getInt64(value); }
  /// Of the sweep along an inner dimension: how many steps it has, and where the one is that is counted from its beginning.
  int64_t length(unsigned dim) const { return piece && dim == schedule.innerDims[0] ? piece->length : cluster.sizes[dim]; }
  llvm::Value *place(unsigned dim, llvm::Value *step) {
    return piece && dim == schedule.innerDims[0] ? builder.CreateNSWAdd(piece->begin, step) : step;
  }
  /// Where a piece of a cut row leaves one of its values.
  llvm::Value *partAddress(unsigned part, llvm::Value *index);
  bool reduces(unsigned node, unsigned level) const {
    return cluster.nodes[node].isReduction() && schedule.level[node] == level;
  }
  /// Slots of carried values that a result of a reduction takes.
  unsigned slots(unsigned node, const Point &point) const;

  const Cluster &cluster;
  const Schedule &schedule;
  llvm::Function *function;
  llvm::IRBuilder<> builder;
  BodyEmitter body;
  LaneMemory memory;
  LoopBuilder loops;
  std::vector<Scope> scopes;
  llvm::DenseMap<unsigned, llvm::Value *> scratch;   ///< kept node -> row buffer
  llvm::DenseMap<unsigned, llvm::Value *> tiles;     ///< staged pointer -> tile
  llvm::Value *tileRow = nullptr;                    ///< Tiles: row within the tile
  unsigned currentLevel = 0;
  /// Of a cut row.
  struct Piece {
    llvm::Value *index, *begin;
    int64_t length;
  };
  std::optional<Piece> piece; ///< while one is emitted
  bool hasStreamed = false;                          ///< some result goes around the caches
  /// Reductions of the current sweep.
  Values initial;                                    ///< carried values before the first step
  llvm::SmallVector<mlir::Operation *> carriedCombiners; ///< per carried value
  llvm::SmallVector<unsigned> reductionSlots;            ///< [node] carried values per result
};

} // namespace msc::codegen
