#include "runtime/comm/mpi/Loader.h"
#include "runtime/comm/mpi/Plugin.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace msc::comm {

constexpr const char *kPluginName = "libmsc_comm_mpi.so";

/// Where the plugin may be: beside the build tree's and the installed binaries.
static std::vector<std::filesystem::path> places() {
  std::vector<std::filesystem::path> list;
  if (const char *given = getenv("MSC_PLUGIN_PATH"); given && *given)
    return {given};
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  list.push_back(folder / ".." / "lib" / "msc");
  list.push_back(folder / ".." / ".." / "lib" / "msc");
  list.push_back(folder);
  return list;
}

static Error missing(const std::string &why) {
  return {ExitCode::NoResource, "no MPI transport: " + why,
          "install Open MPI (apt install libopenmpi-dev openmpi-bin) and build again, or run without mpirun"};
}

Result<std::unique_ptr<World>> loadMpiWorld() {
  std::string looked;
  for (const std::filesystem::path &folder : places()) {
    std::filesystem::path path = folder / kPluginName;
    std::error_code ignored;
    looked += (looked.empty() ? "'" : ", '") + folder.lexically_normal().string() + "'";
    if (!std::filesystem::exists(path, ignored))
      continue;
    void *plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
      return missing(dlerror());
    auto *entry = reinterpret_cast<decltype(&mscCommMpiWorld)>(dlsym(plugin, "mscCommMpiWorld"));
    if (!entry)
      return missing("'" + path.string() + "' is no communicator plugin");
    MscCommWorld result;
    if (int version = entry(MSC_COMM_PLUGIN_VERSION, &result); version != MSC_COMM_PLUGIN_VERSION)
      return missing("'" + path.string() + "' has interface version " + std::to_string(version) + ", this program " +
                     std::to_string(MSC_COMM_PLUGIN_VERSION));
    if (!result.world)
      return result.error;
    return std::unique_ptr<World>(result.world);
  }
  return missing(std::string(kPluginName) + " is not in " + looked);
}

} // namespace msc::comm
