// One differential test case: a network, devices, strategies, modes. The seed alone decides all of it.
#pragma once

#include "test/e2e/NetworkGenerator.h"

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::e2e {

struct Case {
  uint64_t seed = 0;
  int64_t devices = 1;
  std::string mode;              ///< parallel mode
  std::string type;              ///< "f32" or "f64"
  std::string text;              ///< the .mir file
  size_t strategies = 0;         ///< operators that the user configured
  std::vector<std::string> keep; ///< intermediate values that are fetched too, "%v3"
};

/// The case of a seed; an Error if the generated text is no network, which is a mistake of the generator.
Result<Case> makeCase(uint64_t seed);

} // namespace msc::e2e
