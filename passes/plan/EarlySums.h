// Where sums of many terms are added: as soon as some of the terms are there, so that no more of them are kept.
#pragma once

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace msc::passes {

/// So many terms of a sum are added at once: one pass over them instead of one over each two, and so many are kept at most.
inline constexpr size_t termsAtOnce = 4;

/// The operators of a block in another order that respects data flow.
struct OperatorOrder {
  std::vector<mlir::Operation *> operators;
  llvm::DenseSet<mlir::Operation *> early; ///< additions that stand as early as their terms allow; they are not to wait for others
};

/// Autodiff adds gradients of a value once all of them are there. Of sums of more than `termsAtOnce` of them, each `termsAtOnce` - 1
/// additions stand behind the last of their terms.
OperatorOrder withEarlySums(mlir::Block &block);

} // namespace msc::passes
