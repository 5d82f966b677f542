// The steps of the reshard planner as operators: slices and collectives with the labels of the move that they belong to.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/dist/Reshard.h"
#include "dialects/net/NetAttributes.h"

namespace msc::passes {

/// What a move hands on to its steps.
struct MoveLabel {
  mlir::Location loc;
  std::string scope;
  net::Phase phase;
  std::optional<int64_t> forwardId;
  std::string name;   ///< without the kind of a step
  std::string move;   ///< "completion" or "redistribution"
  std::string reason; ///< a sentence for people
};

/// The label of a `dist.reshard`, `dist.slice` or `dist.collective`.
MoveLabel labelOf(mlir::Operation *move);

/// True for `dist.slice` and `dist.collective`.
bool isMoveStep(mlir::Operation *op);

/// Creates the steps one after the other; returns the last one's result (`source` if there are none).
mlir::Value createSteps(mlir::OpBuilder &builder, mlir::Value source, llvm::ArrayRef<dist::ReshardStep> steps,
                        const MoveLabel &label);

} // namespace msc::passes
