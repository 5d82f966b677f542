// From the IR to the plain data that rules and solvers speak in.
#pragma once

#include "dialects/net/NetOps.h"
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

/// Rule, shapes and names of an operator that has a sharding rule.
OperatorFacts factsOf(mlir::Operation *op);

/// The forward graph of a network. `operations` receives the operation of each operator of the problem. Strategies that
/// are already there are not read.
Problem problemOf(net::NetworkOp network, int64_t devices, std::vector<mlir::Operation *> &operations);

} // namespace msc::passes
