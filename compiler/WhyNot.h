// `msc explain --op NAME --why-not STRATEGY`: what a network would be with another strategy for one operator.
#pragma once

#include "compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"

namespace msc::compiler {

/// The options with which the operator takes the strategy, in those successive rounds of a repeat that have the same strategies in `now`,
/// and all that nobody configured is decided again: by sharding_propagation or recursive_programming where `now` was, else by exact
/// search. An error for a text that is no strategy; applyForced sees whether it is legal.
Result<CompileOptions> forced(CompileOptions options, const plan::Plan &now, const std::string &strategy);

/// Gives operators with this instance name, in any round of its repeat, the strategy of `options`, as if the user had written it. One that
/// is not legal is reported as a mistake of the command line.
mlir::LogicalResult applyForced(mlir::ModuleOp module, const CompileOptions &options, int64_t devices);

/// What is said where the operator has the strategy of `forced`; empty where it has another one.
std::string alreadyText(const CompileOutcome &now, const CompileOptions &forced);

/// What the network is and what it would be: the strategy that the operator has, the other one, and what differs. `columns`: as of
/// explainText.
Result<std::string> whyNotText(const CompileOutcome &now, const CompileOutcome &then, const std::string &op, size_t columns);
/// The schema is compiler/diff.schema.json.
Result<std::string> whyNotJson(const CompileOutcome &now, const CompileOutcome &then, const std::string &op);

} // namespace msc::compiler
