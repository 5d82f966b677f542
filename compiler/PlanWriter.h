// From the plan dialect to plan.proto: numbering of buffers, shardings, locations and groups.
#pragma once

#include "dialects/plan/PlanDialect.h"
#include "runtime/plan/Sharding.h"
#include "runtime/plan/plan.pb.h"

namespace msc::compiler {

/// Adds the program, its buffers, kernels, objects, parameters and schedules to `plan`. The memory must be assigned.
/// Deterministic: the same operators give the same bytes.
void writeProgram(plan_ir::ProgramOp program, plan::Plan &plan);

/// Index of a location in `plan`; added if new. Only file and line are kept. Unknown locations give line 0.
uint32_t addLocation(mlir::Location location, plan::Plan &plan);

/// File and line of the innermost source place in a location; line 0 if there is none.
std::pair<std::string, unsigned> fileAndLine(mlir::Location location);

plan::Sharding toProto(const Sharding &sharding);

/// Index of a sharding in `plan`; added if new.
uint32_t addSharding(const Sharding &sharding, plan::Plan &plan);

plan::DataType dataTypeOf(mlir::Type element);

} // namespace msc::compiler
