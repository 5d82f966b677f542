// A file that is named and is not there.
#pragma once

#include "runtime/Nearest.h"
#include "runtime/Status.h"

#include <filesystem>

namespace msc {

/// A mistake of the command line, with the file of the folder that may be meant.
inline Error missingFile(const std::string &path) {
  constexpr size_t most = 1000; // names that are compared
  std::error_code failed;
  const std::filesystem::path file(path), folder = file.parent_path();
  std::filesystem::directory_iterator entries(folder.empty() ? "." : folder, failed);
  std::string help;
  if (failed == std::errc::no_such_file_or_directory)
    help = "there is no folder '" + folder.string() + "' either";
  std::vector<std::string> names;
  for (; !failed && entries != std::filesystem::directory_iterator() && names.size() < most; entries.increment(failed))
    names.push_back(entries->path().filename().string());
  std::sort(names.begin(), names.end()); // the order of a folder is any
  if (const std::string near = nearest(file.filename().string(), names); !near.empty())
    help = "did you mean '" + (folder / near).string() + "'?";
  return {ExitCode::Usage, "there is no file '" + path + "'", help};
}

} // namespace msc
