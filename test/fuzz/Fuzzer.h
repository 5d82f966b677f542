// What a fuzzer of this folder is made of: LLVMFuzzerTestOneInput, fuzzSeeds and, if changed bytes are not enough,
// LLVMFuzzerCustomMutator. With libFuzzer's main it searches by coverage; with Campaign.cpp's it is a test of bounded length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/// Changes `data` in place, to at most `limit` bytes; returns how many there are.
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t limit, unsigned seed);
/// libprotobuf is not instrumented: what our side of it marks as unused memory, it uses.
extern "C" __attribute__((used)) inline const char *__asan_default_options() { return "allow_user_poisoning=0"; }

namespace msc::test {

/// Inputs that are accepted: the campaign changes them.
std::vector<std::string> fuzzSeeds();

/// What a campaign of `cases` has run; ends the process if it covered too little.
__attribute__((weak)) std::string campaignSummary(uint64_t cases);

/// Ends the process if a promise is broken, as libFuzzer wants it.
inline void require(bool holds, const char *otherwise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", otherwise);
  std::abort();
}

} // namespace msc::test
