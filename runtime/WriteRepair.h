// What to do where something cannot be written.
#pragma once

#include <cerrno>

namespace msc {

/// The help of an error, by its errno.
inline const char *writeRepair(int cause) {
  switch (cause) {
  case ENOSPC:
  case EDQUOT:
    return "free some space or choose another directory";
  case EACCES:
  case EPERM:
  case EROFS:
    return "make the file and its folder writable, or choose another directory";
  default:
    return "choose another directory";
  }
}

} // namespace msc
