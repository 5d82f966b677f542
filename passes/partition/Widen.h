// bf16 and f16 are types of memory: every operator computes in f32 and rounds its results once. So a value has the same
// bits whether its operator was fused with others or not, and what is partial is summed in f32, on any number of devices.
// Plans say the same with fewer casts: kernels that multiply narrow operands add in f32 and round once themselves. All devices have
// them for products and convolutions of bf16, GPUs for more.
#pragma once

#include "dialects/net/Network.h"

namespace msc::passes {

/// Of networks that no CPU runs: there casts are fused with what reads them.
bool isForGpusAlone(mlir::Operation *op);

/// The operator computes (it does more than move or convert elements) and a tensor of it is bf16 or f16.
bool computesNarrow(mlir::Operation *op);

/// Casts the narrow operands of an operator to f32 on the rank's own pieces and gives the narrow results f32. Returns the
/// element types that the results had, null where nothing changes.
llvm::SmallVector<mlir::Type> widen(mlir::Operation *op);

/// The plan is for devices whose kernels read narrow operands of such an operator as they are, and add in f32; these are narrow, or cast
/// from what is.
bool takesNarrow(mlir::Operation *op);

/// One that takes narrow operands, but only where its results are narrow, too: what is partial or read in f32 it computes of casts.
bool isOfOneType(mlir::Operation *op);

/// A convolution that reads f32 which was cast from bf16, in plans that CPUs may run.
bool holdsBFloat16(mlir::Operation *op);

/// Undoes `widen` where the operator takes narrow operands: it reads what was cast to f32, and writes the narrow type where nobody reads
/// a result but one cast to that. Casts that nobody reads any more are left. Attention reads and writes all in one type or stays in f32.
void readNarrow(mlir::Operation *op);

/// A cast of a narrow type to f32 in a plan for GPUs alone: kernels that read it read the narrow value.
bool isStoredNarrow(mlir::Operation *op);

/// Gives every operator that may be fused with a cast of a narrow type to f32 a cast of its own.
void castForEachReader(mlir::Operation *cast);

/// A cast that `widen` or `roundTo` made, of an operator that stands there itself: users know neither it nor its name.
bool isWideningCast(mlir::Operation *op);

/// Erases those that nobody reads, and makes copies of those that belong to copies of forward operators, so that they run as one kernel.
void settleCasts(mlir::Block &block);

/// Behind `wide` (completed, in f32): the same value rounded to `element`, under the names that `result` carries.
mlir::Value roundTo(mlir::Type element, mlir::Value wide, mlir::Value result);

} // namespace msc::passes
