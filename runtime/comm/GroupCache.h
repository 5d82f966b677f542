// The groups that one World has made, by their ranks.
#pragma once

#include "runtime/comm/Communicator.h"

#include <map>

namespace msc::comm {

class GroupCache {
public:
  /// The group of `ranks`, made by `make` on first use: Result<std::unique_ptr<Group>>().
  template <typename Make>
  Result<Group *> get(const std::vector<int64_t> &ranks, int64_t own, int64_t size, const Make &make) {
    if (auto found = groups.find(ranks); found != groups.end())
      return found->second.get();
    if (Status valid = check(ranks, own, size); !valid)
      return valid.error();
    Result<std::unique_ptr<Group>> made = make();
    if (!made)
      return made.error();
    return groups.emplace(ranks, std::move(*made)).first->second.get();
  }
  void clear() { groups.clear(); }

private:
  static Status check(const std::vector<int64_t> &ranks, int64_t own, int64_t size);
  std::map<std::vector<int64_t>, std::unique_ptr<Group>> groups;
};

} // namespace msc::comm
