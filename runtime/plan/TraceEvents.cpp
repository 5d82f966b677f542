#include "runtime/plan/TraceEvents.h"

#include "runtime/plan/PlanIndex.h"
#include "runtime/plan/StepText.h"

#include <algorithm>

namespace msc {

std::vector<TraceEvent> describeProcess(int64_t process, const std::string &name, int64_t order, Lane last) {
  std::vector<TraceEvent> events;
  auto add = [&](const char *what, Lane lane, TraceEvent args) {
    events.push_back({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", static_cast<int>(lane)}, {"args", std::move(args)}});
  };
  add("process_name", Lane::Compute, {{"name", name}});
  add("process_sort_index", Lane::Compute, {{"sort_index", order}});
  const char *names[] = {"compute", "communication", "steps"};
  for (int lane = 0; lane <= static_cast<int>(last); ++lane)
    add("thread_name", static_cast<Lane>(lane), {{"name", names[lane]}});
  return events;
}

TraceEvent stepEvent(const plan::Plan &plan, const plan::Variant &variant, int index) {
  const plan::Step &step = variant.steps(index);
  bool isConstant = std::ranges::find(variant.constants(), static_cast<uint32_t>(index)) != variant.constants().end();
  Lane lane = step.has_collective() ? Lane::Communication : Lane::Compute;
  TraceEvent event{{"name", step.op() + (step.name().empty() ? "" : " ") + step.name()},
                   {"cat", isConstant ? "load" : phaseName(step.phase())},
                   {"ph", "X"},
                   {"tid", static_cast<int>(lane)},
                   {"args", {{"step", index}, {"place", placeOf(plan, step.location())}}}};
  if (step.has_collective()) {
    const plan::Collective &collective = step.collective();
    event["args"].update({{"bytes", collective.bytes()},
                          {"groups", groupsText(groupsOf(variant.groups(static_cast<int>(collective.group()))))},
                          {"for", collective.for_operator()},
                          {"reason", collective.reason()}});
  }
  return event;
}

} // namespace msc
