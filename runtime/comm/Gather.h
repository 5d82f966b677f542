// What every member of a group has to say, at every member.
#pragma once

#include "runtime/comm/Communicator.h"

#include <type_traits>

namespace msc::comm {

/// `own` of all members, in their order. Called by all of them.
template <typename Value> Result<std::vector<Value>> gather(Group &group, const Value &own, const OperationLabel &label) {
  static_assert(std::is_trivially_copyable_v<Value>);
  auto bytes = static_cast<int64_t>(sizeof(Value));
  std::vector<Value> all(static_cast<size_t>(group.size()));
  ExchangePlan plan;
  plan.type = ElementType::Bool;
  Region whole{0, {bytes}, {1}};
  for (int32_t member = 0; member < group.size(); ++member) {
    Region block{member * bytes, {bytes}, {1}};
    plan.sends.push_back({member, whole, {group.rank() * bytes, {bytes}, {1}}});
    plan.receives.push_back({member, whole, block});
  }
  if (Status status = group.exchange(&own, all.data(), plan, label); !status)
    return status.error();
  return all;
}

} // namespace msc::comm
