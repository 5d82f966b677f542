// A fused cluster in plain data: one iteration domain, the nodes (scalar bodies) over it, and how every tensor is
// indexed by the domain. Nothing here depends on a target.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace msc::codegen {

/// How a tensor is indexed by the domain: element = sum over dims of stride * position.
struct Access {
  llvm::SmallVector<int64_t> strides;   ///< [domain dim], in elements; 0 where the tensor does not have it
  llvm::SmallVector<int> positions;     ///< [domain dim] dimension of the tensor, or -1
  bool has(unsigned dim) const { return positions[dim] >= 0; }
  bool operator==(const Access &) const = default;
};

/// Where a block argument of a body comes from.
struct Operand {
  enum Kind { Pointer, Node, Constant } kind = Constant;
  unsigned index = 0;             ///< pointer or node
  unsigned result = 0;            ///< Node: which of its results
  mlir::TypedAttr constant;       ///< Constant
  Access access;                  ///< Pointer
};

/// One linalg.generic.
struct Node {
  mutable mlir::linalg::GenericOp op;     ///< mutable: operation handles do not know const
  llvm::SmallVector<int> loopDims;        ///< [loop] domain dim, or -1 for a loop of size 1 outside the domain
  llvm::SmallBitVector dims;              ///< domain dims that the node iterates over
  llvm::SmallBitVector reduced;           ///< those that it reduces
  llvm::SmallVector<Operand> operands;    ///< one per block argument, initial values of reductions included
  llvm::SmallVector<mlir::Operation *> combiners; ///< reductions: per result, the operation that merges partial values, or null
  bool usesIndex = false;
  bool isReduction() const { return reduced.any(); }
};

/// A result of the function: which node gives it and where it is written.
struct Store {
  unsigned node = 0, result = 0;
  unsigned pointer = 0;
  Access access;
};

/// A kernel argument in the order of the ABI.
struct Pointer {
  mlir::Type element;
  bool written = false, read = false;
};

/// What two kernels must share so that one launch can run either: the range counts the same things. Local sizes of 1 can
/// hide which dimensions a tensor has, so the kernel for the smaller piece follows the form of the larger one.
struct KernelForm {
  unsigned widest = 0;                                    ///< node whose loops are the domain
  llvm::SmallVector<llvm::SmallVector<unsigned>> groups;  ///< [domain dim] the loops that it merges
  int form = 0, vectorDim = -1, tileDim = -1;             ///< see Schedule
};

struct Cluster {
  unsigned widest = 0;                                ///< node whose loops are the domain
  llvm::SmallVector<int64_t> sizes;                   ///< [domain dim]
  llvm::SmallVector<llvm::SmallVector<unsigned>> origin; ///< [domain dim] the loops of the widest operator that it merges
  /// [loop of the widest operator] a pointer and a dimension of its tensor that have the loop's size; pointer -1: none.
  llvm::SmallVector<std::pair<int, int>> places;
  std::vector<Node> nodes;                            ///< in order of computation
  llvm::SmallVector<Store> stores;
  llvm::SmallVector<Pointer> pointers;
  llvm::SmallBitVector reduced;                       ///< dims that any node reduces

  unsigned rank() const { return sizes.size(); }
};

/// Reads a cluster. On failure `reason` says what stands against one kernel (names no location).
/// With `like` the domain gets the dimensions of that form.
mlir::FailureOr<Cluster> analyseCluster(mlir::func::FuncOp func, std::string &reason, const KernelForm *like = nullptr);

/// The operation of a reduction's body that merges partial values (addf, mulf, maximumf, ...), or null.
mlir::Operation *matchCombiner(mlir::linalg::GenericOp op, unsigned result);

} // namespace msc::codegen
