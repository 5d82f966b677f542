#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Index.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace msc {

namespace fs = std::filesystem;

static std::string parentOf(const std::string &path) {
  std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string temporaryName(const std::string &folder) {
  fs::path path(folder);
  return (path.parent_path() / ("." + path.filename().string() + ".tmp")).string();
}

Status makeEmptyFolder(const std::string &path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error)
    fs::create_directories(path, error);
  return error ? Status(fileError("make the folder", path, error.value())) : Status::ok();
}

/// renameat2 as a system call: older C libraries lack the function.
static int exchangeNames(const std::string &a, const std::string &b) {
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE));
}

Status renameFolder(const std::string &from, const std::string &to) {
  bool replaced = false;
  if (rename(from.c_str(), to.c_str()) != 0) {
    if (errno != EEXIST && errno != ENOTEMPTY)
      return fileError("rename '" + from + "' to", to, errno);
    replaced = exchangeNames(from, to) == 0;
    if (!replaced) {
      // A file system without exchange: the old one steps aside for a moment.
      std::string aside = temporaryName(to) + ".old";
      if (Status empty = makeEmptyFolder(aside); !empty)
        return empty;
      if (rename(to.c_str(), aside.c_str()) != 0 || rename(from.c_str(), to.c_str()) != 0)
        return fileError("replace", to, errno);
      std::error_code ignored;
      fs::remove_all(aside, ignored);
    }
  }
  if (replaced)
    if (Status removed = removeCheckpointFolder(from); !removed)
      return removed;
  return syncDirectory(parentOf(to));
}

Status removeCheckpointFolder(const std::string &path) {
  std::error_code error;
  fs::remove(fs::path(path) / kIndexName, error);
  if (!error)
    fs::remove_all(path, error);
  return error ? Status(fileError("remove", path, error.value())) : Status::ok();
}

} // namespace msc
