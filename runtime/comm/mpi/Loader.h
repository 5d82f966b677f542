// Brings in the MPI transport: a plugin, so that one msrun runs where no MPI is installed.
#pragma once

#include "runtime/comm/Communicator.h"

namespace msc::comm {

/// The world of the processes that mpirun has started. Loads libmsc_comm_mpi.so from beside the program (lib/msc next to
/// the folder of the binary), or from the folder in MSC_PLUGIN_PATH. NoResource if the plugin or MPI is missing.
Result<std::unique_ptr<World>> loadMpiWorld();

} // namespace msc::comm
