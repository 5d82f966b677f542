// What losses share: terms that are added up, or labels that are classes.
#pragma once

#include "dialects/net/ops/support/Infer.h"

namespace msc::net {

//===-- one term per element ----------------------------------------------===//

/// Operand 0 and 1 of one shape, the others broadcast to it; all of one float type. A scalar, or for `reduction` none the
/// shape of operand 0.
llvm::LogicalResult inferElementLoss(const Inference &at, llvm::StringRef reduction, llvm::ArrayRef<llvm::StringRef> words,
                                     llvm::SmallVectorImpl<mlir::Type> &results);

/// The terms, their sum, or their mean: over all of them, or over dimension 0 (`batchmean`).
mlir::Value reducedTerms(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value terms, llvm::StringRef reduction);

/// One factor per dimension of operand 0.
ShardingRule elementLossRule(mlir::Operation *op, bool reduces);

OperatorCost elementLossCost(mlir::Operation *op, llvm::ArrayRef<std::vector<int64_t>> operands,
                             llvm::ArrayRef<std::vector<int64_t>> results);

//===-- labels that are classes -------------------------------------------===//

/// `labels` hold i32 or i64 and have the shape of `logits` without the last dimension, the classes.
llvm::LogicalResult checkSparseLabels(const Inference &at, unsigned logits, unsigned labels, const llvm::Twine &help = "");

/// True at the class of each row; of `shape`, whose last dimension are the classes. Its dimensions carry the first factors
/// of the rule of the operator that this is a part of.
mlir::Value hotClasses(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value labels, llvm::ArrayRef<int64_t> shape);

} // namespace msc::net
