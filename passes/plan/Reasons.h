// Why a step communicates, and for which operator.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Halo.h"

#include "mlir/IR/Operation.h"

#include <string>

namespace msc::passes {

/// Why an operator that copies regions communicates, in a sentence for people: "Split 'parts' moves elements along dimension 1 of
/// 'qkv', cut into 4 pieces; ...": with a repair where there is a usual one. Of one tensor of the exchange, or where that is
/// whole, of one that is cut. `forward` is the operator whose gradient `op` belongs to, or null.
std::string exchangeReason(mlir::Operation *op, mlir::Operation *forward, const net::RegionExchange &exchange,
                           const net::RegionTensor &tensor);

/// Why the windows of an operand are gathered: "Conv2D 'conv' reaches over the boundaries of dimension 2 of 'x', cut into 4
/// pieces".
std::string haloReason(mlir::Operation *op, mlir::Operation *forward, const net::HaloWindows &windows);

/// The operator that needs a move: whose partial result is completed, or who first consumes the value. Null where nobody does.
mlir::Operation *operatorServed(dist::CollectiveOp move);

} // namespace msc::passes
