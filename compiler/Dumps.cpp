#include "compiler/Dumps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <filesystem>
#include <regex>

namespace fs = std::filesystem;

namespace msc::compiler {

/// Files that an earlier compile left in a rank's folder.
static void removeOldDumps(const fs::path &folder) {
  static const std::regex ours("(step_parallel_begin|step_parallel_end|18_execute|19_backend)_[0-9]{4}\\.(ir|dot)");
  std::error_code ignored;
  for (const fs::directory_entry &rank : fs::directory_iterator(folder, ignored)) {
    if (!rank.is_directory() || rank.path().filename().string().rfind("rank_", 0) != 0)
      continue;
    for (const fs::directory_entry &file : fs::directory_iterator(rank.path(), ignored))
      if (std::regex_match(file.path().filename().string(), ours))
        fs::remove(file.path(), ignored);
    if (fs::is_empty(rank.path(), ignored))
      fs::remove(rank.path(), ignored);
  }
}

Result<DumpFolder> DumpFolder::create(std::string path, int level, const std::string &ranks, int64_t devices) {
  DumpFolder folder;
  folder.level = level;
  if (level == 0)
    return folder;
  folder.path = path.empty() ? "." : std::move(path);
  if (ranks == "all" || (ranks.empty() && devices <= 16)) {
    for (int64_t rank = 0; rank < devices; ++rank)
      folder.chosen.push_back(rank);
  } else if (ranks.empty()) {
    folder.chosen = {0};
  } else {
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(ranks).split(parts, ',');
    for (llvm::StringRef part : parts) {
      int64_t rank = -1;
      if (part.trim().getAsInteger(10, rank) || rank < 0 || rank >= devices)
        return Error{ExitCode::Usage,
                     "--save-graphs-ranks names '" + part.str() + "', but the ranks are 0 to " +
                         std::to_string(devices - 1),
                     "write 'all' or ranks joined by commas, e.g. --save-graphs-ranks 0,5"};
      folder.chosen.push_back(rank);
    }
  }
  removeOldDumps(folder.path);
  return folder;
}

Status DumpFolder::writeFile(int64_t rank, const std::string &name, Print print) const {
  fs::path folder = fs::path(path) / ("rank_" + std::to_string(rank));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return Error{ExitCode::NoResource, "cannot create folder '" + folder.string() + "': " + error.message(),
                 "choose another folder with --save-graphs-path"};
  llvm::raw_fd_ostream out((folder / name).string(), error, llvm::sys::fs::OF_None);
  if (!error)
    print(rank, out);
  out.close();
  if (error || out.has_error()) {
    std::string reason = error ? error.message() : out.error().message();
    out.clear_error();
    return Error{ExitCode::NoResource, "cannot write '" + (folder / name).string() + "': " + reason,
                 "choose another folder with --save-graphs-path"};
  }
  return Status::ok();
}

Status DumpFolder::write(llvm::StringRef stage, Print text, Print graph) {
  std::string number = std::to_string(stages++);
  if (level == 0 || (level == 1 && stage != "step_parallel_begin" && stage != "18_execute"))
    return Status::ok();
  std::string name = (stage + "_" + std::string(4 - std::min<size_t>(4, number.size()), '0') + number).str();
  for (int64_t rank : chosen) {
    if (Status status = writeFile(rank, name + ".ir", text); !status)
      return status;
    if (level >= 3)
      if (Status status = writeFile(rank, name + ".dot", graph); !status)
        return status;
  }
  return Status::ok();
}

} // namespace msc::compiler
