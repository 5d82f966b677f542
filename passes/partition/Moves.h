// Makes `dist.reshard` operators: their names, scopes and reasons.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "passes/sharding/Strategy.h"

namespace msc::passes {

/// What users call an operator: "'relu'"; one of the backward pass, whose forward operator is given, goes by what it
/// computes: "gradient of 'w2' (matmul2)".
std::string callerOf(mlir::Operation *op, mlir::Operation *forward);

/// The name of a value in front of its moves, else that of the operator that makes it.
std::string nameOfValue(mlir::Value value);

/// Why the results of an operator are partial: "MatMul 'matmul' sums over 4 pieces of its contracted dimension".
std::string completionReason(mlir::Operation *op, mlir::Operation *forward, const OperatorFacts &facts,
                             const Pieces &pieces);

/// Why a value moves: "'relu' wants dimension 1 of 'h' cut into 4"; `what` is the value, in quotes, or empty.
std::string redistributionReason(const std::string &who, const std::string &what, const Sharding &from,
                                 const Sharding &to);

/// Creates moves and names them in order.
class MoveBuilder {
public:
  /// Completes a partial result right behind its operator, or redistributes one that is not partial there.
  mlir::Value complete(mlir::Value value, const Sharding &target, llvm::StringRef reason);
  /// Redistributes a value in front of the operator that wants it.
  mlir::Value redistribute(mlir::Value value, const Sharding &target, mlir::Operation *user, llvm::StringRef reason);

private:
  mlir::Value move(mlir::OpBuilder &builder, mlir::Operation *context, mlir::Value value, const Sharding &target,
                   llvm::StringRef kind, llvm::StringRef name, llvm::StringRef reason);
  int64_t next = 0;
};

} // namespace msc::passes
