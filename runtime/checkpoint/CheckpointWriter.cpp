#include "runtime/checkpoint/Agreement.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Index.h"
#include "runtime/checkpoint/Safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace msc {

namespace fs = std::filesystem;
using comm::ElementType;

namespace {

const comm::OperationLabel kLabel{"checkpoint", ""};

/// One save as one rank sees it.
class Save {
public:
  Save(const CheckpointOptions &options, comm::Group &all, const std::vector<CheckpointTensor> &tensors,
       const TrainingState &state, int64_t serial, uint64_t run)
      : all(all), tensors(tensors), state(state) {
    index.folder = (options.perRank ? "{rank}/" : "") + options.prefix + "-" + std::to_string(state.epoch) + "_" +
                   std::to_string(state.step);
    index.serial = serial;
    target = (fs::path(options.directory) / expandRank(index.folder, all.rank())).string();
    temporary = temporaryName(target, run);
  }

  Result<SaveOutcome> run() {
    SaveOutcome outcome{target, 0, {}};
    for (auto step : {&Save::makeFolder, &Save::writeTensors, &Save::writeDescription, &Save::publish}) {
      Agreement agreement = agree(all, (this->*step)(), kLabel);
      if (!agreement.communication)
        return agreement.communication.error();
      if (agreement.failed) {
        removeTemporary();
        outcome.skipped = agreement.failed;
        return outcome;
      }
      if (step == &Save::writeTensors)
        if (Status shared = shareFiles(); !shared)
          return shared.error();
    }
    outcome.bytes = index.files[all.rank()].bytes;
    return outcome;
  }

private:
  /// The first rank does what is done once per folder.
  bool ownsFolder() const { return isSeparate(index) || all.rank() == 0; }
  Status makeFolder() {
    if (!ownsFolder())
      return Status::ok();
    removeAbandoned(target);
    return makeTemporaryFolder(temporary, lock);
  }
  void removeTemporary() {
    std::error_code ignored;
    if (ownsFolder())
      fs::remove_all(temporary, ignored);
  }

  Status writeTensors() {
    std::vector<TensorBytes> owned;
    int64_t own = all.members()[all.rank()];
    for (const CheckpointTensor &tensor : tensors) {
      std::vector<int64_t> local = tensor.sharding.localShape(tensor.shape, own);
      if (tensor.sharding.ownerOf(own) == own && elementCount(local) > 0)
        owned.push_back({tensor.name, tensor.type, local, tensor.data});
    }
    std::string path = (fs::path(temporary) / rankFileName(own)).string();
    Result<WrittenFile> result = writeSafetensors(path, owned, {{"format", "msc"}});
    if (!result) {
      Error error = result.error();
      error.message += "; the file needs " + std::to_string(safetensorsSize(owned, {{"format", "msc"}})) + " bytes";
      return error;
    }
    written = *result;
    return Status::ok();
  }

  /// Every rank learns sizes and checksums of all files: each fills in its own row of a table of zeros.
  Status shareFiles() {
    struct Row {
      int64_t words[5];
    };
    static_assert(sizeof(Row) == 40);
    std::vector<Row> rows(all.size());
    rows[all.rank()].words[0] = static_cast<int64_t>(written.bytes);
    memcpy(&rows[all.rank()].words[1], written.checksum.data(), 32);
    if (Status done = all.allReduce(rows.data(), rows.data(), 5 * all.size(), ElementType::I64, ReduceKind::Sum, kLabel);
        !done)
      return done;
    for (const Row &row : rows)
      index.files.push_back({static_cast<uint64_t>(row.words[0]),
                             Checksum(reinterpret_cast<const char *>(&row.words[1]), 32)});
    return Status::ok();
  }

  void describeTensors() {
    for (const CheckpointTensor &tensor : tensors) {
      IndexedTensor entry{tensor.type, tensor.shape, tensor.isState, {}};
      for (int64_t rank : all.members()) {
        Box box = tensor.sharding.localBox(tensor.shape, rank);
        if (tensor.sharding.ownerOf(rank) == rank && elementCount(box) > 0)
          entry.slices.push_back({rank, box});
      }
      index.tensors[tensor.name] = std::move(entry);
    }
  }

  Status writeText(const char *name, const std::string &content) {
    Result<OutputFile> file = OutputFile::create((fs::path(temporary) / name).string());
    if (!file)
      return file.error();
    if (Status done = file->write(content.data(), content.size()); !done)
      return done;
    return file->finish();
  }

  Status writeDescription() {
    if (!ownsFolder())
      return Status::ok();
    std::string stateText = writeState(state);
    index.state = {stateText.size(), checksumOf(stateText.data(), stateText.size())};
    describeTensors();
    if (Status done = writeText(kStateName, stateText); !done)
      return done;
    if (Status done = writeText(kIndexName, writeIndex(index)); !done)
      return done;
    return syncDirectory(temporary);
  }

  Status publish() { return ownsFolder() ? renameFolder(temporary, target) : Status::ok(); }

  comm::Group &all;
  const std::vector<CheckpointTensor> &tensors;
  const TrainingState &state;
  CheckpointIndex index;
  WrittenFile written;
  std::string target, temporary;
  FolderLock lock; ///< of the temporary folder
};

/// The largest serial number among the checkpoints that are there already.
int64_t newestSerial(const CheckpointOptions &options) {
  int64_t newest = 0;
  fs::path folder = fs::path(options.directory) / (options.perRank ? "0" : "");
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored))
    if (fs::exists(entry.path() / kIndexName, ignored))
      if (Result<CheckpointIndex> index = readIndex(entry.path().string()); index)
        newest = std::max(newest, index->serial);
  return newest;
}

} // namespace

Result<SaveOutcome> CheckpointWriter::save(const std::vector<CheckpointTensor> &tensors, const TrainingState &state) {
  if (serial < 0) {
    struct {
      int64_t serial = 0;
      uint64_t run = 0;
    } first;
    if (all.rank() == 0)
      first = {newestSerial(options), drawRunNumber()};
    if (Status done = all.broadcast(&first, sizeof(first), 0, kLabel); !done)
      return done.error();
    serial = first.serial;
    run = first.run;
  }
  Result<SaveOutcome> outcome = Save(options, all, tensors, state, ++serial, run).run();
  if (!outcome || outcome->skipped)
    return outcome;
  std::erase(saved, outcome->path);
  saved.push_back(outcome->path);
  Agreement removed = agree(all, removeOld(), kLabel);
  if (!removed.communication)
    return removed.communication.error();
  outcome->skipped = removed.failed;
  return outcome;
}

Status CheckpointWriter::removeOld() {
  Status result;
  bool separate = options.perRank || options.prefix.find("{rank}") != std::string::npos;
  while (options.keep > 0 && static_cast<int64_t>(saved.size()) > options.keep) {
    if (separate || all.rank() == 0)
      if (Status removed = removeFolder(saved.front(), temporaryName(saved.front(), run)); !removed)
        result = removed;
    saved.erase(saved.begin());
  }
  return result;
}

} // namespace msc
