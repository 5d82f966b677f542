// The machine model of the machine that this process runs on: `msrun --calibrate`.
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/machine/MachineModel.h"

namespace msc {

/// Measures collectives, products and copies with all ranks at work, and fits a model of one level, named after the transport
/// and the number of ranks ("threads-8"). Ends within about `seconds`. All ranks call it together and get the same.
Result<MachineModel> calibrate(comm::World &world, double seconds);

/// The same with `ranks` threads of this process.
Result<MachineModel> calibrateThreads(int64_t ranks, double seconds);

} // namespace msc
