// The predicted timeline of one step, for viewers of traces.
#pragma once

#include "compiler/Report.h"
#include "runtime/plan/plan.pb.h"

#include <string>

namespace msc::compiler {

/// Trace events in JSON, as Perfetto and chrome://tracing read them: per program a process (`firstPredictedProcess` and on) with
/// the lanes `compute` (0) and `communication` (1), in it every step of the plan as one complete event, as `stepEvent` names it.
/// `msrun --timeline` names measured steps the same. Times are microseconds.
///
/// Steps start in the order of the plan. A collective starts when the one before it is done and the rank has come to it; what is
/// not asynchronous holds the rank until it is done, else its wait does. As `passes::hiddenUs` counts.
std::string timelineJson(const plan::Plan &plan, const Findings &findings);

} // namespace msc::compiler
