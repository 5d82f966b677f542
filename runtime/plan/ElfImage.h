// What a shared object defines and imports, read from its bytes without loading it.
#pragma once

#include "runtime/Status.h"

#include <string>
#include <string_view>
#include <unordered_set>

namespace msc {

/// The dynamic symbols of a shared object.
struct ElfImage {
  std::unordered_set<std::string> defined;
  std::unordered_set<std::string> imported;
};

/// Reads the x86-64 ELF shared object in `bytes` and refuses what generated kernels never have: other libraries
/// (DT_NEEDED), code that runs at load (initialisers, indirect functions), imports beyond memcpy, memmove and memset,
/// segments that are writable and executable. Never reads outside `bytes`; the error says what was found.
Result<ElfImage> readKernelObject(std::string_view bytes);

} // namespace msc
