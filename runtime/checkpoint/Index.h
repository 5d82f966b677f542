// index.json and state.json: what a checkpoint consists of.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"

namespace msc {

/// A file of a checkpoint.
struct IndexedFile {
  uint64_t bytes = 0;
  Checksum checksum;
};

/// A part of a tensor that one rank's file holds under the tensor's name.
struct IndexedSlice {
  int64_t rank = 0;
  Box box; ///< global indices
};

struct IndexedTensor {
  comm::ElementType type = comm::ElementType::F32;
  std::vector<int64_t> shape;
  bool isState = false;
  std::vector<IndexedSlice> slices;
};

struct CheckpointIndex {
  /// Folder of each rank below the directory, with {rank} where it differs: "net-1_4", "{rank}/net-1_4".
  std::string folder;
  int64_t serial = 0; ///< grows with every checkpoint in a directory: the largest is the newest
  std::vector<IndexedFile> files; ///< by rank
  IndexedFile state;
  std::map<std::string, IndexedTensor> tensors;
};

constexpr const char *kIndexName = "index.json";
constexpr const char *kStateName = "state.json";
/// "rank_3.safetensors".
std::string rankFileName(int64_t rank);
/// `text` with {rank} replaced.
std::string expandRank(const std::string &text, int64_t rank);
/// True if the ranks have different folders.
inline bool isSeparate(const CheckpointIndex &index) { return index.folder.find("{rank}") != std::string::npos; }

/// The text of index.json; it holds a checksum over itself.
std::string writeIndex(const CheckpointIndex &index);
/// Reads and checks `folder`/index.json: the checksum, the structure, and that the slices of each tensor cover it exactly.
Result<CheckpointIndex> readIndex(const std::string &folder);

std::string writeState(const TrainingState &state);
/// Reads `folder`/state.json, which must be the file that the index describes.
Result<TrainingState> readState(const std::string &folder, const IndexedFile &expected);

/// The folder of another rank, given that of one: both below the same directory.
std::string folderOf(const std::string &oneFolder, const CheckpointIndex &index, int64_t rank);

} // namespace msc
