// What a PTX text defines, read without a GPU.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace msc {

struct PtxText {
  struct Entry {
    uint32_t parameters = 0; ///< of 64 bits each
    uint32_t block = 0;      ///< threads that it requires; 0: any number
  };
  std::map<std::string, Entry> entries;
};

/// Reads the directives of a text. Refuses what generated kernels never have: a target older than sm_80, imports, parameters
/// of other sizes. The error says what was found.
Result<PtxText> readPtx(std::string_view text);

} // namespace msc
