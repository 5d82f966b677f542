// Strategies of a file on the operators of a network.
#pragma once

#include "compiler/StrategyFile.h"

#include "mlir/IR/BuiltinOps.h"

namespace msc::compiler {

/// Rounds of a repeat to which `kept` gives different strategies, or one to some alone, get repeats of their own; not those of repeats within repeats.
void splitRounds(mlir::ModuleOp module, const KeptStrategies &kept);

/// Operators without a strategy take that of the file; those that have one keep it, and a remark says how many differ. An operator in
/// a repeat takes what the file says of its rounds, by splitRounds. A name that no operator has is an error, and so is a strategy that
/// the operator cannot have or that does not fit `devices`; 0: strategies will be ignored, and are not checked.
Status applyStrategies(mlir::ModuleOp module, const KeptStrategies &kept, const std::string &path, int64_t devices);

} // namespace msc::compiler
