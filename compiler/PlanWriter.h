// From the plan dialect to plan.proto: numbering of buffers, shardings, locations and groups.
#pragma once

#include "dialects/plan/PlanDialect.h"
#include "runtime/plan/Sharding.h"
#include "runtime/plan/plan.pb.h"

#include <map>
#include <string>

namespace msc::compiler {

/// The tables of a plan whose entries others name by index: files, locations, shardings. Each entry is there once.
class PlanTables {
public:
  explicit PlanTables(plan::Plan &plan) : plan(plan) {}
  /// Only file and line are kept. Unknown locations give line 0.
  uint32_t location(mlir::Location location);
  uint32_t sharding(const Sharding &sharding);

  plan::Plan &plan;

private:
  std::map<std::pair<std::string, unsigned>, uint32_t> locations;
  std::map<std::string, uint32_t> files, shardings;
};

/// Adds the program, its buffers, kernels, objects, parameters and schedules to `plan`. The memory must be assigned.
/// Deterministic: the same operators give the same bytes.
void writeProgram(plan_ir::ProgramOp program, PlanTables &tables);

/// File and line of the innermost source place in a location; line 0 if there is none.
std::pair<std::string, unsigned> fileAndLine(mlir::Location location);

plan::DataType dataTypeOf(mlir::Type element);

} // namespace msc::compiler
