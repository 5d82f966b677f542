// The pieces of a dimension along which sums run, as the kernels see them.
#pragma once

#include "runtime/plan/calls/Call.h"

namespace msc {

/// A tensor seen as lines: the dimensions in front of the one along which a call goes, that one, those behind it; this rank's.
struct Lines {
  size_t dim = 0;
  int64_t length = 1, inner = 1;
  int64_t count = 1; ///< of lines: elements of all other dimensions
};

/// Of the first operand of a CumSumPieces that was checked.
Lines linesOf(const CallSpec &spec);

/// The parts of what this rank holds that lie in one of the pieces each, counted from its begin.
std::vector<Range> partsOf(const CallSpec &spec, const Lines &lines);

} // namespace msc
