// The plan dialect: the last form of a network before it is written as a plan.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/plan/PlanDialect.h.inc"
#include "dialects/plan/PlanEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace msc::plan_ir {

/// True for the operators that are steps: launch, matmul, call, copy, fill, collective, wait.
bool isStep(mlir::Operation *op);

/// Buffers that a step reads and writes. An argument updated in place is in both. A wait has none: until it, those of
/// its collective are in use.
struct Access {
  llvm::SmallVector<mlir::Value> reads;
  llvm::SmallVector<mlir::Value> writes;
};
Access accessOf(mlir::Operation *step);

/// The asynchronous collective that a wait awaits.
CollectiveOp startOf(WaitOp wait);

/// Modelled microseconds of a step that computes; 0 where nobody set them.
double computeUs(mlir::Operation *step);
void setComputeUs(mlir::Operation *step, double us);

/// The buffer whose memory a value shows: itself, or what it is a view of.
BufferOp rootBuffer(mlir::Value memory);

} // namespace msc::plan_ir
