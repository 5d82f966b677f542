#include "runtime/comm/nccl/Loader.h"

#include "runtime/Plugin.h"
#include "runtime/comm/nccl/Plugin.h"

namespace msc::comm {

static Error missing(const std::string &why) {
  return {ExitCode::NoResource, "no NCCL: " + why, "build again, or let collectives go through the host with --collectives host"};
}

Result<std::shared_ptr<StreamTransport>> loadNccl() {
  OpenPlugin plugin = openPlugin("libmsc_comm_nccl.so", "mscCommNcclTransport", "communicator");
  if (!plugin.entry)
    return missing(plugin.problem);
  MscNcclTransport result;
  auto *entry = reinterpret_cast<decltype(&mscCommNcclTransport)>(plugin.entry);
  if (int version = entry(MSC_NCCL_PLUGIN_VERSION, &result); version != MSC_NCCL_PLUGIN_VERSION)
    return missing("'" + plugin.path + "' has interface version " + std::to_string(version) + ", this program " +
                   std::to_string(MSC_NCCL_PLUGIN_VERSION));
  if (!result.transport)
    return result.error;
  return std::shared_ptr<StreamTransport>(result.transport);
}

} // namespace msc::comm
