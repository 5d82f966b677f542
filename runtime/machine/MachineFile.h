// Machine models as JSON files; `machine.schema.json` beside this file says what stands in them.
#pragma once

#include "runtime/machine/MachineModel.h"
#include "runtime/Status.h"

namespace msc {

/// Names of presets to choose from; the first is the default. Presets.h says which others there are.
std::vector<std::string> machinePresets();

/// The preset of that name, else the model in the file of that name. Usage if there is neither, BadFile with the first
/// flaw of a file that is no machine model.
Result<MachineModel> readMachine(const std::string &nameOrPath);

/// The text of the file that readMachine reads back.
std::string machineJson(const MachineModel &machine);

} // namespace msc
