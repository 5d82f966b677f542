// safetensors files: 8 bytes little-endian header length, a JSON header, then the tensors' bytes without gaps.
#pragma once

#include "runtime/checkpoint/File.h"
#include "runtime/comm/Communicator.h"

#include <map>
#include <vector>

namespace msc {

/// One tensor as the header describes it; `begin` and `end` are bytes from the start of the file.
struct StoredTensor {
  std::string name;
  comm::ElementType type = comm::ElementType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The word of the format for a type: "F32", "BOOL", ...
const char *safetensorsTypeName(comm::ElementType type);
/// The type of such a word.
std::optional<comm::ElementType> safetensorsType(const std::string &name);

/// A file open for reading. Opening checks everything that the format promises: no gaps, no overlaps, no duplicates.
class SafetensorsReader {
public:
  static Result<SafetensorsReader> open(const std::string &path);
  const InputFile &file() const { return input; }
  /// In the order of their bytes.
  const std::vector<StoredTensor> &tensors() const { return list; }
  const std::map<std::string, std::string> &metadata() const { return notes; }
  /// Null if there is no tensor of that name.
  const StoredTensor *find(const std::string &name) const;

private:
  explicit SafetensorsReader(InputFile file) : input(std::move(file)) {}
  Status readHeader();
  InputFile input;
  std::vector<StoredTensor> list;
  std::map<std::string, std::string> notes;
  std::map<std::string, size_t> byName;
};

/// A tensor to be written.
struct TensorBytes {
  std::string name;
  comm::ElementType type = comm::ElementType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr;
};

/// Size and checksum of what was written.
struct WrittenFile {
  uint64_t bytes = 0;
  Checksum checksum;
};

/// Bytes that writeSafetensors will write.
uint64_t safetensorsSize(const std::vector<TensorBytes> &tensors, const std::map<std::string, std::string> &metadata);

/// Writes the tensors in the given order and brings them to the disk.
Result<WrittenFile> writeSafetensors(const std::string &path, const std::vector<TensorBytes> &tensors,
                                     const std::map<std::string, std::string> &metadata);

} // namespace msc
