// Runs a redistribution on real data, every rank a thread, and compares with index arithmetic.
#pragma once

#include "dialects/dist/Reshard.h"
#include "runtime/Status.h"

namespace msc::tools {

/// An error where there are more ranks or elements than that runs.
Status mayVerify(const Sharding &from, const std::vector<int64_t> &shape);

/// Every rank starts with its part of numbered elements under `from` (one term of each, where that is partial) and runs the
/// steps; the end is compared with what `to` says of the numbers. An error names the first rank and element that differ.
Status verifyRedistribution(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                            const std::vector<dist::ReshardStep> &steps);

} // namespace msc::tools
