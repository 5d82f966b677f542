// Compiles a case, runs it on thread ranks and compares every number with the reference.
#pragma once

#include "test/e2e/Coverage.h"

#include <string>

namespace msc::e2e {

struct Verdict {
  std::string failure; ///< empty: all numbers agree
  double worst = 0;    ///< largest error relative to the magnitude of its tensor
};

/// Runs a case that `label` names in what is said about it.
Verdict checkCase(const Case &test, const std::string &label, Coverage &coverage, bool verbose = false);

/// Runs the case of a seed. `verbose` prints the network and the error of each tensor.
Verdict runCase(uint64_t seed, Coverage &coverage, bool verbose = false);

} // namespace msc::e2e
