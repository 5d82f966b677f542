// Attributes that any operator of a network may carry beside its own. They are discardable: passes that do not know
// them leave them alone. Use these accessors, never the raw names.
#pragma once

#include "dialects/net/ShardingRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace msc::net {

/// Where an operator came from in time. Forward operators carry no attribute.
enum class Phase { Forward, Backward, Update };
llvm::StringRef phaseName(Phase phase); // "forward", "backward", "update"
Phase getPhase(mlir::Operation *op);
void setPhase(mlir::Operation *op, Phase phase);

/// `@ "name"`: what reports and dumps call this operator. Default: the name of its first value.
llvm::StringRef getInstanceName(mlir::Operation *op);
void setInstanceName(mlir::Operation *op, llvm::StringRef name);

/// "Default/network-WithLossCell/_backbone-Net/layer1".
llvm::StringRef getScope(mlir::Operation *op);
void setScope(mlir::Operation *op, llvm::StringRef scope);

/// Source names of the results ("h" for %h), one per result; empty where the value has none. Carried values of a repeat
/// have the names of what they carry first; its results, of what its rounds yield.
llvm::StringRef getValueName(mlir::Value value);
void setValueNames(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names);

/// Replaces every name that an operation carries: of itself, its results, its scope, and of whom its strategy follows.
void renameAll(mlir::Operation *op, llvm::function_ref<std::string(llvm::StringRef)> rename);

/// Pieces per dimension per operand. Absent: not decided yet.
std::optional<Strategy> getInStrategy(mlir::Operation *op);
void setInStrategy(mlir::Operation *op, const Strategy &strategy);
std::optional<Strategy> getOutStrategy(mlir::Operation *op);
void setOutStrategy(mlir::Operation *op, const Strategy &strategy);

/// Operators that were one operator of a repeat: the ordinals of the repeats around it, then its own. Empty: of none. Set
/// by `unrollAll`.
llvm::ArrayRef<int64_t> getAlike(mlir::Operation *op);
void setAlike(mlir::Operation *op, llvm::ArrayRef<int64_t> ordinals);
void clearAlike(mlir::Operation *op);

/// Who decided the strategy: "user", "propagated from 'matmul'", "searched", "data_parallel", "follows 'x'".
llvm::StringRef getStrategyOrigin(mlir::Operation *op);
void setStrategyOrigin(mlir::Operation *op, llvm::StringRef origin);
/// Takes back in_strategy and its origin.
void clearStrategy(mlir::Operation *op);

/// Backward and update operators: the forward operator whose gradient they belong to, by its ordinal `net.id`.
std::optional<int64_t> getForwardId(mlir::Operation *op);
void setForwardId(mlir::Operation *op, int64_t id);
/// A backward operator's operand that is the gradient of a result of its forward operator: which result.
std::optional<int64_t> getGradientOfResult(mlir::Operation *op, unsigned operand);
void setGradientOfResult(mlir::Operation *op, unsigned operand, int64_t result);
/// A backward operator whose first result is the gradient of an operand of its forward operator: which operand.
std::optional<int64_t> getGradientOfOperand(mlir::Operation *op);
void setGradientOfOperand(mlir::Operation *op, int64_t operand);
/// Operators within an expansion or a gradient whose operands do not tell how the result is split: per dimension of the
/// result the factor of the expanded or forward operator's rule that cuts it, or -1. Empty: nothing is said.
llvm::SmallVector<int64_t> getResultFactors(mlir::Operation *op);
void setResultFactors(mlir::Operation *op, llvm::ArrayRef<int64_t> factors);
/// Operators that stand for another one: what users know. `name` is its instance name, `op` its mnemonic, `index` counts
/// the expanded operators of a network. Parts of a part belong to the outermost one.
struct Whole {
  llvm::StringRef name, op;
  int64_t index;
};
std::optional<Whole> getWhole(mlir::Operation *part);
void setWhole(mlir::Operation *part, mlir::Operation *whole, int64_t index);
/// What users call an operator: the instance name of the whole that it is part of, else its own.
llvm::StringRef getUserName(mlir::Operation *op);
/// The same for its mnemonic.
llvm::StringRef getUserOp(mlir::Operation *op);
/// Ordinal of a forward operator, given by `numberOperators` before autodiff.
std::optional<int64_t> getId(mlir::Operation *op);
void setId(mlir::Operation *op, int64_t id);

} // namespace msc::net
