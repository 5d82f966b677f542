// Repeats in tables: what a round does stands once.
#pragma once

#include "compiler/Report.h"

#include <set>

namespace msc::compiler {

/// "x 12" for all of twelve rounds, else those that are meant: "first", "last", "2..12", "first, 3".
std::string roundsText(const std::set<int64_t> &rounds, int64_t of);

/// A collective, and the rounds in which it is if its operator is one of a repeat.
struct CollectiveInRounds {
  CollectiveFacts facts; ///< in the first of them
  std::set<int64_t> rounds;
  int64_t of = 1;
};

/// Collectives of one operator of a repeat that differ in the round alone are one: those of equal phase, kind, groups and bytes. What
/// moves several tensors at once stays as it is. In the order in which they come first.
std::vector<CollectiveInRounds> inRounds(const std::vector<CollectiveFacts> &collectives, const Findings &findings);

} // namespace msc::compiler
