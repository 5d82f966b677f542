// From the IR to the plain data that rules and solvers speak in.
#pragma once

#include "dialects/net/Config.h"
#include "dialects/net/Network.h"
#include "passes/sharding/Problem.h"

namespace msc::passes {

/// Global shape of a tensor value.
Shape shapeOf(mlir::Value value);

/// Bytes of one element of a tensor value; bool takes one.
size_t elementBytesOf(mlir::Value value);

/// What messages call an operand: its name in the source, else the operator's own name for it.
std::string operandName(mlir::Operation *op, unsigned operand);

/// True for operators that have a sharding rule.
bool hasRule(mlir::Operation *op);

/// True if the strategy of an operator, if it has one, is the user's.
bool isByUser(mlir::Operation *op);

/// Rule, shapes and names of an operator that has a sharding rule.
OperatorFacts factsOf(mlir::Operation *op);

/// The operations that one operator of a problem stands for.
using Members = std::vector<mlir::Operation *>;

/// What of the train block changes what strategies cost.
struct TrainingFacts {
  std::string minimize;        ///< name of the loss; empty: the network is not trained
  int64_t optimizerStates = 0; ///< tensors that are kept for the update of each parameter, where `train` does not say it
  bool inBuckets = false;      ///< gradient collectives of one group run together
  std::optional<net::TrainConfig> train = {}; ///< absent: nothing but that is known of the update
};

/// The forward graph of a network. `members` receives the operations of each operator of the problem. The body of a
/// repeat stands once; so do rounds of a dump (`net::getAlike`) whose operators have the same strategies from the user, if
/// `joinAlike`. Strategies that are already there are not read otherwise.
Problem problemOf(net::NetworkOp network, int64_t devices, bool joinAlike, std::vector<Members> &members,
                  const TrainingFacts &training = {});

} // namespace msc::passes
