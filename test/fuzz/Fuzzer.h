// What a fuzzer of this folder is made of: LLVMFuzzerTestOneInput and fuzzSeeds. With libFuzzer's main it searches by
// coverage; with Campaign.cpp's it is a test of bounded length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace msc::test {

/// Inputs that are accepted: the campaign changes them.
std::vector<std::string> fuzzSeeds();

/// Ends the process if a promise is broken, as libFuzzer wants it.
inline void require(bool holds, const char *otherwise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", otherwise);
  std::abort();
}

} // namespace msc::test
