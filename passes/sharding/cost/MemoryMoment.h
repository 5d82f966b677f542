// A moment of a step at which much is live, as what every strategy has live there: a sum over operators that solvers of networks of
// costs can bound. What a step needs is the most of all its moments; one at a time is looked at, where a simulated step needs most.
#pragma once

#include "passes/sharding/cost/CertainOrder.h"
#include "passes/sharding/cost/OrderedOperator.h"
#include "passes/sharding/cost/StepMemory.h"

#include <map>
#include <optional>

namespace msc::passes {

struct MemoryMoment {
  /// Bytes that are live then for each variable of the model's network, under each of its options; an empty list: none.
  std::vector<std::vector<double>> about; ///< if all else is there as in the step that was simulated
  std::vector<std::vector<double>> least; ///< whatever else is there
  /// The same where each round of a repeat is a variable of its own: what variables have live for all rounds, in the shares of these ...
  std::vector<std::vector<double>> leastOfAll;
  /// ... and what one has live in one round.
  struct OfRound {
    int32_t variable = 0;
    int64_t round = 0;
    std::vector<double> bytes; ///< of each option
  };
  std::vector<OfRound> leastOfRounds;
};

/// Knows the shards of everything that operators read and write under all their strategies. Keeps references.
class MemoryMoments {
public:
  /// `roundsDiffer`: rounds of a repeat may take different strategies, so that at least there is what all of them have live.
  MemoryMoments(const Problem &problem, const StepModel &model, bool roundsDiffer)
      : problem(problem), model(model), roundsDiffer(roundsDiffer) {}

  /// Where that step needs most.
  MemoryMoment most(const StepEvents &step, const StepLives &lives);

private:
  /// An operator, in the first round if that is another one there.
  struct Member {
    int32_t op = -1;
    bool isFirst = false;
    auto operator<=>(const Member &) const = default;
  };
  /// A tensor of an operator.
  struct Use {
    Member of;
    int32_t traced = 0, use = 0;
    bool isWrite = false;
    bool isWide = false; ///< its f32 elements, where it is narrow
    auto operator<=>(const Use &) const = default;
  };
  /// How often one is live.
  struct Count {
    int64_t buffers = 0;
    double bytes = 0; ///< of one of them in the step that was simulated
  };
  class Lasting;

  static std::optional<Use> useOf(const StepEvents &step, const StepLives::Live &live);
  double bytesOf(const Use &use, int32_t option, double simulated);
  double keptBytesOf(const Use &use, int32_t option);
  double exactBytesOf(const Use &use, int32_t option);
  double storedBytesOf(int32_t parameter, int32_t op, int32_t option) const;
  double leastBytesOf(const Use &use);
  const TracedStep &traceOf(Member of, int32_t option);
  const OperatorStep &stepOf(Member of, int32_t option) const;
  const TracedStep *alwaysTraced(Member of);
  const OrderedOperator &orderedOperator(Member of);
  void addUnread(MemoryMoment &moment) const;
  void addAbout(const StepEvents &step, const StepLives &lives, MemoryMoment &moment);
  void addLeast(const StepEvents &step, const StepLives &lives, MemoryMoment &moment);
  void addLeastOfRounds(const Lasting &lasting, MemoryMoment &moment);
  void addGradients(const StepEvents &step, const std::map<int32_t, double> &live, MemoryMoment &moment) const;
  int64_t instancesOf(Member of) const;

  const Problem &problem;
  const StepModel &model;
  bool roundsDiffer;
  std::map<std::pair<Member, int32_t>, TracedStep> traces; ///< under each option
  std::map<Member, bool> areAlike;                         ///< those of one operator
  std::map<Member, OrderedOperator> ordered;
  std::optional<JoinableEvents> joinable; ///< of the last moment: of most steps they are the same
};

} // namespace msc::passes
