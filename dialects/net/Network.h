// Networks: what holds operators together, their interfaces and attributes. Whoever asks operators by their interfaces needs
// this header alone, and is not built again when an operator is added; NetOps.h adds the classes of the operators.
#pragma once

#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetDialect.h"
#include "dialects/net/NetInterfaces.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Infer.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/net/Structure.h.inc"

namespace msc::net {

/// Fills `state.types` of an operator from its operands and attributes. Reports wrong operands at `state.location`,
/// with notes where they were declared; the operator need not exist for that.
llvm::LogicalResult inferResultTypes(mlir::OperationState &state);

/// Gives every operator of the network its ordinal `net.id`, in order.
void numberOperators(NetworkOp network);

/// The `net.return` of a network.
ReturnOp getReturn(NetworkOp network);

/// The result called `name`; reports why it cannot be minimised if it is missing or not a float scalar.
llvm::FailureOr<mlir::Value> findLoss(NetworkOp network, llvm::StringRef name);

} // namespace msc::net
