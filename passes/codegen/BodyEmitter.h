// Turns the scalar body of a linalg.generic into straight-line LLVM IR: every f32 becomes <lanes x float>, or stays a float
// where there is one lane.
#pragma once

#include "passes/codegen/NarrowFloat.h"
#include "passes/codegen/VectorMath.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/IR/IRBuilder.h"

#include <functional>
#include <string>

namespace msc::codegen {

/// The operation is part of the vocabulary of scalar bodies.
bool isSupportedInBody(mlir::Operation &op);
/// bf16 or f16: types of memory, which are f32 in registers.
bool isNarrowFloat(mlir::Type type);
/// The type may stand in a body: f32, f64, i1, i8, i32, i64, index; bf16 and f16 in constants, selections and casts.
bool isSupportedType(mlir::Type type);
/// Rough work of one execution of the operation, in vector instructions.
unsigned bodyCost(mlir::Operation &op);

/// Element type in registers (i1 for bool, i64 for index, f32 for bf16 and f16) and in memory (one byte for bool, 16 bits
/// for bf16 and f16).
llvm::Type *registerType(mlir::Type type, llvm::LLVMContext &context);
llvm::Type *memoryType(mlir::Type type, llvm::LLVMContext &context);

class BodyEmitter {
public:
  BodyEmitter(llvm::IRBuilderBase &builder, unsigned lanes) : builder(builder), math(builder), narrow(builder), lanes(lanes) {}

  /// Emits the body for the given block arguments (vectors) and returns what it yields. `index` gives the vector of
  /// positions in a loop of the generic.
  llvm::SmallVector<llvm::Value *> emit(mlir::Block &body, llvm::ArrayRef<llvm::Value *> arguments,
                                        llvm::function_ref<llvm::Value *(unsigned loop)> index);
  /// Emits one binary operation, e.g. to merge two partial sums.
  llvm::Value *emitBinary(mlir::Operation &op, llvm::Value *left, llvm::Value *right);
  llvm::Constant *splat(mlir::TypedAttr value);
  /// The value that changes nothing when a reduction's combiner merges it.
  llvm::Constant *identity(mlir::Operation &combiner);
  llvm::Type *vectorType(mlir::Type element);

private:
  llvm::Value *emitOp(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);
  llvm::Value *emitFloat(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);
  llvm::Value *emitInteger(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);
  llvm::Value *emitCast(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);
  llvm::Value *emitMath(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);
  llvm::Value *divide(llvm::Value *a, llvm::Value *b, bool isSigned, bool remainder);
  llvm::Value *powConstant(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);

  llvm::IRBuilderBase &builder;
  VectorMath math;
  NarrowFloat narrow;
  unsigned lanes;
};

} // namespace msc::codegen
