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

/// "write in_strategy: ((2, 4)), with which a step takes 50.3 us".
std::string adviceText(const Alternative &better);
/// The same, and how to keep what the operator has if that is known: ", or in_strategy: ((1, 1)) if it is meant, 76.9 us"; in front, as
/// "write in_strategy: ((1, 1)) if it is meant, 36.9 us; with in_strategy: ((2, 4)) a step takes 50.3 us", where it takes less.
std::string adviceText(Alternatives &alternatives, size_t op, const Alternative &better);
/// How to give an operator of the library that in_strategy, since behind the call of a cell there is no place for it; else empty.
std::string libraryText(const Alternatives &alternatives, size_t op, const std::string &strategy);

} // namespace msc::passes
