// Steps of a plan as trace events, in the JSON that Perfetto and chrome://tracing read: what a step is called, where it stands
// and what is said of it. Predicted and measured timelines are made of the same events, so that a viewer lays them side by side.
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace msc {

using TraceEvent = nlohmann::ordered_json;

/// Lanes (`tid`) of a process. The last one is for measured runs alone: it shows whole steps of the training.
enum class Lane : int { Compute = 0, Communication = 1, Steps = 2 };

/// Processes (`pid`): a rank that was measured has its number, so predicted programs are counted from here.
inline constexpr int64_t firstPredictedProcess = 1'000'000;

/// Metadata: the name of a process, what it is sorted by, and its lanes up to `last`.
std::vector<TraceEvent> describeProcess(int64_t process, const std::string &name, int64_t order, Lane last);

/// The complete event of step `index` of `variant` without `pid`, `ts` and `dur`: `name` is the operator and the instance name of
/// the step; `cat` its phase, or `load` for what fills constants; `tid` its lane; `args.step` its number, `args.place` where it
/// is from; and of a collective its `bytes`, `groups`, the operator that it is `for` and the `reason`.
TraceEvent stepEvent(const plan::Plan &plan, const plan::Variant &variant, int index);

} // namespace msc
