#include "dialects/net/OperatorTime.h"

#include "dialects/net/NetOps.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace msc::net {

static bool isProduct(Operation *op) {
  return isa<MatMulOp, BatchMatMulOp, DenseOp, Conv2DOp, Conv2DTransposeOp, Conv2DBackpropInputOp, Conv2DBackpropFilterOp,
             ScaledDotProductAttentionOp, ScaledDotProductAttentionGradOp, ScaledDotProductAttentionMaskGradOp>(op);
}

/// The element type of a factor as the network has it: narrow ones are cast to f32 right in front of the product.
static Type factorType(Value factor) {
  if (auto cast = factor.getDefiningOp<CastOp>(); cast && getElementTypeOrSelf(factor.getType()).isF32())
    factor = cast->getOperand(0);
  return getElementTypeOrSelf(factor.getType());
}

Arithmetic arithmeticOf(Operation *op, const MachineModel &machine) {
  if (llvm::any_of(op->getOperandTypes(), [](Type type) { return getElementTypeOrSelf(type).isF64(); }))
    return Arithmetic::F64;
  if (!isProduct(op))
    return Arithmetic::F32;
  Type left = factorType(op->getOperand(0)), right = factorType(op->getOperand(1));
  if (left.isBF16() && right.isBF16())
    return Arithmetic::BF16;
  if (left.isF16() && right.isF16())
    return Arithmetic::F16;
  return getElementTypeOrSelf(op->getOperand(0).getType()).isF32() ? machine.productsOfF32 : Arithmetic::F32;
}

double operatorUs(const OperatorCost &work, Arithmetic arithmetic, const MachineModel &machine) {
  return machine.operatorUs(work.flops, work.bytesRead, work.bytesWritten, arithmetic);
}

} // namespace msc::net
