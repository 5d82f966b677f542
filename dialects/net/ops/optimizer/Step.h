// What the steps of optimizers share; private to this folder.
#pragma once

#include "dialects/net/ops/support/Infer.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace msc::net {

/// C1 and C2: all operands have the shape of the first, but those at the positions `scalars` are scalars.
llvm::LogicalResult checkStep(const Inference &at, llvm::ArrayRef<unsigned> scalars);

/// g = grad / loss_scale + weight_decay * var; terms that change nothing are left out.
mlir::Value effectiveGradient(mlir::ImplicitLocOpBuilder &b, mlir::Value grad, mlir::Value var, double lossScale,
                              double weightDecay);

} // namespace msc::net
