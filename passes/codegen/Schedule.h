// How a cluster is executed: which dimension lies in vector lanes, which dimensions the range argument runs over, in
// which sweeps the reductions are computed, and which values are kept between sweeps.
#pragma once

#include "passes/codegen/Cluster.h"

namespace msc::codegen {

/// A *row* is one iteration of the range (one set of lanes where the range runs over lanes). Within a row the inner
/// dimensions are swept once per level of reductions.
struct Schedule {
  enum Form {
    Flat,    ///< pointwise over one contiguous dimension; the range counts elements
    Rows,    ///< lanes run along an inner dimension; the range counts rows
    Columns, ///< lanes run along the last range dimension, reductions run inside; the range counts columns
    Tiles,   ///< pointwise with transposed tensors: 16 rows at a time through a tile on the stack
  };
  Form form = Rows;
  int vectorDim = -1;                        ///< -1: no dimension lies in lanes
  llvm::SmallVector<unsigned> rangeDims;     ///< in order, the last one fastest
  llvm::SmallVector<unsigned> innerDims;     ///< swept within a row, in order; Rows: the vector dimension is last
  unsigned lanes = 16;
  unsigned unroll = 4;                       ///< vectors per step of the main loop
  int64_t unit = 1;
  unsigned levels = 1;
  llvm::SmallVector<unsigned> level;         ///< [node] sweep in which it is (first) computed
  llvm::SmallVector<unsigned> storeLevel;    ///< [store]
  llvm::SmallBitVector kept;                 ///< [node] kept in a row buffer on the stack for later sweeps
  llvm::SmallBitVector staged;               ///< [pointer] Tiles: read or written through a transposed tile
  bool streams = false;                      ///< results are written around the caches where whole vectors are aligned
  int tileDim = -1;                          ///< Tiles: the range dimension along which staged tensors are contiguous
  /// Rows: where there is only one row, and that is long, it is cut along the outermost inner dimension into so many pieces of `pieceSize`
  /// (the last may be shorter), which threads reduce beside each other. The sizes decide alone.
  int64_t pieces = 1, pieceSize = 0;
  unsigned parts = 0;                        ///< with pieces: values that a piece hands over

  bool isCut() const { return pieces > 1; }
  bool isInner(unsigned dim) const { return llvm::is_contained(innerDims, dim); }
  /// The node has a value per point of the sweep, not one per row.
  bool isSwept(const Node &node) const {
    return llvm::any_of(innerDims, [&](unsigned dim) { return node.dims[dim]; });
  }
  bool variesInLanes(const Node &node) const { return vectorDim >= 0 && node.dims[vectorDim]; }
};

/// Fails with a reason where the cluster cannot be one kernel.
mlir::FailureOr<Schedule> scheduleCluster(const Cluster &cluster, std::string &reason, const KernelForm *like = nullptr);

KernelForm formOf(const Cluster &cluster, const Schedule &schedule);

} // namespace msc::codegen
