#include "runtime/checkpoint/File.h"
#include "runtime/LinkTarget.h"
#include "runtime/WriteRepair.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#include <xxhash.h>

namespace msc {

/// One call writes or reads at most this much, so that a failure is noticed early.
constexpr uint64_t kPortion = uint64_t{4} << 20;

static Checksum hexOf(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Checksum text;
  for (unsigned char byte : canonical.digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Checksum checksumOf(const void *data, size_t bytes) { return hexOf(XXH3_128bits(data, bytes)); }

uint64_t freeBytes(const std::string &path) {
  struct statvfs info;
  std::string at = path;
  while (statvfs(at.c_str(), &info) != 0) {
    std::string parent = std::filesystem::path(at).parent_path().string();
    if (parent == at || parent.empty())
      return statvfs(".", &info) == 0 ? uint64_t{info.f_bavail} * info.f_frsize : 0;
    at = parent;
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

Error fileError(const std::string &what, const std::string &path, int cause) {
  std::string message = "cannot " + what + " '" + path + "': " + strerror(cause);
  std::error_code unknown;
  if ((cause == ENOSPC || cause == EDQUOT) && !std::filesystem::is_character_file(path, unknown)) // /dev/full
    return {ExitCode::NoResource, message + "; " + std::to_string(freeBytes(path)) + " bytes are free",
            writeRepair(cause)};
  return {ExitCode::NoResource, message, writeRepair(cause)};
}

/// Without waiting for the reader of a pipe: then -1, and errno is ENXIO. What is written later does wait for a slow one.
static int openForWriting(const std::string &path, int flags) {
  int handle = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0644);
  if (handle >= 0 && fcntl(handle, F_SETFL, O_WRONLY) != 0) {
    close(handle);
    return -1;
  }
  return handle;
}

static Error pipeError(const std::string &path, int cause) {
  if (cause != ENXIO)
    return fileError("write", path, cause);
  return {ExitCode::NoResource, "cannot write '" + path + "': it is a pipe that nobody reads",
          "start its reader first: cat " + path + " > FILE &"};
}

Status checkWritable(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return Error{ExitCode::NoResource, "cannot write '" + path + "': there is no folder '" + folder.string() + "'",
                 "create it, or choose another one"};
  fs::file_status found = fs::status(path, ignored);
  if (fs::is_directory(found))
    return Error{ExitCode::NoResource, "cannot write '" + path + "': it is a folder", "add the name of a file"};
  if (fs::is_fifo(found)) {
    int pipe = openForWriting(path, 0);
    for (int tries = 0; pipe < 0 && errno == ENXIO && tries < 100; ++tries) { // its reader may be about to start
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      pipe = openForWriting(path, 0);
    }
    // Stays open until the process ends: a reader that saw it closed would take that for the end of the text.
    return pipe < 0 ? pipeError(path, errno) : Status::ok();
  }
  if (fs::exists(found) && !fs::is_regular_file(found))
    return access(path.c_str(), W_OK) == 0 ? Status::ok() : Status(fileError("write", path, errno));
  int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (handle < 0)
    return fileError("write", path, errno);
  close(handle);
  if (!fs::exists(found))
    unlink(fs::canonical(path, ignored).c_str()); // what a link points to, not the link
  return Status::ok();
}

Result<InputFile> InputFile::open(const std::string &path) {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return Error{ExitCode::Usage, "'" + path + "' does not exist", ""};
    return Error{ExitCode::BadFile, "cannot open '" + path + "': " + strerror(errno), ""};
  }
  struct stat info;
  if (fstat(handle, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(handle);
    return Error{ExitCode::BadFile, "'" + path + "' is not a regular file", ""};
  }
  return InputFile(path, handle, static_cast<uint64_t>(info.st_size));
}

InputFile::InputFile(InputFile &&other) noexcept
    : name(std::move(other.name)), handle(std::exchange(other.handle, -1)), bytes(other.bytes) {}

InputFile &InputFile::operator=(InputFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(handle, other.handle);
  std::swap(bytes, other.bytes);
  return *this;
}

InputFile::~InputFile() {
  if (handle >= 0)
    close(handle);
}

Status InputFile::read(uint64_t offset, void *data, uint64_t count) const {
  if (offset > bytes || count > bytes - offset)
    return Error{ExitCode::BadFile, "'" + name + "' has " + std::to_string(bytes) + " bytes, " +
                                        std::to_string(count) + " bytes at offset " + std::to_string(offset) +
                                        " were expected", ""};
  auto *to = static_cast<char *>(data);
  while (count) {
    ssize_t got = pread(handle, to, std::min(count, kPortion), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return Error{ExitCode::BadFile, "cannot read '" + name + "' at offset " + std::to_string(offset) + ": " +
                                          (got ? strerror(errno) : "it became shorter"), ""};
    to += got;
    offset += got;
    count -= got;
  }
  return Status::ok();
}

Result<Checksum> InputFile::checksum() const {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> portion(std::min(bytes, kPortion));
  for (uint64_t at = 0; at < bytes; at += portion.size()) {
    uint64_t count = std::min<uint64_t>(portion.size(), bytes - at);
    if (Status done = read(at, portion.data(), count); !done)
      return done.error();
    XXH3_128bits_update(state.get(), portion.data(), count);
  }
  return hexOf(XXH3_128bits_digest(state.get()));
}

struct OutputFile::Hash {
  XXH3_state_t *state = XXH3_createState();
  Hash() { XXH3_128bits_reset(state); }
  ~Hash() { XXH3_freeState(state); }
};

OutputFile::OutputFile(std::string path, int handle)
    : name(std::move(path)), handle(handle), hash(std::make_unique<Hash>()) {}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : name(std::move(other.name)), handle(std::exchange(other.handle, -1)), bytes(other.bytes),
      hash(std::move(other.hash)) {}

OutputFile::~OutputFile() {
  if (handle >= 0)
    close(handle);
}

Result<OutputFile> OutputFile::create(const std::string &path, const std::string &name) {
  int handle = openForWriting(path, O_CREAT | O_TRUNC);
  if (handle < 0)
    return pipeError(name, errno);
  return OutputFile(name, handle);
}

Status OutputFile::write(const void *data, uint64_t count) {
  auto *from = static_cast<const char *>(data);
  while (count) {
    ssize_t put = ::write(handle, from, std::min(count, kPortion));
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return fileError("write", name, put ? errno : EIO);
    XXH3_128bits_update(hash->state, from, put);
    from += put;
    bytes += put;
    count -= put;
  }
  return Status::ok();
}

Status OutputFile::finish() {
  int cause = fsync(handle) == 0 ? 0 : errno;
  // Pipes and some file systems have nothing to bring to a disk.
  if (cause == EINVAL || cause == EROFS)
    cause = 0;
  if (close(std::exchange(handle, -1)) != 0 && !cause)
    cause = errno;
  return cause ? Status(fileError("write", name, cause)) : Status::ok();
}

static Status writeWhole(OutputFile &file, const std::string &text) {
  if (Status status = file.write(text.data(), text.size()); !status)
    return status;
  return file.finish();
}

Status writeTextFile(const std::string &path, const std::string &text) {
  std::error_code ignored;
  const std::filesystem::file_status found = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(found) || std::filesystem::is_regular_file(found)) {
    const std::string target = linkTarget(path), beside = target + ".tmp" + std::to_string(getpid());
    if (Result<OutputFile> file = OutputFile::create(beside, path)) {
      Status status = writeWhole(*file, text);
      if (status && ::rename(beside.c_str(), target.c_str()) != 0)
        status = fileError("write", path, errno);
      if (!status)
        ::unlink(beside.c_str());
      return status;
    }
  }
  Result<OutputFile> file = OutputFile::create(path); // a pipe, a device, or in a folder that takes no new files
  return file ? writeWhole(*file, text) : Status(file.error());
}

Checksum OutputFile::checksum() const { return hexOf(XXH3_128bits_digest(hash->state)); }

Status syncDirectory(const std::string &path) {
  int handle = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0)
    return fileError("open", path, errno);
  int cause = fsync(handle) == 0 ? 0 : errno;
  close(handle);
  return cause && cause != EINVAL ? Status(fileError("sync", path, cause)) : Status::ok();
}

Result<std::string> readTextFile(const std::string &path, uint64_t limit) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  if (file->size() > limit)
    return Error{ExitCode::BadFile, "'" + path + "' has " + std::to_string(file->size()) + " bytes, more than the " +
                                        std::to_string(limit) + " that such a file may have", ""};
  std::string text(file->size(), '\0');
  if (Status done = file->read(0, text.data(), text.size()); !done)
    return done.error();
  return text;
}

} // namespace msc
