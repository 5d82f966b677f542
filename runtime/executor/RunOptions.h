// What a run is told from outside, and what it says about itself.
#pragma once

#include "runtime/Status.h"
#include "runtime/device/Device.h"
#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/plan/PlanIndex.h"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace msc {

/// Which loss lines are printed, and by whom.
struct LogOptions {
  std::string every;     ///< "", "epoch", or a number of steps; overrides the plan if not empty
  bool allRanks = false; ///< every rank prints, not only rank 0
  bool prefix = false;   ///< lines start with the rank
};

/// Checkpoints, as far as the command line says something about them.
struct CheckpointFlags {
  std::string directory; ///< overrides the plan's, unless empty
  bool perRank = false;
  bool off = false;
  std::string resume;    ///< a folder, "latest", or empty
};

/// The timeline of a run, as far as the command line says something about it.
struct TimelineOptions {
  std::string path;               ///< JSON file, or empty
  uint64_t first = 2, count = 1;  ///< steps of this run, from 1
};

/// What a rank may trace; it keeps 16 bytes of an event, and the file has some 250.
inline constexpr uint64_t mostTracedEvents = uint64_t{1} << 22;

struct RunOptions {
  std::string planPath;                          ///< for messages
  std::optional<uint64_t> epochs, steps;         ///< override the plan's training loop
  std::map<std::string, std::string> inputs;     ///< input -> .npy file
  std::map<std::string, std::string> fetches;    ///< result, param:NAME or state:NAME -> .npy file
  std::string report;                            ///< JSON file, or empty
  TimelineOptions timeline;
  std::string saveGraphs;                        ///< folder that gets rank_<r>/msrun.txt, or empty
  int threadsPerRank = 0;                        ///< 0: as many as the host has for each rank
  LogOptions log;
  CheckpointFlags checkpoint;
};

/// What the ranks of this process share. Read-only while they run, except `stop`.
struct SharedRun {
  const PlanIndex *index = nullptr;
  RunOptions options;
  std::shared_ptr<device::KernelLibrary> kernels; ///< of CPUs
  std::shared_ptr<device::Backend> backend;       ///< of other devices than CPUs, or null
  /// Exit code of a signal that asks all ranks to leave at the next step; 0: go on.
  std::atomic<int> stop{0};
};

/// One step, for --report.
struct StepRecord {
  uint64_t epoch = 0; ///< from 1
  uint64_t step = 0;  ///< within the epoch, from 1
  double loss = 0;    ///< not a number if nothing is trained
  double ms = 0;
};

/// What --report writes.
struct RunReport {
  int64_t ranks = 0;
  std::string transport, device, planDigest;
  std::vector<StepRecord> steps;
  int64_t samplesPerStep = 0;     ///< the global batch; 0 if the program has no input
  uint64_t peakBytesPerRank = 0;  ///< largest over ranks
};

/// Writes the report as JSON with stable keys (runtime/executor/report.schema.json).
Status writeReport(const std::string &path, const RunReport &report);

/// Shortest digits that read back as the same value of the type of the loss.
std::string lossText(double loss, plan::DataType type);

} // namespace msc
