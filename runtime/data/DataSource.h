// Where a program's inputs come from: random columns, .npy files, or arrays given on the command line. Everything is
// global; a rank fills just its own boxes.
#pragma once

#include "runtime/Status.h"
#include "runtime/device/Device.h"
#include "runtime/plan/PlanIndex.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace msc {

/// Fills one input for one batch.
class InputColumn {
public:
  virtual ~InputColumn() = default;
  /// Number of samples; 0 = without end.
  virtual int64_t samples() const { return 0; }
  /// Writes the elements of `box` of batch `batch` of epoch `epoch` (both from 0) densely to `target`.
  virtual Status fill(std::byte *target, const Box &box, uint64_t epoch, uint64_t batch) = 0;
};

/// The inputs of one rank's program.
class DataSource {
public:
  /// `files` maps inputs to .npy files that replace the data set's columns.
  static Result<std::unique_ptr<DataSource>> open(const PlanIndex &index, const plan::Program &program,
                                                  const std::map<std::string, std::string> &files, int64_t rank);

  /// Batches per epoch: what the plan or the files say; 1 if neither does.
  uint64_t batchesPerEpoch() const { return batches; }
  /// Samples of the data set's files; 0 if nothing is read from it.
  int64_t samples() const { return samplesOfFiles; }
  /// Samples of the data set in one batch; 0 if the program takes nothing from it.
  int64_t samplesPerBatch() const { return batchSize; }
  /// True if the data set draws its batches, and more than one of them differ.
  bool drawsSeveralBatches() const { return samplesOfFiles == 0 && batches > 1 && !sameBatch && !constant; }
  /// What the user should know, e.g. samples that fill no batch; may be empty.
  const std::string &note() const { return remark; }
  /// Opens the ways of the inputs; before anything else below, once.
  Status connect(device::Device &device);
  /// Sends the inputs of a batch on their way, beside what the device does. What goes wrong is told by `load` of that batch.
  void prepare(uint64_t epoch, uint64_t batch);
  /// Brings the inputs of a batch into the arena.
  Status load(std::byte *arena, uint64_t epoch, uint64_t batch);

private:
  struct Bound {
    std::unique_ptr<InputColumn> column;
    uint64_t offset = 0; ///< in the arena
    Box box;             ///< of this rank
    size_t bytes = 0;    ///< of its elements
    std::unique_ptr<device::Inlet> inlet; ///< null: there are none
  };

  Status send(uint64_t epoch, uint64_t batch);

  std::vector<Bound> inputs;
  uint64_t batches = 1;
  int64_t samplesOfFiles = 0, batchSize = 0;
  bool sameBatch = false;
  bool constant = false; ///< loaded once, never changes
  std::optional<std::pair<uint64_t, uint64_t>> sent; ///< epoch and batch that are on their way or there
  Status sending;                                    ///< what went wrong with them
  std::string remark;
};

/// A column of random numbers; `shape` is the shape of one global batch.
Result<std::unique_ptr<InputColumn>> randomColumn(const plan::Dataset &dataset, const plan::Dataset::Column &column,
                                                  plan::DataType type, const std::vector<int64_t> &shape);
/// Samples from a file in order, or shuffled anew in each epoch.
Result<std::unique_ptr<InputColumn>> npyColumn(const plan::Dataset &dataset, const plan::Dataset::Column &column,
                                               plan::DataType type, const std::vector<int64_t> &shape);
/// One array of exactly the input's shape, the same in every step; `classes` as in plan::Dataset::Column.
Result<std::unique_ptr<InputColumn>> fixedColumn(const std::string &path, const std::string &input, plan::DataType type,
                                                 const std::vector<int64_t> &shape, int64_t classes = 0);

/// `path` with every ${NAME} replaced; an unset name is a Usage error.
Result<std::string> expandPath(const std::string &path);

/// A permutation of 0..count-1 that depends on seed and epoch only.
std::vector<int64_t> permutation(int64_t count, uint64_t seed, uint64_t epoch);

} // namespace msc
