// What differs between two plans of one network: strategies, collectives, predicted time, memory.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace msc::compiler {

/// One of the two plans, and what to call it.
struct NamedPlan {
  std::string name;
  const plan::Plan *plan = nullptr;
};

/// An operator that the plans split differently.
struct OperatorChange {
  std::string name, op, place;
  std::array<std::string, 2> inStrategy, outStrategy, origin; ///< in both plans
};

/// Collectives of one kind, phase and groups that one operator needs, taken together.
struct CollectiveSum {
  int64_t count = 0;
  size_t tensors = 0; ///< that they move
  uint64_t bytes = 0; ///< received per rank, at most
  double us = 0;      ///< predicted
};
struct CollectiveChange {
  std::string phase, kind, forOperator, place, groups, reason;
  std::array<std::optional<CollectiveSum>, 2> sums; ///< in both plans; nothing: that plan has none
};

struct PlanDiff {
  std::array<NamedPlan, 2> plans;
  std::vector<OperatorChange> operators;     ///< in the order of the network
  std::vector<CollectiveChange> collectives; ///< those of the first plan in its order, then those of the second alone
};

/// An error where the plans are of different networks: operators, their kinds and their shapes have to be the same.
Result<PlanDiff> diffOf(const NamedPlan &first, const NamedPlan &second);

/// `columns`: as of explainText.
std::string diffText(const PlanDiff &diff, size_t columns);
/// The schema is compiler/diff.schema.json.
std::string diffJson(const PlanDiff &diff);

} // namespace msc::compiler
