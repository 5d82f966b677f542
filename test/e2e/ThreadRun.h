// One step of a plan on ranks that are threads of this process, from state that the test gives.
#pragma once

#include "compiler/Compiler.h"
#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"
#include "test/reference/Tensor.h"

#include <map>
#include <string>

namespace msc::e2e {

using Tensors = std::map<std::string, reference::Tensor>;

/// Global tensors after one step.
struct StepResult {
  Tensors outputs;    ///< results of the program, by name
  Tensors parameters; ///< parameters and states after the update
};

/// Runs one step of the training program. `given` holds inputs, parameters and states; values are rounded to the buffers'
/// element types. An Error also if two ranks that hold the same elements disagree in a bit.
Result<StepResult> runStep(const plan::Plan &plan, const Tensors &given);

/// What plans for runStep are compiled for: most of the time of a case goes into machine code, of which short campaigns leave out what
/// this processor does not run.
compiler::MachineCode machineCodeOfRuns();

} // namespace msc::e2e
