// Reading and writing files with errors that name the path, the offset and the cause.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <memory>

namespace msc {

/// A 128-bit XXH3 checksum as 32 hexadecimal digits.
using Checksum = std::string;
Checksum checksumOf(const void *data, size_t bytes);

/// A file open for reading at any offset.
class InputFile {
public:
  /// A file that does not exist is a Usage error, one that cannot be read a BadFile error.
  static Result<InputFile> open(const std::string &path);
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&other) noexcept;
  ~InputFile();

  const std::string &path() const { return name; }
  uint64_t size() const { return bytes; }
  /// Exactly `count` bytes from `offset`; less is a BadFile error.
  Status read(uint64_t offset, void *data, uint64_t count) const;
  /// The checksum of all bytes.
  Result<Checksum> checksum() const;

private:
  InputFile(std::string path, int handle, uint64_t bytes) : name(std::move(path)), handle(handle), bytes(bytes) {}
  std::string name;
  int handle = -1;
  uint64_t bytes = 0;
};

/// A new file, written front to back, with the checksum of what was written.
class OutputFile {
public:
  /// A pipe that nobody reads is a NoResource error; no call waits for its reader.
  static Result<OutputFile> create(const std::string &path) { return create(path, path); }
  /// `name`: of the file in messages.
  static Result<OutputFile> create(const std::string &path, const std::string &name);
  OutputFile(OutputFile &&) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  /// A full disk is a NoResource error with the free bytes.
  Status write(const void *data, uint64_t count);
  /// Brings everything to the disk and closes.
  Status finish();
  uint64_t size() const { return bytes; }
  /// Of all bytes written so far.
  Checksum checksum() const;

private:
  struct Hash;
  OutputFile(std::string path, int handle);
  std::string name;
  int handle = -1;
  uint64_t bytes = 0;
  std::unique_ptr<Hash> hash;
};

/// Success if a file can be written at `path`, else NoResource. What is there stays as it is. A pipe is held open until the process
/// ends, so that its reader does not take this for the end of the text.
Status checkWritable(const std::string &path);
/// The error for a failed call on `path`: `errno` decides between disk full, no permission and so on.
Error fileError(const std::string &what, const std::string &path, int cause);
/// Bytes that can still be written below `path`.
uint64_t freeBytes(const std::string &path);
/// Brings the entries of a directory to the disk.
Status syncDirectory(const std::string &path);
/// Makes `text` the whole of a file, or writes it to a pipe or device. A file that was there stays as it is if that fails.
Status writeTextFile(const std::string &path, const std::string &text);
/// The whole of a small file; larger than `limit` is a BadFile error.
Result<std::string> readTextFile(const std::string &path, uint64_t limit);

} // namespace msc
