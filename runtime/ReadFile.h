// The bytes of a file.
#pragma once

#include "runtime/Status.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace msc {

/// All of them: an error of the disk or the network that holds it is no end of the file.
inline Result<std::string> readFile(const std::string &path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"), [](std::FILE *open) { return std::fclose(open); });
  if (!file)
    return Error{ExitCode::Usage, "cannot open '" + path + "': " + std::strerror(errno), "'ls -l " + path + "' shows who may read it"};
  std::string text;
  char part[1 << 16];
  while (const size_t bytes = std::fread(part, 1, sizeof part, file.get()))
    text.append(part, bytes);
  if (std::ferror(file.get()))
    return Error{ExitCode::NoResource, "cannot read '" + path + "' to its end: " + std::strerror(errno), "copy it to another disk"};
  return text;
}

} // namespace msc
