// An order of operators that follows from what a network computes, not from how it is written down.
#pragma once

#include "dialects/net/Network.h"

#include <vector>

namespace msc::passes {

/// The operators of a network but for parameters, and its repeats. Neither names nor the order of independent lines change how they
/// stand, as long as the operators differ in what they compute, in what they compute it from, or in what becomes of it; those that
/// differ in nothing stand as they are written. Takes time in O(n log n) of the operators.
///
/// Operators are told apart by colours, as in the refinement of Weisfeiler and Leman: along the values, against them, and
/// once more each. Rounds of a dump (`net::getAlike`) have the colours of what they were in a repeat.
struct CanonicalOrder {
  /// Those of a repeat stand together, as do those of a round of a dump; operators stand behind those that they take values of. As
  /// written where rounds of a dump are not alike.
  std::vector<mlir::Operation *> operators;
  std::vector<net::RepeatOp> repeats; ///< as they begin, the outer one first
};
CanonicalOrder canonicalOrder(net::NetworkOp network);

} // namespace msc::passes
