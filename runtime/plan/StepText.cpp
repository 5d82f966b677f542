#include "runtime/plan/StepText.h"

#include "runtime/plan/Sharding.h"

#include <algorithm>

namespace msc {

const char *phaseName(plan::Step::Phase phase) {
  return phase == plan::Step::BACKWARD ? "backward" : phase == plan::Step::UPDATE ? "update" : "forward";
}

std::vector<std::vector<int64_t>> groupsOf(const plan::Group &group) {
  std::vector<int64_t> matrix(group.matrix().begin(), group.matrix().end());
  std::vector<int32_t> axes(group.axes().begin(), group.axes().end());
  // The first member of each group has coordinate 0 on the axes of the group.
  std::vector<int32_t> others;
  for (int32_t axis = 0; axis < static_cast<int32_t>(matrix.size()); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      others.push_back(axis);
  std::vector<std::vector<int64_t>> groups;
  for (int64_t first : groupOf(matrix, others, 0))
    groups.push_back(groupOf(matrix, axes, first));
  return groups;
}

/// "0-1-2-3"; of many ranks the first ones and the last: "0-8-..-56".
static std::string ranksText(const std::vector<int64_t> &ranks) {
  constexpr size_t most = 8;
  size_t shown = ranks.size();
  if (ranks.size() > most) {
    shown = 2;
    for (size_t i = 2; i < ranks.size(); ++i)
      if (ranks[i] - ranks[i - 1] != ranks[1] - ranks[0])
        shown = most / 2;
  }
  std::string text;
  for (size_t i = 0; i < shown; ++i)
    text += (i ? "-" : "") + std::to_string(ranks[i]);
  return shown == ranks.size() ? text : text + "-..-" + std::to_string(ranks.back());
}

std::string groupsText(const std::vector<std::vector<int64_t>> &groups) {
  std::string text = std::to_string(groups.front().size()) + " ranks: ";
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i == 2 && groups.size() > 3)
      return text + ", and " + std::to_string(groups.size() - 2) + " more groups";
    text += (i ? ", " : "") + ranksText(groups[i]);
  }
  return text;
}

} // namespace msc
