// `net` dialect -> text. Networks and step_parallel_begin read back as equal modules; the dumps of a rank read back as text.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>

namespace msc::frontend {

/// A hand-written network's form: cells stay expanded, strategies stand in braces.
void printNetwork(mlir::ModuleOp module, llvm::raw_ostream &os);

/// step_parallel_begin: the forward graph with its loss, global types, all strategies, and the blocks at the end.
void printBeginDump(mlir::ModuleOp module, llvm::raw_ostream &os);

enum class RankDumpKind {
  ParallelEnd, ///< forward, on the rank's own shards
  Execute,     ///< forward, backward, update
  Backend,     ///< as it runs
};

/// What `rank` does: operators with local shapes, collectives with the rank's groups. Types carry shardings; tensors
/// without one are printed whole.
void printRankDump(mlir::ModuleOp module, int64_t rank, RankDumpKind kind, llvm::raw_ostream &os);

/// The same graphs as Graphviz. A node says operator, instance name, strategy, origin and shape of its results;
/// collectives are filled, backward operators have a blue frame and updates a green one.
void printBeginDot(mlir::ModuleOp module, llvm::raw_ostream &os);
void printRankDot(mlir::ModuleOp module, int64_t rank, RankDumpKind kind, llvm::raw_ostream &os);

} // namespace msc::frontend
