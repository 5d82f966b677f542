// A plan proves itself before it runs: msc checks every plan that it writes, msrun every plan that it loads.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"

namespace msc::plan {

/// Proves that every rank can run the plan: all indices name something; shardings are sound; buffers lie aligned inside
/// the arena and are large enough on every rank; kernels have the variants that some rank needs; collectives agree with
/// the shardings at both ends, and all members of a group run the same ones in the same order; no buffer is read before it
/// is written, or overwritten while it may still be read or is in flight; each asynchronous start is awaited once.
/// Machine code itself is trusted. Work is bounded; a plan that needs more is refused with that reason.
/// ExitCode::BadFile names the step and the buffer.
Status checkPlan(const Plan &plan);

} // namespace msc::plan
