// The measured timeline of some steps of a run, for viewers of traces.
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/executor/RunOptions.h"
#include "runtime/plan/PlanIndex.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace msc {

/// How far a rank's clock is ahead of that of rank 0, in nanoseconds: `ahead` plus or minus `error`.
struct ClockOffset {
  int64_t ahead = 0, error = 0;
};

/// When a rank came to some barriers and when it left them: {came, left, came, left, ...}. All members of `all` call it
/// together.
Result<std::vector<int64_t>> meetOften(comm::Group &all, size_t meetings, const std::function<int64_t()> &clock);

/// What the same barriers say of two clocks. Nobody leaves a barrier before the last one has come to it, so each of them bounds
/// the offset on both sides, however long messages take. `error` is about half of the time of the quickest barrier.
ClockOffset offsetBetween(std::span<const int64_t> own, std::span<const int64_t> ofFirst);

/// One rank's record of the traced steps, and the file that rank 0 makes of all of them: trace events in JSON, per rank a
/// process (`pid` = rank) with the lanes `compute` (0), `communication` (1) and `steps` (2). In the first two every step of the
/// plan stands as one complete event per traced step of the run, as `stepEvent` names it, `Executor::runStep` measures it and
/// `msc explain --timeline` predicts it. The third shows the runs of the plan themselves, with epoch, step and the microseconds
/// that their batches took before. Times are microseconds since the first rank began to run the first traced step.
///
/// Ranks of one host share its clock (CLOCK_MONOTONIC). Across hosts each clock is set against that of rank 0 by barriers right
/// behind the last traced step; how exactly stands at the process ("clock within 12 us"), and drift within the traced steps is
/// not counted.
///
/// Memory is taken once: 16 bytes per step of the plan and traced step. Used by one rank's thread.
class Timeline {
public:
  /// The timeline of a run of `runSteps` steps. Where that ends before the last step that is asked for, the last ones are shown.
  /// Usage error if no step runs.
  static Result<std::unique_ptr<Timeline>> create(const PlanIndex &index, const plan::Program &program, comm::World &world,
                                                  const TimelineOptions &options, uint64_t runSteps);

  /// Counts one more step of the run; true if it is traced: then `startPlan` and `endPlan` follow.
  bool startStep(uint64_t epoch, uint64_t step);
  /// Where Executor::runStep writes the times of the plan's steps.
  std::span<int64_t> startPlan();
  void endPlan();
  /// True behind the last traced step.
  bool isComplete() const { return stepsSeen == first + count; }

  /// Gathers what all ranks have measured; rank 0 writes the file: under a temporary name, renamed when it is whole. All ranks
  /// call it together. The outcome is that of the communication; `written` is that of the file, on rank 0.
  Status write(comm::Group &everyone, Status &written);

private:
  Timeline(const PlanIndex &index, const plan::Program &program, comm::World &world, std::string path)
      : index(index), program(program), world(world), path(std::move(path)) {}

  int64_t wordsOf(int64_t rank) const;
  Result<std::vector<ClockOffset>> alignClocks(comm::Group &everyone, int64_t &begin);

  const PlanIndex &index;
  const plan::Program &program;
  comm::World &world;
  std::string path;
  uint64_t first = 0, count = 0; ///< of the run, from 0
  uint64_t stepsSeen = 0;
  std::vector<int64_t> record;   ///< of one traced step after the other: a head, then begin and end of each step of the plan
  size_t at = 0;                 ///< in `record`, the traced step
};

/// Success if the file can be written and replaced, else NoResource.
Status checkTimelineFile(const std::string &path);

} // namespace msc
