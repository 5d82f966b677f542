// A moment of a step at which much is live, as what every strategy has live there: a sum over operators that solvers of networks of
// costs can bound. What a step needs is the most of all its moments; one at a time is looked at, where a simulated step needs most.
#pragma once

#include "passes/sharding/cost/StepMemory.h"

#include <map>

namespace msc::passes {

struct MemoryMoment {
  /// Bytes that are live then for each variable of the model's network, under each of its options; an empty list: none.
  std::vector<std::vector<double>> about; ///< if all else is there as in the step that was simulated
  std::vector<std::vector<double>> least; ///< whatever else is there
  double rest = 0; ///< what that step needs beside what is about
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
  /// A tensor of an operator that is live.
  struct Use {
    int32_t op = 0, traced = 0, use = 0;
    bool isFirst = false, isWrite = false;
    auto operator<=>(const Use &) const = default;
  };
  struct Bytes {
    double about = 0, least = 0;
  };
  /// How often one is live.
  struct Count {
    int64_t all = 0;    ///< buffers
    int64_t values = 0; ///< values of which this is the first buffer
    double bytes = 0;   ///< of one of them in the step that was simulated
  };

  Bytes bytesOf(const Use &use, int32_t option, double simulated);
  const TracedStep &traceOf(const Use &use, int32_t option);
  const OperatorStep &stepOf(const Use &use, int32_t option) const;
  void addParameters(const StepEvents &step, const std::map<int32_t, double> &live, MemoryMoment &moment) const;
  int64_t instancesOf(const Use &use) const;

  const Problem &problem;
  const StepModel &model;
  bool roundsDiffer;
  std::map<std::tuple<int32_t, bool, int32_t>, TracedStep> traces; ///< operator, first round, option
};

} // namespace msc::passes
