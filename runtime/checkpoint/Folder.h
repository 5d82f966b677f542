// Folders that appear, change and go away as a whole, also while other processes do the same to the same name.
#pragma once

#include "runtime/Status.h"

#include <cstdint>

namespace msc {

/// "<parent>/.<name>.tmp-<run>" for "<parent>/<name>": where `run` writes a folder before it gets its name.
std::string temporaryName(const std::string &folder, uint64_t run);

/// A number that no other run has.
uint64_t drawRunNumber();

/// Tells other processes that a folder is being written: held until it is destroyed or the process ends. On file
/// systems without locks for folders nothing is held, and nothing is taken for abandoned.
class FolderLock {
public:
  FolderLock() = default;
  FolderLock(FolderLock &&other) noexcept;
  FolderLock &operator=(FolderLock &&other) noexcept;
  ~FolderLock();
  /// Waits for the lock of the folder at `path`.
  static FolderLock take(const std::string &path);
  /// Holds nothing if another one has the lock.
  static FolderLock tryToTake(const std::string &path);
  bool isHeld() const { return handle >= 0; }
  /// True if the folder was removed before the lock was taken.
  bool isOfRemoved() const;

private:
  explicit FolderLock(int handle) : handle(handle) {}
  int handle = -1;
};

/// An empty folder at `path` with all its parents, locked by `lock`.
Status makeTemporaryFolder(const std::string &path, FolderLock &lock);

/// Removes what runs that died have left beside `folder` under its temporary names.
void removeAbandoned(const std::string &folder);

/// Gives the folder `from` the name `to` and brings that to the disk. A folder that is there already is exchanged with
/// the new one in one step and then removed.
Status renameFolder(const std::string &from, const std::string &to);

/// Removes the folder at `path`, which disappears in one step: `aside` is a free name beside it. None there is success.
Status removeFolder(const std::string &path, const std::string &aside);

} // namespace msc
