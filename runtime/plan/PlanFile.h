// Plans on disk: "msc-plan", format, protobuf, SHA-256 over everything before it.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"

#include <string>
#include <string_view>

namespace msc::plan {

/// The newest format, and the oldest that readPlan understands. Format 2: collectives that move several tensors;
/// 3: copies and exchanges by regions, calls.
inline constexpr uint32_t planFormat = 3;
inline constexpr uint32_t oldestPlanFormat = 1;

/// The oldest format that can say what this plan says.
uint32_t formatOf(const Plan &plan);

/// The bytes of a plan file. Equal plans give equal bytes.
std::string encodePlan(const Plan &plan, uint32_t format);
inline std::string encodePlan(const Plan &plan) { return encodePlan(plan, formatOf(plan)); }

/// The last 32 bytes of its file, a SHA-256: equal plans have equal ones.
std::string checksumOf(const Plan &plan);

/// The plan in `bytes`; `name` is what messages call the file. ExitCode::BadFile for anything but an undamaged plan.
Result<Plan> decodePlan(std::string_view bytes, const std::string &name);

/// Writes under a temporary name, syncs and renames, so that `path` is always a whole plan or what it was before; a link stays. What is no regular
/// file is written to; a pipe that nobody reads is an error.
Status writePlan(const std::string &path, const Plan &plan);

/// Reads and verifies a plan file: ExitCode::Usage if there is none, ExitCode::BadFile if it is damaged or of another
/// format. The result is undamaged, not yet proven sound: see checkPlan.
Result<Plan> readPlan(const std::string &path);

} // namespace msc::plan
