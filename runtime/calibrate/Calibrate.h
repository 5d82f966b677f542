// The machine model of the machine that this process runs on: `msrun --calibrate`.
#pragma once

#include "runtime/calibrate/Stopwatch.h"
#include "runtime/comm/Communicator.h"
#include "runtime/machine/MachineModel.h"

namespace msc {

struct Calibration {
  MachineModel machine;
  double spread = 0; ///< of repeated measurements (Stopwatch::spreads), the median over all that was measured
};

/// Measures collectives, products and copies with all ranks at work, and fits a model, named after the transport and
/// the number of ranks ("threads-8"). It has one level, or two where the ranks are spread over nodes: of `ranksPerNode`
/// consecutive ranks, a divisor of their number; 0: as they lie on hosts. Ends within about `seconds`. All ranks call
/// it together and get the same.
Result<Calibration> calibrate(comm::World &world, double seconds, int64_t ranksPerNode = 0);

/// The levels alone: what collectives cost within a node and across nodes. `spreads`, if given, receives those of all measurements.
/// `clock` is for tests.
Result<std::vector<LinkLevel>> calibrateLevels(comm::World &world, double seconds, int64_t ranksPerNode,
                                               const Clock &clock = steadyMicroseconds, std::vector<double> *spreads = nullptr);

/// calibrate with `ranks` threads of this process.
Result<Calibration> calibrateThreads(int64_t ranks, double seconds, int64_t ranksPerNode = 0);

} // namespace msc
