// Machines for searches of small networks.
#pragma once

#include "runtime/machine/MachineModel.h"

namespace msc::test {

/// Collectives and the computation of small tensors are both worth weighing.
inline MachineModel quick() {
  MachineModel machine = MachineModel::cpuLocal();
  machine.flopsPerUs.fill(1e7);
  machine.memoryBytesPerUs = 1e6;
  machine.launchUs = 1;
  return machine;
}

} // namespace msc::test
