// How a parameter lies between steps.
//
// As one of the operators that read it wants it: the one that needs the fewest bytes of it. Of those that need equally many the one that
// has more pieces of the first dimension in which they differ. So it depends on the strategies of its users alone, not on where they
// stand in the text.
#pragma once

#include "passes/sharding/Problem.h"

#include <span>

namespace msc::passes {

/// Whether a tensor of this shape is stored in `a` rather than in `b`; a strict order of all canonical shardings of as many devices.
bool isStoredRather(const Sharding &a, const Sharding &b, const Shape &shape);

/// One of `wanted`, of which there is one at least.
const Sharding &storageOf(std::span<const Sharding> wanted, const Shape &shape);

/// An operator and the pieces into which it is cut.
struct CutOperator {
  int32_t op = 0;
  const Pieces *pieces = nullptr;
};

/// As the operators `users` have the tensor stored, all of which read it.
Sharding storageOf(const Problem &problem, int32_t tensor, std::span<const CutOperator> users);

/// Of each parameter that no operator reads and no repeat hands on, once for every round: its bytes, all of which every rank has, without states.
std::vector<int64_t> unreadParameters(const Problem &problem);

} // namespace msc::passes
