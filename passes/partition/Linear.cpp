#include "passes/partition/Linear.h"

#include "dialects/net/NetOps.h"

namespace msc::passes {

bool isLinearIn(mlir::Operation *op, unsigned operand) {
  if (llvm::isa<net::RealDivOp>(op))
    return operand == 0;
  if (net::isLinearCopy(op))
    return true;
  return llvm::isa<net::MatMulOp, net::Conv2DOp, net::Conv2DTransposeOp, net::Conv2DBackpropInputOp, net::Conv2DBackpropFilterOp,
                   net::AvgPoolOp, net::AvgPoolGradOp, net::AdaptiveAvgPool2DOp, net::AdaptiveAvgPool2DGradOp, net::MulOp, net::NegOp, net::ReduceMeanOp, net::ReduceSumOp, net::TransposeOp>(op);
}

bool addsPartials(mlir::Operation *op) { return llvm::isa<net::AddOp>(op); }

} // namespace msc::passes
