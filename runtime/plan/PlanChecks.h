// The parts of checkPlan, in the order in which they run; each relies on those before it. Internal to runtime/plan.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/PlanIndex.h"
#include "runtime/plan/Refinement.h"

#include <fmt/format.h>
#include <string>

namespace msc::check {

/// The one kind of error that checks give.
template <typename... Args> Error bad(fmt::format_string<Args...> text, Args &&...args) {
  return {ExitCode::BadFile, fmt::format(text, std::forward<Args>(args)...), ""};
}

/// All tables outside programs: every index in range, shapes and products bounded, names unique.
Status checkTables(const plan::Plan &plan);
/// Views show memory of the same size; memory that lives for the whole run is shared with nothing.
Status checkMemory(const PlanIndex &index);
/// Ranges, groups, inputs, outputs, and that the bodies of all steps name what exists.
Status checkProgramTables(const PlanIndex &index, const plan::Program &program);
/// What launches, matrix products, copies and fills do with their buffers.
Status checkBodies(const PlanIndex &index, const plan::Variant &variant);
/// A copy: what the rank lacks it cannot copy.
Status checkCopy(const PlanIndex &index, const plan::Step &step);
/// Tensors that regions describe, of a copy (`group` is null) or of an exchange within a group: the regions lie within the
/// shapes, write nothing twice and, unless something fills, everything; the rank or its group holds what they read.
Status checkRegionTensors(const PlanIndex &index, const plan::Step &step, const std::vector<MovedTensor> &tensors,
                          bool fills, const plan::Group *group);
/// Do two buffers occupy a common byte?
bool overlaps(const PlanIndex &index, uint32_t a, uint32_t b);
/// Collectives against the shardings of source and target.
Status checkCollectives(const PlanIndex &index, const plan::Variant &variant);
/// All members of every group run the same collectives in the same order, and no rank waits for ever.
Status checkAgreement(const PlanIndex &index, const plan::Program &program);
/// Happens-before: streams, `after`, start and wait, written before read, no overlap of live memory.
Status checkOrder(const PlanIndex &index, const plan::Program &program, const plan::Variant &variant);

/// How a step is called in errors: "step 'relu' (net.mir:9)".
inline std::string at(const PlanIndex &index, const plan::Step &step) { return index.title(step); }

} // namespace msc::check
