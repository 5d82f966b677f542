// What a symbolic link leads to.
#pragma once

#include <filesystem>
#include <string>

namespace msc {

/// The path that is replaced instead of the link; a path that is none as it is. Not for pipes and devices, whose links may be no paths.
inline std::string linkTarget(const std::string &path) {
  std::error_code ignored;
  std::filesystem::path target = path;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(target, ignored); ++links)
    target = target.parent_path() / std::filesystem::read_symlink(target, ignored);
  return target.string();
}

} // namespace msc
