// Kernels for the recording driver: the emulated GPU code of a plan, and of the CUDA backend itself.
#pragma once

#include "runtime/plan/PlanIndex.h"
#include "test/runtime/device/cuda/RecordingDriver.h"

#include <string>
#include <vector>

namespace msc::e2e {

/// Loads the PTX of `index`'s plan into `driver`: its kernels run by emulation of `ir`, from which the compiler made it, and access what the steps of the plan
/// say.
void addPlanKernels(test::RecordingDriver &driver, const PlanIndex &index, const std::string &ir);

/// Loads the kernels of runtime/device/cuda, by emulation of the IR in the files of `folder`.
void addRuntimeKernels(test::RecordingDriver &driver, const std::string &folder);

} // namespace msc::e2e
