// Reverse mode on networks: from a forward network to one training step.
#pragma once

#include "dialects/net/NetOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"

#include <memory>
#include <string>
#include <vector>

namespace msc::autodiff {

#define GEN_PASS_DECL
#include "passes/autodiff/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/autodiff/Passes.h.inc"

/// What `train {optimizer: ...}` says. Defaults are MindSpore's.
struct Optimizer {
  std::string kind; ///< "Momentum" or "SGD"
  double learningRate = 0.1;
  double momentum = 0;
  double weightDecay = 0; ///< not for parameters whose name contains "beta" or "gamma", as in MindSpore
  double lossScale = 1;
  double dampening = 0;
  bool nesterov = false;
};

/// Reads {callee, args, named}. Reports unknown optimizers and options at `location`.
llvm::FailureOr<Optimizer> readOptimizer(mlir::DictionaryAttr spec, mlir::Location location);

/// Gradients of the trained parameters, in the order of their declaration.
using ParameterGradients = llvm::MapVector<mlir::Value, mlir::Value>;

/// Numbers the forward operators and appends the backward pass from the scalar result named `loss`.
llvm::FailureOr<ParameterGradients> buildBackward(net::NetworkOp network, llvm::StringRef loss);

/// Appends one step of the optimizer and a `net.update` per parameter.
void buildUpdate(net::NetworkOp network, const ParameterGradients &gradients, const Optimizer &optimizer);

/// Appends the values called "%name" and the gradients called "grad:name" to the results of the network.
llvm::LogicalResult keepValues(net::NetworkOp network, const ParameterGradients &gradients,
                               llvm::ArrayRef<std::string> names);

/// Erases operators without effect whose results nobody uses.
void removeDeadOperators(net::NetworkOp network);

/// All of it: backward, update, kept values, dead code.
llvm::LogicalResult buildGradients(net::NetworkOp network, llvm::StringRef loss, const Optimizer &optimizer,
                                   llvm::ArrayRef<std::string> keep = {});

} // namespace msc::autodiff
