// What the cases of a run have covered.
#pragma once

#include "runtime/plan/plan.pb.h"
#include "test/e2e/ReferenceStep.h"

#include <map>
#include <set>
#include <string>

namespace msc::e2e {

class Coverage {
public:
  void add(const Case &test, const ReferenceStep &reference, const plan::Plan &plan);
  /// The figures, one per line.
  std::string text() const;

  std::map<std::string, int> operators;    ///< operators of the training step, by name
  std::map<std::string, int> collectives;  ///< steps by kind of collective
  std::map<std::string, int> modes, types; ///< cases
  std::map<int64_t, int> devices;          ///< cases
  int withoutState = 0;                    ///< networks none of whose drawn states is smooth; not run
  int cases = 0, uneven = 0, empty = 0;    ///< `uneven`: a buffer with unequal pieces; `empty`: a rank without elements
  int buckets = 0;                         ///< collectives that move several gradients at once
  int linear = 0;                          ///< steps that compute with a value that is still partial
  int windows = 0;                         ///< kernels on images that are cut in rows or columns, with halos
  int overlapped = 0;                      ///< collectives that are in flight while the rank computes
  int fewestNodes = 1 << 20, mostNodes = 0;
  int configured = 0;                      ///< operators with a strategy of the user
};

/// The operators that a network may hold, helpers of the backward pass included; not those that the partition makes.
std::vector<std::string> allOperators();

/// Communication that networks write themselves: test/cli/hybrid.test.
inline bool speaksOfRanks(const std::string &op) {
  return std::set<std::string>{"Rank",      "AllReduce",        "AllGather", "ReduceScatter", "AlltoAll",
                               "Broadcast", "NeighborExchange", "Send",      "Receive"}
      .contains(op);
}

} // namespace msc::e2e
