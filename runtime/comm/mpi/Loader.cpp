#include "runtime/comm/mpi/Loader.h"

#include "runtime/Plugin.h"
#include "runtime/comm/mpi/Plugin.h"

namespace msc::comm {

static Error missing(const std::string &why) {
  return {ExitCode::NoResource, "no MPI transport: " + why,
          "install Open MPI (apt install libopenmpi-dev openmpi-bin) and build again, or run without mpirun"};
}

Result<std::unique_ptr<World>> loadMpiWorld() {
  OpenPlugin plugin = openPlugin("libmsc_comm_mpi.so", "mscCommMpiWorld", "communicator");
  if (!plugin.entry)
    return missing(plugin.problem);
  auto *entry = reinterpret_cast<decltype(&mscCommMpiWorld)>(plugin.entry);
  MscCommWorld result;
  if (int version = entry(MSC_COMM_PLUGIN_VERSION, &result); version != MSC_COMM_PLUGIN_VERSION)
    return missing("'" + plugin.path + "' has interface version " + std::to_string(version) + ", this program " +
                   std::to_string(MSC_COMM_PLUGIN_VERSION));
  if (!result.world)
    return result.error;
  return std::unique_ptr<World>(result.world);
}

} // namespace msc::comm
