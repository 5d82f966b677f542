#include "runtime/comm/GroupCache.h"

#include <algorithm>

namespace msc::comm {

Status GroupCache::check(const std::vector<int64_t> &ranks, int64_t own, int64_t size) {
  std::string list;
  for (int64_t rank : ranks)
    list += (list.empty() ? "" : ", ") + std::to_string(rank);
  auto wrong = [&](const std::string &why) {
    return Error{ExitCode::Internal, "the group (" + list + ") " + why, ""};
  };
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size)
      return wrong("names rank " + std::to_string(ranks[i]) + " of " + std::to_string(size));
    if (i > 0 && ranks[i - 1] >= ranks[i])
      return wrong("is not in ascending order");
  }
  if (!std::binary_search(ranks.begin(), ranks.end(), own))
    return wrong("does not hold rank " + std::to_string(own) + ", which asks for it");
  return Status::ok();
}

} // namespace msc::comm
