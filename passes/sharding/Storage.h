// How a parameter lies between steps.
//
// As one of the operators that read it wants it: the one that needs the fewest bytes of it. Of those that need equally many the one that
// has more pieces of the first dimension in which they differ. So it depends on the strategies of its users alone, not on where they
// stand in the text.
#pragma once

#include "passes/sharding/Problem.h"

#include <functional>
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

/// Of each parameter that no operator reads which runs, and no repeat hands on, once for every round: its bytes on a rank, without states.
/// `piecesOf`: of the operators that do not run, as which the parameter is stored; null: those are left out. What no operator reads is whole.
std::vector<int64_t> unreadParameters(const Problem &problem, const std::function<bool(size_t op)> &runs,
                                      const std::function<const Pieces &(int32_t op)> &piecesOf = nullptr);

} // namespace msc::passes
