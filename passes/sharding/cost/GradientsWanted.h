// Which operators run at all, which ones training differentiates, and with respect to what.
#pragma once

#include "passes/sharding/Problem.h"

namespace msc::passes {

/// What is asked of an operator's gradient.
struct GradientsWanted {
  std::vector<bool> ofOperands; ///< all false: the operator is not differentiated
  std::vector<bool> ofResults;  ///< results to which a gradient flows back
  bool trains = false;          ///< the network is trained, with or without this operator
  bool runs = true;             ///< something that the network returns depends on it
  bool operator==(const GradientsWanted &) const = default;
};

/// For every operator. A value has a gradient if it depends on a trained parameter through floats and the loss depends on
/// it.
std::vector<GradientsWanted> gradientsWanted(const Problem &problem);

/// The same in the first round of the repeat around each operator, to which nothing has been carried: what it takes may have no
/// gradient. `wanted`: of all rounds; operators in no repeat, or in several, keep it.
std::vector<GradientsWanted> wantedInFirstRound(const Problem &problem, std::vector<GradientsWanted> wanted);

/// Takes back what does not flow: `given[op]` lists the operands to which the gradient of an operator gives something (that
/// of a Floor gives none). True if something was taken back.
bool dropZeroGradients(const Problem &problem, const std::vector<std::vector<int32_t>> &given,
                       std::vector<GradientsWanted> &wanted);

} // namespace msc::passes
