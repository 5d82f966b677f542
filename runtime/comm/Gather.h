// What every member of a group has to say, at every member.
#pragma once

#include "runtime/comm/Communicator.h"

#include <type_traits>

namespace msc::comm {

/// `bytes` of each member, one after the other in `all`. Called by all of them.
inline Status gatherBytes(Group &group, const void *own, std::span<const int64_t> bytes, void *all, const OperationLabel &label) {
  ExchangePlan plan;
  plan.type = ElementType::Bool;
  std::vector<int64_t> begins;
  int64_t end = 0;
  for (int64_t block : bytes)
    begins.push_back(end), end += block;
  auto block = [&](int32_t member, int64_t begin) { return Region{begin, {bytes[static_cast<size_t>(member)]}, {1}}; };
  auto isEmpty = [&](int32_t member) { return bytes[static_cast<size_t>(member)] == 0; };
  const int32_t self = group.rank();
  for (int32_t member = 0; member < group.size(); ++member) {
    if (!isEmpty(self))
      plan.sends.push_back({member, block(self, 0), block(self, begins[static_cast<size_t>(self)])});
    if (!isEmpty(member))
      plan.receives.push_back({member, block(member, 0), block(member, begins[static_cast<size_t>(member)])});
  }
  return group.exchange(own, all, plan, label);
}

/// `own` of all members, in their order. Called by all of them.
template <typename Value> Result<std::vector<Value>> gather(Group &group, const Value &own, const OperationLabel &label) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Value> all(static_cast<size_t>(group.size()));
  const std::vector<int64_t> bytes(all.size(), sizeof(Value));
  if (Status status = gatherBytes(group, &own, bytes, all.data(), label); !status)
    return status.error();
  return all;
}

/// The lists of all members, in their order; they may be of different lengths. Called by all of them.
template <typename Value>
Result<std::vector<std::vector<Value>>> gatherLists(Group &group, const std::vector<Value> &own, const OperationLabel &label) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Result<std::vector<int64_t>> bytes = gather(group, static_cast<int64_t>(own.size() * sizeof(Value)), label);
  if (!bytes)
    return bytes.error();
  std::vector<std::vector<Value>> lists;
  std::vector<Value> all;
  for (int64_t list : *bytes)
    lists.emplace_back(static_cast<size_t>(list) / sizeof(Value)), all.resize(all.size() + lists.back().size());
  if (Status status = gatherBytes(group, own.data(), *bytes, all.data(), label); !status)
    return status.error();
  auto next = all.begin();
  for (std::vector<Value> &list : lists)
    for (Value &value : list)
      value = *next++;
  return lists;
}

} // namespace msc::comm
