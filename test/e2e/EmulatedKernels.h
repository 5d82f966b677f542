// Kernels for the recording driver: the emulated GPU code of a plan, and of the CUDA backend itself.
#pragma once

#include "test/e2e/PlanLaunches.h"

namespace msc::e2e {

/// Loads the PTX of a plan into `driver`: its kernels run by emulation of `ir`, from which the compiler made it, and access what the steps of the plan say.
void addPlanKernels(test::RecordingDriver &driver, PlanLaunches launches, const std::string &ir);

/// Loads the kernels of runtime/device/cuda, by emulation of the IR in the files of `folder`.
void addRuntimeKernels(test::RecordingDriver &driver, const std::string &folder);

} // namespace msc::e2e
