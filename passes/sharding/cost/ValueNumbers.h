// Values that are equal because they are computed alike, on plain data: what `msc-reuse-statistics` computes once, the model of the
// search pays once.
#pragma once

#include "passes/sharding/cost/PlaceStep.h"

#include <map>

namespace msc::passes {

class ValueNumbers {
public:
  /// A value of which nobody knows how it is computed.
  int32_t add();
  /// The value in a sharding.
  int32_t inSharding(int32_t value, const Sharding &sharding, int64_t elements);
  /// Numbers what an operator writes; `numbers` are those of the values of its step. True: all of that are statistics that are there.
  bool run(const TracedOperator &op, const std::vector<StepValue> &values, std::vector<int32_t> &numbers);
  /// Of the values of a step in front of its first operator.
  std::vector<int32_t> begin(const std::vector<StepValue> &values);
  bool isStatistic(int32_t number) const { return known[number].isStatistic; }

private:
  struct Known {
    int32_t home = -1; ///< number of the sharding in which it was computed
    bool isStatistic = false;
  };
  std::vector<Known> known;
  std::map<std::vector<int32_t>, int32_t> numberOfKey; ///< the first result
  std::map<std::vector<int64_t>, int32_t> numberOfSharding;

  int32_t shardingNumber(const Sharding &sharding);
};

} // namespace msc::passes
