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

/// The class of each row of a tensor whose last dimension are the classes. Numbers the classes where it is made: made in front of what
/// is chosen from it is a step of its own, and the choice joins the kernel that makes what is chosen.
class ClassOfRow {
public:
  /// `labels` as checkSparseLabels takes them for logits of `shape`.
  ClassOfRow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value labels, llvm::ArrayRef<int64_t> shape);

  /// `there` at the class of each row, `elsewhere` at the others; both may be repeated up to `shape`, which the result has. A row whose
  /// label is no class has none. The dimensions carry the first factors of the rule of the operator that this is a part of.
  mlir::Value choose(mlir::Value there, mlir::Value elsewhere) const;

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t rank;
  mlir::Value labels, classes; ///< a column, and 0, 1, ...
};

} // namespace msc::net
