// A file that is named and is not there.
#pragma once

#include "runtime/Nearest.h"
#include "runtime/Status.h"

#include <filesystem>

namespace msc {

/// A mistake of the command line, with the file of the folder that may be meant.
inline Error missingFile(const std::string &path) {
  constexpr size_t most = 100'000; // names that are looked at
  std::error_code failed;
  const std::filesystem::path file(path), folder = file.parent_path();
  std::filesystem::directory_iterator entries(folder.empty() ? "." : folder, failed);
  std::string help;
  if (failed == std::errc::no_such_file_or_directory)
    help = "there is no folder '" + folder.string() + "' either";
  std::vector<std::string> names;
  std::error_code unknown; // whether it is one
  for (size_t i = 0; !failed && entries != std::filesystem::directory_iterator() && i < most; entries.increment(failed), ++i)
    if (std::string name = entries->path().filename().string(); name != file.filename() && entries->is_regular_file(unknown))
      names.push_back(std::move(name));
  std::sort(names.begin(), names.end()); // the order of a folder is any
  if (std::error_code why; !std::filesystem::exists(file, why) && why == std::errc::too_many_symbolic_link_levels)
    help = "it is a link that leads back to itself";
  else if (std::filesystem::is_symlink(file, unknown))
    help = "it is a link to '" + std::filesystem::read_symlink(file, unknown).string() + "', which is not there";
  else if (const std::string near = nearest(file.filename().string(), names); !near.empty())
    help = "did you mean '" + (folder / near).string() + "'?";
  return {ExitCode::Usage, "there is no file '" + path + "'", help};
}

} // namespace msc
