#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/File.h"
#include "runtime/checkpoint/Index.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <linux/fs.h>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace msc {

namespace fs = std::filesystem;

static std::string parentOf(const std::string &path) {
  std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// What the temporary names of a folder begin with.
static std::string temporaryStem(const std::string &folder) {
  return "." + fs::path(folder).filename().string() + ".tmp-";
}

std::string temporaryName(const std::string &folder, uint64_t run) {
  char number[17];
  std::snprintf(number, sizeof(number), "%016llx", static_cast<unsigned long long>(run));
  return (fs::path(folder).parent_path() / (temporaryStem(folder) + number)).string();
}

uint64_t drawRunNumber() {
  std::random_device source;
  return uint64_t{source()} << 32 | source();
}

/// -1 if it has no lock, or none is to be had.
static int lockFolder(const std::string &path, int operation) {
  int handle = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  while (handle >= 0 && flock(handle, operation) != 0)
    if (errno != EINTR)
      close(std::exchange(handle, -1));
  return handle;
}

FolderLock::FolderLock(FolderLock &&other) noexcept : handle(std::exchange(other.handle, -1)) {}

FolderLock &FolderLock::operator=(FolderLock &&other) noexcept {
  std::swap(handle, other.handle);
  return *this;
}

FolderLock::~FolderLock() {
  if (handle >= 0)
    close(handle);
}

FolderLock FolderLock::take(const std::string &path) {
  return FolderLock(lockFolder(path, LOCK_EX));
}

FolderLock FolderLock::tryToTake(const std::string &path) {
  return FolderLock(lockFolder(path, LOCK_EX | LOCK_NB));
}

bool FolderLock::isOfRemoved() const {
  struct stat info;
  return handle >= 0 && fstat(handle, &info) == 0 && info.st_nlink == 0;
}

/// Another process may be removing it, too.
static Status removeTree(const std::string &path) {
  std::error_code error, ignored;
  do
    fs::remove_all(path, error);
  while (error == std::errc::no_such_file_or_directory && fs::exists(path, ignored));
  return error && fs::exists(path, ignored) ? Status(fileError("remove", path, error.value())) : Status::ok();
}

Status makeTemporaryFolder(const std::string &path, FolderLock &lock) {
  do {
    if (Status removed = removeTree(path); !removed)
      return removed;
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
      return fileError("make the folder", path, error.value());
    lock = FolderLock::take(path);
  } while (lock.isOfRemoved()); // taken for abandoned between the two
  return Status::ok();
}

void removeAbandoned(const std::string &folder) {
  std::string stem = temporaryStem(folder);
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(parentOf(folder), ignored))
    if (entry.path().filename().string().rfind(stem, 0) == 0)
      found.push_back(entry.path().string());
  for (const std::string &path : found)
    if (FolderLock lock = FolderLock::tryToTake(path); lock.isHeld())
      fs::remove_all(path, ignored);
}

/// renameat2 as a system call: older C libraries lack the function.
static int exchangeNames(const std::string &a, const std::string &b) {
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE));
}

/// A file in a folder that no checkpoint has, which replacing the folder would lose; empty: there is none.
static std::string foreignFileIn(const std::string &folder) {
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name != kIndexName && name != kStateName && !(name.starts_with("rank_") && name.ends_with(".safetensors")))
      return entry.path().string();
  }
  return "";
}

Status renameFolder(const std::string &from, const std::string &to) {
  bool replaced = false;
  if (const std::string foreign = foreignFileIn(to); !foreign.empty())
    return Error{ExitCode::BadFile, "'" + foreign + "' is in the way, and is of no checkpoint", "move it away, or write another prefix or directory"};
  while (!replaced && rename(from.c_str(), to.c_str()) != 0) {
    if (errno != EEXIST && errno != ENOTEMPTY)
      return fileError("rename '" + from + "' to", to, errno);
    replaced = exchangeNames(from, to) == 0;
    if (replaced || (errno == ENOENT && fs::exists(from))) // another run has just removed the old one
      continue;
    // A file system without exchange: the old one steps aside for a moment.
    std::string aside = from + ".old";
    if (rename(to.c_str(), aside.c_str()) != 0 || rename(from.c_str(), to.c_str()) != 0)
      return fileError("replace", to, errno);
    if (Status removed = removeTree(aside); !removed)
      return removed;
    break;
  }
  if (replaced)
    if (Status removed = removeTree(from); !removed)
      return removed;
  return syncDirectory(parentOf(to));
}

Status removeFolder(const std::string &path, const std::string &aside) {
  if (rename(path.c_str(), aside.c_str()) != 0)
    return errno == ENOENT ? Status::ok() : Status(fileError("remove", path, errno));
  return removeTree(aside);
}

} // namespace msc
