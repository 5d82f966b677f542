// How long an operator takes on a machine.
#pragma once

#include "dialects/net/NetInterfaces.h"
#include "runtime/machine/MachineModel.h"

namespace msc::net {

/// What an operator computes in, by its type: products of matrices and convolutions in that of their operands (in front of a cast
/// to f32, in which they add), all else in f32, or f64.
Arithmetic arithmeticOf(mlir::Operation *op, const MachineModel &machine);

/// Modelled time of so much work in that arithmetic.
double operatorUs(const OperatorCost &work, Arithmetic arithmetic, const MachineModel &machine);

} // namespace msc::net
