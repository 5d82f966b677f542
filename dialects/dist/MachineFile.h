// Machine models as JSON files; `machine.schema.json` beside this file says what stands in them.
#pragma once

#include "dialects/dist/MachineModel.h"
#include "runtime/Status.h"

namespace msc::dist {

/// The preset of that name ("cpu-local"), else the model in the file of that name.
Result<MachineModel> readMachine(const std::string &nameOrPath);

/// The text of the file that readMachine reads back.
std::string machineJson(const MachineModel &machine);

} // namespace msc::dist
