#include "runtime/checkpoint/Agreement.h"
#include "runtime/checkpoint/Index.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/comm/Region.h"

#include <algorithm>
#include <filesystem>

namespace msc {

namespace fs = std::filesystem;

namespace {

const comm::OperationLabel kLabel{"resume", ""};
/// Files are read in windows of this size.
constexpr uint64_t kWindow = uint64_t{256} << 10;

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string result = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    result += (i ? ", " : "") + std::to_string(shape[i]);
  return result + ")";
}

Error bad(const std::string &message, const std::string &help = "") { return {ExitCode::BadFile, message, help}; }

/// Row-major strides of a dense array.
std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// The box `part` inside the dense array that holds `whole`.
comm::Region regionOf(const Box &part, const Box &whole) {
  comm::Region region{0, sizes(part), stridesOf(sizes(whole))};
  for (size_t d = 0; d < part.size(); ++d)
    region.offset += (part[d].begin - whole[d].begin) * region.strides[d];
  return region;
}

/// Reads a region of a tensor that lies dense in a file, in order of the file, a window at a time.
Status readRegion(const SafetensorsReader &reader, const StoredTensor &stored, const comm::Region &source, void *target,
                  const comm::Region &into) {
  size_t dims = source.sizes.size();
  int64_t total = source.count();
  uint64_t size = comm::elementSize(stored.type);
  int64_t rowSize = dims ? source.sizes.back() : 1;
  uint64_t last = source.offset;
  for (size_t d = 0; d < dims; ++d)
    last += (source.sizes[d] - 1) * source.strides[d];
  const uint64_t end = stored.begin + (last + 1) * size;
  std::vector<char> window;
  uint64_t windowAt = 0;
  std::vector<int64_t> at(dims, 0);
  for (int64_t done = 0; done < total; done += rowSize) {
    uint64_t from = source.offset, to = into.offset;
    for (size_t d = 0; d + 1 < dims; ++d) {
      from += at[d] * source.strides[d];
      to += at[d] * into.strides[d];
    }
    uint64_t begin = stored.begin + from * size, bytes = rowSize * size;
    auto *place = static_cast<char *>(target) + to * size;
    if (bytes >= kWindow) {
      if (Status read = reader.file().read(begin, place, bytes); !read)
        return read;
    } else {
      if (begin < windowAt || begin + bytes > windowAt + window.size()) {
        window.resize(std::min(kWindow, end - begin));
        windowAt = begin;
        if (Status read = reader.file().read(begin, window.data(), window.size()); !read)
          return read;
      }
      std::copy_n(window.data() + (begin - windowAt), bytes, place);
    }
    for (size_t d = dims > 0 ? dims - 1 : 0; d-- > 0;) {
      if (++at[d] < source.sizes[d])
        break;
      at[d] = 0;
    }
  }
  return Status::ok();
}

/// One load as one rank sees it.
class Load {
public:
  Load(std::string path, const std::vector<CheckpointTensor> &tensors, comm::Group &all)
      : path(std::move(path)), tensors(tensors), all(all) {}

  Result<LoadOutcome> run() {
    for (auto step : {&Load::readDescription, &Load::compare, &Load::verifyFiles, &Load::readTensors})
      if (Status agreed = agree(all, (this->*step)(), kLabel).status(); !agreed)
        return agreed.error();
    return outcome;
  }

private:
  std::string fileOf(int64_t rank) const {
    return (fs::path(folderOf(path, index, rank)) / rankFileName(rank)).string();
  }

  Status readDescription() {
    Result<CheckpointIndex> read = readIndex(path);
    if (!read)
      return unusable(read.error());
    index = std::move(*read);
    Result<TrainingState> state = readState(path, index.state);
    if (!state)
      return unusable(state.error());
    outcome.state = *state;
    outcome.path = path;
    return Status::ok();
  }

  /// It is damaged: nothing but another one helps.
  static Error unusable(Error error) {
    if (error.help.empty() && error.code == ExitCode::BadFile)
      error.help = "resume from another checkpoint of its folder, or leave out --resume";
    return error;
  }

  bool holdsAllParameters() const {
    return std::all_of(tensors.begin(), tensors.end(), [&](const CheckpointTensor &t) { return t.isState || index.tensors.count(t.name) != 0; });
  }

  /// "it holds 'w' and 3 others: ...".
  std::string otherNetworkHelp() const {
    const size_t others = index.tensors.empty() ? 0 : index.tensors.size() - 1;
    auto shown = std::find_if(index.tensors.begin(), index.tensors.end(), [](const auto &tensor) { return !tensor.second.isState; });
    if (shown == index.tensors.end())
      shown = index.tensors.begin();
    const std::string first = index.tensors.empty() ? "nothing" : "'" + shown->first + "'";
    const std::string more = others == 0 ? "" : " and " + std::to_string(others) + (others == 1 ? " other" : " others");
    return "it holds " + first + more + ": resume from a checkpoint of this network, or leave out --resume";
  }

  Status compare() {
    for (const CheckpointTensor &tensor : tensors) {
      auto found = index.tensors.find(tensor.name);
      if (found == index.tensors.end())
        return bad("the checkpoint '" + path + "' does not hold '" + tensor.name + "'",
                   tensor.isState && holdsAllParameters() ? "go on with the optimizer that it was trained with, or leave out --resume" : otherNetworkHelp());
      const IndexedTensor &stored = found->second;
      if (stored.type != tensor.type || stored.shape != tensor.shape)
        return bad("the checkpoint '" + path + "' holds '" + tensor.name + "' as " +
                   safetensorsTypeName(stored.type) + " " + shapeText(stored.shape) + ", the plan has " +
                   safetensorsTypeName(tensor.type) + " " + shapeText(tensor.shape), otherNetworkHelp());
    }
    for (const auto &[name, stored] : index.tensors)
      if (std::none_of(tensors.begin(), tensors.end(), [&](const CheckpointTensor &t) { return t.name == name; })) {
        outcome.unused.push_back(name);
        if (!stored.isState)
          outcome.unusedParameters.push_back(name);
      }
    return Status::ok();
  }

  /// The ranks share the work: each checks some of the files.
  Status verifyFiles() {
    for (int64_t f = all.rank(); f < static_cast<int64_t>(index.files.size()); f += all.size()) {
      Result<InputFile> file = InputFile::open(fileOf(f));
      if (!file)
        return unusable(bad("the checkpoint is incomplete: " + file.error().message));
      if (file->size() != index.files[f].bytes)
        return unusable(bad("'" + file->path() + "' has " + std::to_string(file->size()) + " bytes, the index says " +
                            std::to_string(index.files[f].bytes)));
      Result<Checksum> found = file->checksum();
      if (!found)
        return found.error();
      if (*found != index.files[f].checksum)
        return unusable(bad("'" + file->path() + "' is damaged: its checksum is " + *found + ", the index says " + index.files[f].checksum));
    }
    return Status::ok();
  }

  Result<const SafetensorsReader *> readerOf(int64_t rank) {
    if (auto found = readers.find(rank); found != readers.end())
      return &found->second;
    Result<SafetensorsReader> reader = SafetensorsReader::open(fileOf(rank));
    if (!reader)
      return reader.error();
    return &readers.emplace(rank, std::move(*reader)).first->second;
  }

  Status readTensors() {
    for (const CheckpointTensor &tensor : tensors) {
      Box wanted = tensor.sharding.localBox(tensor.shape, all.members()[all.rank()]);
      for (const IndexedSlice &slice : index.tensors.at(tensor.name).slices)
        if (Status done = readSlice(tensor, wanted, slice); !done)
          return done;
    }
    return Status::ok();
  }

  Status readSlice(const CheckpointTensor &tensor, const Box &wanted, const IndexedSlice &slice) {
    Box common = intersect(wanted, slice.box);
    if (elementCount(common) == 0)
      return Status::ok();
    Result<const SafetensorsReader *> reader = readerOf(slice.rank);
    if (!reader)
      return reader.error();
    const StoredTensor *stored = (*reader)->find(tensor.name);
    if (!stored || stored->type != tensor.type || stored->shape != sizes(slice.box))
      return bad("'" + (*reader)->file().path() + "' does not hold the part of '" + tensor.name +
                 "' that the index describes");
    return readRegion(**reader, *stored, regionOf(common, slice.box), tensor.data, regionOf(common, wanted));
  }

  std::string path;
  const std::vector<CheckpointTensor> &tensors;
  comm::Group &all;
  CheckpointIndex index;
  LoadOutcome outcome;
  std::map<int64_t, SafetensorsReader> readers;
};

/// Every file of the checkpoint is there with its size; contents are checked when it is loaded.
Status checkComplete(const std::string &path, const CheckpointIndex &index) {
  for (size_t f = 0; f < index.files.size(); ++f) {
    fs::path file = fs::path(folderOf(path, index, static_cast<int64_t>(f))) / rankFileName(static_cast<int64_t>(f));
    std::error_code error;
    uint64_t bytes = fs::file_size(file, error);
    if (error || bytes != index.files[f].bytes)
      return bad("'" + file.string() + "' " +
                 (error ? "is missing" : "has " + std::to_string(bytes) + " bytes instead of " +
                                             std::to_string(index.files[f].bytes)));
  }
  return Status::ok();
}

/// A text from the first rank to all.
Status shareText(std::string &content, comm::Group &all) {
  int64_t size = static_cast<int64_t>(content.size());
  if (Status done = all.broadcast(&size, sizeof(size), 0, kLabel); !done)
    return done;
  content.resize(size);
  return all.broadcast(content.data(), content.size(), 0, kLabel);
}

} // namespace

/// `prefix`, then epoch and step: net-3_128. An empty prefix is any.
static bool isOfPrefix(const std::string &name, const std::string &prefix) {
  auto isNumber = [](const std::string &text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; };
  if (prefix.empty())
    return true;
  const size_t cut = name.rfind('_');
  return name.rfind(prefix, 0) == 0 && cut != std::string::npos && cut >= prefix.size() && isNumber(name.substr(prefix.size(), cut - prefix.size())) &&
         isNumber(name.substr(cut + 1));
}

Result<std::string> findLatestCheckpoint(const CheckpointOptions &options, std::vector<std::string> &notes) {
  bool anyPrefix = options.prefix.empty();
  std::string prefix = anyPrefix ? "" : expandRank(options.prefix, 0) + "-";
  fs::path folder = options.perRank ? fs::path(options.directory) / "0" : fs::path(options.directory);
  std::error_code error;
  std::optional<std::pair<int64_t, std::string>> newest;
  std::string other;                           // of another network, or prefix
  std::pair<std::string, std::string> damaged; // the last name, and what is wrong
  fs::directory_iterator entries(folder, error);
  if (error)
    return Error{ExitCode::Usage, "there is no checkpoint directory '" + folder.string() + "'",
                 "name another with --checkpoint-directory, or leave out --resume"};
  for (const fs::directory_entry &entry : entries) {
    std::string name = entry.path().filename().string();
    if ((name[0] == '.' && prefix[0] != '.') || !entry.is_directory(error)) // temporary
      continue;
    if (!isOfPrefix(name, prefix)) {
      if (fs::exists(entry.path() / kIndexName, error) && (other.empty() || entry.path().string() < other))
        other = entry.path().string();
      continue;
    }
    if (anyPrefix && !fs::exists(entry.path() / kIndexName, error)) // any other folder
      continue;
    Result<CheckpointIndex> index = readIndex(entry.path().string());
    Status complete = index ? checkComplete(entry.path().string(), *index) : Status(index.error());
    if (!complete)
      notes.push_back("passed over an incomplete checkpoint: " + complete.error().message),
          damaged = std::max(damaged, std::pair(name, complete.error().message));
    else if (!newest || index->serial > newest->first)
      newest = {index->serial, entry.path().string()};
  }
  std::sort(notes.begin(), notes.end());
  const std::string none = "there is no complete checkpoint" + (anyPrefix ? "" : " '" + prefix + "*'") + " in '" + folder.string() + "'";
  if (!newest && !damaged.first.empty())
    return bad(none + ": " + damaged.second, "restore its files, or leave out --resume to train from the beginning");
  if (!newest)
    return bad(none,
               (other.empty() ? "" : "'" + other + "' is of another network or prefix; ") + "leave out --resume to train from the beginning");
  return newest->second;
}

Result<LoadOutcome> loadCheckpoint(const std::string &where, const CheckpointOptions &options,
                                   const std::vector<CheckpointTensor> &tensors, comm::Group &all) {
  std::string path = where;
  std::vector<std::string> notes;
  if (where == "latest") {
    Status found;
    if (all.rank() == 0) {
      Result<std::string> latest = findLatestCheckpoint(options, notes);
      path = latest ? *latest : "";
      if (!latest)
        found = latest.error();
    }
    if (Status agreed = agree(all, found, kLabel).status(); !agreed)
      return agreed.error();
    if (Status shared = shareText(path, all); !shared)
      return shared.error();
  }
  // Each file of a checkpoint stands for it.
  std::error_code ignored;
  if (fs::path parent = fs::absolute(path, ignored).parent_path();
      fs::is_regular_file(path, ignored) && fs::exists(parent / kIndexName, ignored))
    path = fs::path(path).has_parent_path() ? fs::path(path).parent_path().string() : parent.string();
  Result<LoadOutcome> outcome = Load(path, tensors, all).run();
  if (outcome)
    outcome->notes = std::move(notes);
  return outcome;
}

} // namespace msc
