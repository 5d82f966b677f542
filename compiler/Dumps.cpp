#include "compiler/Dumps.h"

#include "dialects/dist/DistDialect.h"
#include "runtime/SignalWatch.h"
#include "runtime/plan/RankClasses.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <set>

namespace fs = std::filesystem;

namespace msc::compiler {

static std::string folderOf(int64_t rank) { return "rank_" + std::to_string(rank); }

static Error cannotCreate(const fs::path &folder, const std::error_code &error) {
  return Error{ExitCode::NoResource, "cannot create folder '" + folder.string() + "': " + error.message(),
               "choose another folder with --save-graphs-path"};
}

static Error cannotWrite(const fs::path &file, const std::error_code &error) {
  return Error{ExitCode::NoResource, "cannot write '" + file.string() + "': " + error.message(),
               "choose another folder with --save-graphs-path"};
}

/// True for files that begin as a dump of this name does.
static bool isDump(const fs::path &file) {
  static const std::regex names("(step_parallel_begin|step_parallel_end|18_execute|19_backend)_[0-9]{4}\\.(ir|dot)");
  std::smatch parts;
  std::string name = file.filename().string(), start(4096, '\0');
  std::error_code ignored;
  if (!std::regex_match(name, parts, names) || !fs::is_regular_file(file, ignored))
    return false;
  std::ifstream in(file, std::ios::binary);
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(in.gcount()));
  llvm::StringRef text = start;
  if (parts[2] == "dot")
    return text.starts_with("digraph ");
  return (text.starts_with("#IR entry") || text.starts_with("# rank ")) &&
         text.contains("\nstage : " + parts[1].str() + "\n");
}

static bool isSameFile(const fs::path &a, const fs::path &b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

/// Removes what an earlier compile left, and the folders that this empties.
static void removeOldDumps(const fs::path &folder, const std::set<fs::path> &written, const std::string &input) {
  std::error_code ignored;
  for (const fs::directory_entry &rank : fs::directory_iterator(folder, ignored)) {
    int64_t number;
    llvm::StringRef name = rank.path().filename().native();
    if (!name.consume_front("rank_") || name.getAsInteger(10, number) || !rank.is_directory(ignored))
      continue;
    std::vector<fs::path> old;
    for (const fs::directory_entry &file : fs::directory_iterator(rank.path(), ignored))
      if (!written.count(file.path()) && isDump(file.path()) && !isSameFile(file.path(), input))
        old.push_back(file.path());
    for (const fs::path &file : old)
      fs::remove(file, ignored);
    if (!old.empty() && fs::is_empty(rank.path(), ignored))
      fs::remove(rank.path(), ignored);
  }
}

/// A folder that goes with the process, also where the user interrupts it.
struct DumpFolder::Waiting {
  Waiting()
      : watch([this](int signal) {
          if (isIgnored(signal)) // in the background of a script
            return;
          writing.lock();
          remove();
          endBySignal(signal);
        }) {}
  ~Waiting() { remove(); }

  std::error_code createWithin(const fs::path &path) {
    const std::lock_guard lock(writing);
    llvm::SmallString<128> made;
    const std::error_code error = llvm::sys::fs::createUniqueDirectory((fs::absolute(path) / ".dumps").string(), made);
    if (!error)
      folder = std::string(made.str());
    return error;
  }
  void remove() const {
    std::error_code ignored;
    if (!folder.empty())
      fs::remove_all(folder, ignored);
  }

  std::mutex writing;
  fs::path folder;
  SignalWatch watch;
};

DumpFolder::DumpFolder() = default;
DumpFolder::DumpFolder(DumpFolder &&) noexcept = default;
DumpFolder &DumpFolder::operator=(DumpFolder &&) noexcept = default;
DumpFolder::~DumpFolder() = default;

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
    folder.onePerProgram = true;
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
  return folder;
}

/// The first rank of every combination of local shapes that occurs.
static std::vector<int64_t> ranksThatDiffer(mlir::ModuleOp module) {
  std::vector<std::pair<Sharding, std::vector<int64_t>>> uneven; // with the global shape
  int64_t devices = 1;
  module.walk([&](mlir::Operation *op) {
    for (mlir::Value value : op->getResults()) {
      if (!dist::hasSharding(value.getType()))
        continue;
      std::pair held(dist::shardingOf(value).canonical(), dist::globalShape(value.getType()));
      devices = held.first.devices();
      if (!held.first.isEven(held.second) && std::find(uneven.begin(), uneven.end(), held) == uneven.end())
        uneven.push_back(std::move(held));
    }
  });
  RankClasses classes(devices);
  for (const auto &[sharding, shape] : uneven)
    classes.addSizes(sharding, shape);
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> ranks;
  for (int64_t rank : classes.ranks()) {
    std::vector<int64_t> sizes;
    for (const auto &[sharding, shape] : uneven)
      for (int64_t size : sharding.localShape(shape, rank))
        sizes.push_back(size);
    if (seen.insert(std::move(sizes)).second)
      ranks.push_back(rank);
  }
  return ranks;
}

Status DumpFolder::chooseRanks(mlir::ModuleOp module) {
  if (!onePerProgram)
    return Status::ok();
  const std::lock_guard lock(waiting->writing);
  chosen = ranksThatDiffer(module);
  for (int64_t rank : chosen) {
    std::error_code error;
    if (rank > 0)
      fs::copy(waiting->folder / folderOf(0), waiting->folder / folderOf(rank), error);
    if (error)
      return cannotCreate(fs::path(path) / folderOf(rank), error);
  }
  return Status::ok();
}

Status DumpFolder::writeFile(int64_t rank, const std::string &name, Print print) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !waiting) {
    auto made = std::make_unique<Waiting>();
    error = made->createWithin(path);
    if (!error)
      waiting = std::move(made);
  }
  if (error)
    return cannotCreate(fs::path(path) / folderOf(rank), error);
  const std::lock_guard lock(waiting->writing);
  fs::create_directories(waiting->folder / folderOf(rank), error);
  if (error)
    return cannotCreate(fs::path(path) / folderOf(rank), error);
  llvm::raw_fd_ostream out((waiting->folder / folderOf(rank) / name).string(), error, llvm::sys::fs::OF_None);
  if (!error)
    print(rank, out);
  out.close();
  if (!error && out.has_error()) {
    error = out.error();
    out.clear_error();
  }
  return error ? Status(cannotWrite(fs::path(path) / folderOf(rank) / name, error)) : Status::ok();
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

Status DumpFolder::finish(const std::string &input) {
  if (!waiting)
    return Status::ok();
  std::unique_lock lock(waiting->writing);
  std::error_code error;
  for (int64_t rank : chosen)
    if (fs::create_directories(fs::path(path) / folderOf(rank), error); error) // before anything is replaced
      return cannotCreate(fs::path(path) / folderOf(rank), error);
  std::set<fs::path> written;
  for (int64_t rank : chosen) {
    fs::path folder = fs::path(path) / folderOf(rank);
    for (const fs::directory_entry &file : fs::directory_iterator(waiting->folder / folderOf(rank), error)) {
      fs::path target = folder / file.path().filename();
      if (!isSameFile(target, input))
        fs::rename(file.path(), target, error);
      if (error)
        return cannotWrite(target, error);
      written.insert(target);
    }
  }
  removeOldDumps(path, written, input);
  lock.unlock();
  waiting.reset();
  return Status::ok();
}

} // namespace msc::compiler
