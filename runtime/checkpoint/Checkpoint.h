// Checkpoints of a run: saved by all ranks, each slice once, and loaded by any number of ranks under any sharding.
//
//   <directory>/<prefix>-<epoch>_<step>/        with per_rank: <directory>/<rank>/<prefix>-<epoch>_<step>/
//     rank_<r>.safetensors    the slices that rank r owns; names are those of the tensors
//     state.json              where the training stands
//     index.json              what the checkpoint consists of, with sizes and checksums; one without it does not exist
//
// A checkpoint is written under a temporary name that no other run has, brought to the disk, and renamed: runs that write to
// one folder at the same time replace each other's checkpoints as a whole.
#pragma once

#include "runtime/checkpoint/File.h"
#include "runtime/comm/Communicator.h"

#include <map>
#include <vector>

namespace msc {

/// A parameter or state as the run holds it. All ranks list the same tensors in the same order.
struct CheckpointTensor {
  std::string name;
  comm::ElementType type = comm::ElementType::F32;
  std::vector<int64_t> shape;  ///< global
  Sharding sharding;           ///< not partial
  void *data = nullptr;        ///< this rank's part, dense, with the sizes of sharding.localShape(shape, rank)
  bool isState = false;        ///< not trained: moments, running statistics
};

/// Where the training stands after the step that was saved; what a resumed run needs to go on with the same bits.
struct TrainingState {
  int64_t epoch = 0;            ///< from 1
  int64_t step = 0;             ///< within the epoch, from 1
  int64_t globalStep = 0;       ///< steps done so far
  int64_t datasetPosition = 0;  ///< batches of the current epoch that were consumed
  std::string planDigest;
  std::map<std::string, std::string> extra; ///< anything else, e.g. of the input pipeline
  bool operator==(const TrainingState &) const = default;
};

/// Where checkpoints go; from the plan's `checkpoint` block and the command line.
struct CheckpointOptions {
  std::string directory;
  std::string prefix;     ///< may hold {rank}: then every rank has its own folder; empty: any, for reading
  int64_t keep = 0;       ///< newest checkpoints of this run that stay; 0 = all
  bool perRank = false;
};

/// What came of one save.
struct SaveOutcome {
  std::string path;             ///< of this rank's folder
  uint64_t bytes = 0;           ///< of this rank's files
  std::optional<Error> skipped; ///< why there is no checkpoint, e.g. a full disk; the training can go on
};

/// Saves the checkpoints of one run; one per rank. `all` is the group of all ranks.
class CheckpointWriter {
public:
  CheckpointWriter(CheckpointOptions options, comm::Group &all) : options(std::move(options)), all(all) {}
  /// Called by all ranks. An error means that the ranks lost each other; trouble with the disk is `skipped` on all ranks.
  Result<SaveOutcome> save(const std::vector<CheckpointTensor> &tensors, const TrainingState &state);

private:
  Status removeOld();
  CheckpointOptions options;
  comm::Group &all;
  std::vector<std::string> saved; ///< of this run, oldest first, as this rank sees them
  int64_t serial = -1;            ///< of the newest checkpoint in the directory
  uint64_t run = 0;               ///< the number of this run, the same on all ranks
};

/// What came of a load.
struct LoadOutcome {
  TrainingState state;
  std::string path;
  std::vector<std::string> unused;  ///< tensors of the checkpoint that nobody asked for
  std::vector<std::string> unusedParameters; ///< those that are no states
  std::vector<std::string> notes;   ///< e.g. which newer, incomplete checkpoints were passed over
};

/// Fills the tensors from the checkpoint at `where`: a path (of any rank's folder, or of a file in it), or "latest" for the
/// newest complete one that `options` describes. Called by all ranks, whatever their number; an error on one is an error on all.
Result<LoadOutcome> loadCheckpoint(const std::string &where, const CheckpointOptions &options,
                                   const std::vector<CheckpointTensor> &tensors, comm::Group &all);

/// The newest complete checkpoint in `options.directory`; notes about passed-over ones are appended.
Result<std::string> findLatestCheckpoint(const CheckpointOptions &options, std::vector<std::string> &notes);

} // namespace msc
