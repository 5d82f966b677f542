// The dist dialect: shardings as tensor encodings, and data movement between ranks.
#pragma once

#include "runtime/machine/MachineModel.h"
#include "runtime/plan/Sharding.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/dist/DistDialect.h.inc"
#include "dialects/dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

namespace msc::dist {

/// How an AllReduce or ReduceScatter brings terms together: kinds do not commute, the most minor partial axes go first.
ReduceKind reductionOf(CollectiveOp op);

/// What a `dist.slice` or `dist.collective` does.
MoveKind moveKindOf(mlir::Operation *step);
/// Modelled time of a `dist.slice` or `dist.collective`, in microseconds.
double stepUs(mlir::Operation *step, const MachineModel &machine);
/// Bytes that the busiest rank receives in a collective.
int64_t receivedBytes(CollectiveOp op);
/// Modelled time of collectives that run as one: `steps` are of one kind and group.
double stepsUs(llvm::ArrayRef<mlir::Operation *> steps, const MachineModel &machine);
/// Collectives with the same number run as one, `dist.fusion` of the operator; absent: on its own.
std::optional<int64_t> fusionOf(mlir::Operation *op);
void setFusion(mlir::Operation *op, int64_t number);
/// The machine that this compilation is for.
const MachineModel &machineOf(mlir::Operation *op);

/// The sharding that a tensor type carries; the type must carry one.
msc::Sharding shardingOf(mlir::Type type);
inline msc::Sharding shardingOf(mlir::Value value) { return shardingOf(value.getType()); }
/// True if the tensor type carries a sharding.
bool hasSharding(mlir::Type type);
/// The same tensor type with this sharding.
mlir::RankedTensorType withSharding(mlir::Type type, const msc::Sharding &sharding);
/// Global shape as plain data.
std::vector<int64_t> globalShape(mlir::Type type);

} // namespace msc::dist
