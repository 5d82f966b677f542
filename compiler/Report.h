// The machine-readable report of a compilation, and the figures that `msc explain` prints. Everything comes from the plan;
// only `timing` and `search` are measured while compiling.
#pragma once

#include "passes/sharding/SearchFacts.h"
#include "runtime/plan/plan.pb.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace msc::compiler {

/// Seconds per phase in order of execution.
using PhaseTimes = std::vector<std::pair<std::string, double>>;

/// What a communication pass saved in one step, by the machine model.
struct Saving {
  std::string pass;  ///< "moves", "comm_fusion", ...
  int64_t bytes = 0; ///< received per rank, maximum
  double us = 0;     ///< of "overlap": what computation hides, where collectives run beside it
};
using Savings = std::vector<Saving>;

/// What the model of the search says of the strategies that are compiled, whoever chose them.
struct ModelledStep {
  double us = 0; ///< of a step
  std::vector<passes::PredictedCollective> collectives;
};

/// The cheapest strategy that an operator could have instead of its own.
struct NextBest {
  std::string inStrategy;
  double us = 0;   ///< of a step, in the model of the search
  double more = 0; ///< than with its own strategy; negative: less
  double bytes = 0; ///< that a rank needs then, where memory is limited; 0: not known
  bool isInsteadOfUsers = false; ///< the user gave its own strategy, or a sharding that fixes a part of it, and only the user can take that back
};

/// A change of the network, and what it would make of it.
struct MemoryChange {
  std::string kind;   ///< "recompute", "precision", "micro_batches", "devices", "search", "strategies" (without those of the user), "parameters" (without those that nothing reads); of several at once with " + " between them
  std::string repair; ///< what to write, as messages say it
  uint64_t bytes = 0; ///< that a rank needs
  double us = 0;      ///< predicted for the batch that a step has now
  bool fits = false;
  bool isEstimated = false; ///< by the search alone: no plan was made of it
};

/// What a limit on the memory of a rank means for a network.
struct MemoryAnswer {
  uint64_t limit = 0;
  bool fits = false;
  uint64_t bytes = 0;             ///< what a rank needs under the strategies that need least
  uint64_t bytesWithoutLimit = 0; ///< what a rank needs under the strategies that are chosen without a limit
  double usWithoutLimit = 0;      ///< and what a step takes under them
  std::vector<MemoryChange> changes; ///< that were tried as it does not fit: first those that make it fit, then by time
};

/// What was found out while compiling and is no part of the plan.
struct Findings {
  PhaseTimes timing; ///< none: a plan that was read
  Savings savings;
  bool isSearchImplied = false;                  ///< the network searches because no operator has a strategy, not because it says so
  std::optional<passes::SearchFacts> search;     ///< none where nothing was searched
  std::optional<ModelledStep> modelled;          ///< where explanations are wanted and devices differ in what they do
  std::vector<passes::Alternative> alternatives; ///< of the operator that is explained
  std::map<std::string, NextBest> nextBest;      ///< of operators that cause collectives, by instance name
  bool asksForOneOther = false;                  ///< `nextBest` is the one other strategy that was priced: there are too many devices for all
  bool areOthersOnMesh = false;                  ///< of what other strategies cost only those on a coarse mesh are known
  bool isTooLargeForOthers = false;              ///< what other strategies cost is not known of all that was asked for
  std::map<std::string, passes::Round> rounds;   ///< operators of repeats by instance name; none for a plan that was read
  std::vector<std::vector<double>> computeUs;    ///< of every step of every program, 0 for collectives; none for a plan that was read
  bool overlaps = false;                         ///< collectives run beside computation on the machine
  std::optional<MemoryAnswer> memory;            ///< where there is a limit
  std::vector<passes::Surprise> surprises;       ///< in the order of the network; none for a plan that was read
};

/// One collective of the plan, with what a reader wants to know.
struct CollectiveFacts {
  std::string kind;                          ///< "AllReduce", "AllGather", ...
  std::string name;                          ///< instance name of the step
  /// All groups that run at the same time; one object for all collectives of the same groups.
  std::shared_ptr<const std::vector<std::vector<int64_t>>> groups;
  uint64_t bytes = 0;                        ///< received per rank, maximum; for one operator: of its tensors
  std::string phase;                         ///< "forward", "backward", "update"
  std::string forOperator;                   ///< instance name of the operator that needs it
  std::string reason;
  std::string location;                      ///< "net.mir:6"
  double predictedUs = 0;
  std::string cause;                         ///< instance name of the operator whose result is completed, or who wants it otherwise
  size_t tensors = 1;                        ///< that it moves; name, operator and reason are of the first (for one operator: of its first)
  uint64_t bytesOfAll = 0;                   ///< of all its tensors, as `predictedUs`
};

/// All of one step, or those that one operator causes, given by instance name: it needs the result, or its own result is
/// partial and completed on the way to somebody else.
std::vector<CollectiveFacts> collectivesOf(const plan::Plan &plan, const std::string &op = "");

/// What computation hides of a step where collectives run beside it; of a plan alone: on a machine where they do.
double hiddenUs(const plan::Plan &plan, const Findings &findings);

/// "(8, 16)" on one rank.
std::string localShapeText(const plan::Plan &plan, const plan::OperatorNote::Value &value, int64_t rank);

/// "((2, 4), (4, 1))" -> [[2, 4], [4, 1]]; null for "".
nlohmann::ordered_json strategyJson(std::string text);

/// The JSON text of `msc compile --report`; the schema is compiler/report.schema.json. `op` limits operators and
/// collectives to those of one operator, by its instance name. Of a plan that was read the seconds and the savings
/// are null.
std::string reportJson(const plan::Plan &plan, const Findings &findings, const std::string &op = "");

} // namespace msc::compiler
