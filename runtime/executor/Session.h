// The run of one rank from the first allocation to the last checkpoint.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/comm/Communicator.h"
#include "runtime/data/DataSource.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/RunOptions.h"
#include "runtime/executor/Timeline.h"

#include <memory>

namespace msc {

/// Created and used by one rank's thread.
class Session {
public:
  Session(SharedRun &shared, comm::World &world) : shared(shared), index(*shared.index), world(world) {}
  /// Behind a failure it gives up what devices say to each other: all ranks should have been told before.
  ~Session();

  /// Allocates, binds, initialises or resumes; then trains, or, if the plan does not train, runs the batches of the data set's
  /// files, or one batch. Then fetches and reports. All ranks call it together, once.
  Status run();

private:
  Status prepare();
  Status runProgram();
  /// Processes have a plan and a command line each: fails on all of them if the plans or the inputs differ.
  Status checkAgreement();
  /// `own` is what rank 0 has, of the same length everywhere; else the first rank that has another one fails with `otherwise`.
  Status checkAlike(const std::string &own, const Error &otherwise);
  /// Writes what this rank runs, for some or all ranks.
  Status saveGraphs(int threads);
  Status initializeParameters();
  Status resume();
  /// Parameters that --input names begin with what the files hold, whatever a checkpoint holds.
  Status takeParameters();
  /// Where the run goes on if the checkpoint counts other batches.
  void noteOtherBatches(const TrainingState &state) const;
  Status train();
  Status trainStep(uint64_t step);
  /// Scalars, inputs and the program once, and what operators Print show. A signal ends the run before that.
  Status computeStep(uint64_t step);
  Status predict();
  /// Runs one of `batches` batches and prints its results.
  Status predictBatch(uint64_t batch, uint64_t batches);
  /// Each rank prints its own value of a result, in turn, as NumPy would, `title` in front.
  Status printOwn(const plan::Output &output, const std::string &title);
  Status printOwnResults();
  /// The values of operators Print: each rank its own, or rank 0 the whole ones.
  Status printAsked();
  bool hasOwnTensors() const { return index.plan().parallel_mode() == "hybrid_parallel"; }
  /// A result that is to be fetched: the value of the last step run. Null: none, or only parameters and states.
  const std::string *fetchedResult() const;
  Status checkpointAfter(uint64_t step);
  Status fetchAll();
  Status report();
  /// Before the first of so many steps.
  Status startTimeline(uint64_t steps);
  /// Writes the timeline as soon as its last step has run. Trouble with the file does not end the run; it is its outcome.
  Status finishTimeline();
  void setSchedules(uint64_t step);
  bool logs(uint64_t step) const;
  bool speaks() const { return world.rank() == 0 || shared.options.log.allRanks; }
  /// A line on stdout, whole even if ranks print at once. A reader that has gone is an error; other trouble, e.g. a full
  /// disk, is one warning.
  Status print(const std::string &line);
  /// A line on stderr, from rank 0 only.
  void note(const std::string &line) const;
  /// Parameters and states in the host's memory: those of the arena, or copies that `copyParameters` brings up to date.
  std::vector<CheckpointTensor> tensors();
  size_t parameterBytes(const plan::Parameter &parameter) const;
  /// From the device to `hostCopies`, or back; nothing where the arena is in the host's reach.
  Status copyParameters(bool toHost);
  uint64_t epochOf(uint64_t step) const { return step / data->batchesPerEpoch(); }
  uint64_t stepOf(uint64_t step) const { return step % data->batchesPerEpoch(); }

  SharedRun &shared;
  const PlanIndex &index;
  comm::World &world;
  const plan::Program *program = nullptr;
  std::unique_ptr<device::Device> device;
  std::byte *arena = nullptr;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<DataSource> data;
  std::unique_ptr<CheckpointWriter> writer; ///< null: no checkpoints
  std::vector<std::vector<std::byte>> hostCopies; ///< of parameters, where the arena is out of the host's reach
  comm::Group *everyone = nullptr;
  const plan::Output *loss = nullptr;       ///< null: nothing is trained
  std::byte lossBytes[8] = {};              ///< of the step that was computed last
  std::vector<double> scheduled; ///< what schedules have in the arena; NaN: nothing yet
  std::string logEvery;
  bool mute = false;                        ///< stdout has failed
  bool diverged = false;                    ///< a loss was not finite
  uint64_t firstStep = 0, lastStep = 0;     ///< [first, last) of the whole run
  std::unique_ptr<Timeline> timeline;       ///< null: none, or written
  Status timelineWritten;
  std::vector<StepRecord> records;          ///< kept on rank 0 for the report
};

} // namespace msc
