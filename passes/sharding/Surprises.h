// What happens without anybody having asked for it: --strict refuses it, reports name it.
//
// An operator is *computed several times* if its strategy has fewer pieces than there are devices, a legal strategy has more,
// and neither it nor the operator that it follows with as many pieces has a strategy from the user. Modes that say how
// everything is split (stand_alone, data_parallel, hybrid_parallel) were asked for. What costs least is left out, as long as that
// is less than 1 % of a step in all: the time of the operator and its gradient beyond what a strategy with most pieces takes.
// Its pieces are *uneven* if the work of the largest one is more than 10 % above the mean, whoever chose them: a dimension of
// n elements in p pieces adds the factor ceil(n / p) * p / n.
// A parameter is *gathered* if it is stored in pieces and every device receives all of it for an operator whose strategy is not the
// user's.
//
// The model says what another strategy would save, and what is compiled was chosen by whole plans. Where the fastest plan is not that of
// the model's own choice, doing without was tried if that choice does: as a plan it is slower, and that is no surprise. Nor does the model
// then know of anything better, as all else takes more in it than that choice (Alternatives::wasWeighed and isBetter).
#pragma once

#include "passes/sharding/Alternatives.h"

namespace msc::passes {

struct SurpriseAt {
  mlir::Location place;
  Surprise surprise;
};

/// Work above the mean that is no surprise, as a share of it.
inline constexpr double toleratedImbalance = 0.1;

/// What operators that are computed several times may cost together, as a share of a step.
inline constexpr double trifle = 0.01;

/// Operators that are computed several times, in order. Before rounds of repeats stand one after the other.
std::vector<SurpriseAt> replications(Alternatives &alternatives);

/// Uneven pieces, each combination once: for the operator that loses most time by it. `searches`: strategies can be chosen.
std::vector<SurpriseAt> imbalances(Alternatives &alternatives, bool searches);

/// Parameters that every device receives whole, once for each reader and all rounds of a repeat. After communication passes.
std::vector<SurpriseAt> wholeGathers(net::NetworkOp network, Alternatives &alternatives);

/// What to write for an operator: "write in_strategy: ((2, 4)), with which a step takes 50.3 us, now 76.9 us, or in_strategy: ((1, 1)) if it
/// is meant", and how where typing it is not what was priced. `other`, the cheapest of the strategies that do without, is not better:
/// "write in_strategy: ((1, 1)) if it is meant: a step takes 36.9 us now, at least 50.3 us with 8 pieces"; `which`: what they are.
std::string adviceText(Alternatives &alternatives, size_t op, const std::optional<Alternative> &other, const std::string &which);

} // namespace msc::passes
