// Finds and opens the plugins of msrun: shared objects of the same build, loaded when a run wants them.
#pragma once

#include "runtime/Status.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <vector>

namespace msc {

/// Where plugins may be: the folder in MSC_PLUGIN_PATH, or beside the build tree's and the installed binaries.
inline std::vector<std::filesystem::path> pluginFolders() {
  if (const char *given = std::getenv("MSC_PLUGIN_PATH"); given && *given)
    return {given};
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {folder / ".." / "lib" / "msc", folder / ".." / ".." / "lib" / "msc", folder};
}

/// A plugin that was opened, which stays loaded; or why there is none: then `entry` is null.
struct OpenPlugin {
  void *entry = nullptr;
  std::string path, problem;
};

/// Opens the first `file` in the plugin folders and looks up its function `entry`. `kind` names in the problem what it is not.
inline OpenPlugin openPlugin(const char *file, const char *entry, const char *kind) {
  std::string looked;
  for (const std::filesystem::path &folder : pluginFolders()) {
    std::filesystem::path path = folder / file;
    std::error_code ignored;
    looked += (looked.empty() ? "'" : ", '") + folder.lexically_normal().string() + "'";
    if (!std::filesystem::exists(path, ignored))
      continue;
    OpenPlugin result;
    result.path = path.string();
    void *plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
      result.problem = dlerror();
    else if (!(result.entry = dlsym(plugin, entry)))
      result.problem = "'" + path.string() + "' is no " + kind + " plugin";
    return result;
  }
  return {nullptr, "", std::string(file) + " is not in " + looked};
}

} // namespace msc
