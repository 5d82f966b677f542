// Reverse mode on networks: from a forward network to one training step.
#pragma once

#include "dialects/net/Config.h"
#include "dialects/net/Network.h"

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

/// Gradients of the trained parameters, in the order of their declaration.
using ParameterGradients = llvm::MapVector<mlir::Value, mlir::Value>;

/// Numbers the forward operators and appends the backward pass from the scalar result named `loss`. The gradients are those
/// of the loss times its scale; a dynamic scale is a state called "loss_scale".
llvm::FailureOr<ParameterGradients> buildBackward(net::NetworkOp network, llvm::StringRef loss,
                                                  const net::LossScaleConfig &scale = {});

/// Puts copies of the forward operators marked `{recompute: true}` in front of the backward operators that read their
/// results. The results of the copies have the same bits.
void recomputeForward(net::NetworkOp network);

/// Appends what the train block asks for behind the gradients: loss scale, accumulation, clipping, then one step of the
/// optimizer and a `net.update` per parameter. SGD with momentum is Momentum, with the state called alike. As in MindSpore,
/// weight decay spares parameters whose name contains "beta" or "gamma", unless `no_decay` says which.
void buildUpdate(net::NetworkOp network, const ParameterGradients &gradients, const net::TrainConfig &train);

/// Tells each Dropout of a network that is going to be trained which stream of random words it draws from (by the seed of
/// training and its name), and which state counts the steps. Where `ranks` ranks have tensors of their own, each draws for itself.
void beginDropouts(net::NetworkOp network, uint64_t seed, int64_t ranks = 1);

/// In networks that are not trained Dropout keeps all: its operand stands in its place.
void removeDropouts(net::NetworkOp network);

/// Appends a `net.update` for every state that an operator of the forward network computes anew. Where `ranks` ranks have
/// tensors of their own it gets the mean of what they compute, so that all of them have the same.
llvm::LogicalResult buildStateUpdates(net::NetworkOp network, int64_t ranks = 1);

/// Where `ranks` ranks have tensors of their own: what is minimised is the mean of their losses, which the result named
/// `loss` shows, and the gradients become those of the mean.
void meanOverRanks(net::NetworkOp network, llvm::StringRef loss, ParameterGradients &gradients, int64_t ranks);
/// The mean of what the ranks have, of floats; on one rank the value itself.
mlir::Value meanOverRanks(mlir::OpBuilder &builder, mlir::Value value, int64_t ranks, llvm::StringRef name);

/// Appends the values called "%name" and the gradients called "grad:name" to the results of the network.
llvm::LogicalResult keepValues(net::NetworkOp network, const ParameterGradients &gradients,
                               llvm::ArrayRef<std::string> names);

/// Erases operators without effect whose results nobody uses.
void removeDeadOperators(net::NetworkOp network);

/// All of it: backward, update, kept values, dead code.
llvm::LogicalResult buildGradients(net::NetworkOp network, llvm::StringRef loss, const net::TrainConfig &train,
                                   llvm::ArrayRef<std::string> keep = {}, int64_t ranks = 1);

} // namespace msc::autodiff
