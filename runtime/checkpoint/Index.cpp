#include "runtime/checkpoint/Index.h"
#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/Safetensors.h"

#include <algorithm>
#include <filesystem>

namespace msc {

namespace fs = std::filesystem;

/// More is not a file of ours.
constexpr uint64_t kIndexLimit = uint64_t{256} << 20;
constexpr size_t kFileLimit = 65536;
constexpr const char *kFormat = "msc-checkpoint";
constexpr int64_t kVersion = 1;
const std::string kNoChecksum(32, '0');

std::string rankFileName(int64_t rank) { return "rank_" + std::to_string(rank) + ".safetensors"; }

std::string expandRank(const std::string &text, int64_t rank) {
  std::string result = text;
  for (size_t at; (at = result.find("{rank}")) != std::string::npos;)
    result.replace(at, 6, std::to_string(rank));
  return result;
}

std::string folderOf(const std::string &oneFolder, const CheckpointIndex &index, int64_t rank) {
  if (!isSeparate(index))
    return oneFolder;
  fs::path directory = fs::path(oneFolder).lexically_normal();
  if (directory.filename().empty())
    directory = directory.parent_path();
  fs::path below(index.folder);
  for (auto depth = std::distance(below.begin(), below.end()); depth > 0; --depth)
    directory = directory.parent_path();
  return (directory / expandRank(index.folder, rank)).string();
}

static Json fileJson(const IndexedFile &file) { return {{"bytes", file.bytes}, {"xxh3_128", file.checksum}}; }

std::string writeIndex(const CheckpointIndex &index) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"checksum", kNoChecksum},
               {"folder", index.folder},
               {"serial", index.serial},
               {"state", fileJson(index.state)},
               {"files", Json::array()},
               {"tensors", Json::object()}};
  for (const IndexedFile &file : index.files)
    json["files"].push_back(fileJson(file));
  for (const auto &[name, tensor] : index.tensors) {
    Json slices = Json::array();
    for (const IndexedSlice &slice : tensor.slices) {
      std::vector<int64_t> offset;
      for (const Range &range : slice.box)
        offset.push_back(range.begin);
      slices.push_back({{"rank", slice.rank}, {"offset", offset}, {"shape", sizes(slice.box)}});
    }
    json["tensors"][name] = {{"dtype", safetensorsTypeName(tensor.type)},
                             {"shape", tensor.shape},
                             {"state", tensor.isState},
                             {"slices", slices}};
  }
  std::string content = json.dump(1) + "\n";
  size_t at = content.find(kNoChecksum);
  return content.replace(at, kNoChecksum.size(), checksumOf(content.data(), content.size()));
}

namespace {

/// Turns the JSON of an index into its structure; the first thing that is wrong is kept.
class IndexReader {
public:
  IndexReader(const Json &json, std::string path) : json(json), path(std::move(path)) {}

  Result<CheckpointIndex> read() {
    std::optional<std::string> folder = text(member(json, "folder"));
    std::optional<int64_t> serial = wholeNumber(member(json, "serial"));
    const Json *files = member(json, "files"), *tensors = member(json, "tensors");
    if (!folder || !serial || !files || !files->is_array() || !tensors || !tensors->is_object())
      return fail("it lacks folder, serial, files or tensors");
    if (Status valid = checkFolder(*folder); !valid)
      return valid.error();
    index.folder = *folder;
    index.serial = *serial;
    if (!readFile(member(json, "state"), index.state))
      return fail("the entry of the state is not right");
    if (files->size() > kFileLimit)
      return fail("it lists " + std::to_string(files->size()) + " files");
    for (const Json &entry : *files)
      if (!readFile(&entry, index.files.emplace_back()))
        return fail("the entry of file " + std::to_string(index.files.size() - 1) + " is not right");
    for (auto &[name, entry] : tensors->items())
      if (Status done = readTensor(name, entry); !done)
        return done.error();
    return index;
  }

private:
  Error fail(const std::string &why) const {
    return {ExitCode::BadFile, "'" + path + "' is not a usable index: " + why, ""};
  }
  /// It must stay below the directory.
  Status checkFolder(const std::string &folder) const {
    fs::path parts(folder);
    bool inside = !folder.empty() && parts.is_relative();
    for (const fs::path &part : parts)
      inside = inside && part != ".." && part != "." && !part.empty();
    return inside ? Status::ok() : Status(fail("the folder '" + folder + "' leads out of the directory"));
  }
  static bool readFile(const Json *entry, IndexedFile &file) {
    if (!entry)
      return false;
    std::optional<int64_t> bytes = wholeNumber(member(*entry, "bytes"));
    std::optional<std::string> checksum = text(member(*entry, "xxh3_128"));
    if (!bytes || !checksum || checksum->size() != 32)
      return false;
    file = {static_cast<uint64_t>(*bytes), *checksum};
    return true;
  }
  Status readTensor(const std::string &name, const Json &entry) {
    std::optional<std::string> typeName = text(member(entry, "dtype"));
    std::optional<std::vector<int64_t>> shape = wholeNumbers(member(entry, "shape"));
    const Json *state = member(entry, "state"), *slices = member(entry, "slices");
    std::optional<comm::ElementType> type = typeName ? safetensorsType(*typeName) : std::nullopt;
    if (!type || !shape || !state || !state->is_boolean() || !slices || !slices->is_array())
      return fail("tensor '" + name + "' lacks dtype, shape, state or slices");
    IndexedTensor tensor{*type, *shape, state->get<bool>(), {}};
    for (const Json &slice : *slices)
      if (!readSlice(slice, tensor)) // ascending by rank, so there are no more slices than files
        return fail("slice " + std::to_string(tensor.slices.size()) + " of tensor '" + name + "' is not right");
    if (Status covers = checkCover(name, tensor); !covers)
      return covers;
    index.tensors[name] = std::move(tensor);
    return Status::ok();
  }
  bool readSlice(const Json &entry, IndexedTensor &tensor) const {
    std::optional<int64_t> rank = wholeNumber(member(entry, "rank"));
    std::optional<std::vector<int64_t>> offset = wholeNumbers(member(entry, "offset"));
    std::optional<std::vector<int64_t>> shape = wholeNumbers(member(entry, "shape"));
    size_t dims = tensor.shape.size();
    if (!rank || *rank >= static_cast<int64_t>(index.files.size()) || !offset || !shape || offset->size() != dims ||
        shape->size() != dims ||
        (!tensor.slices.empty() && tensor.slices.back().rank >= *rank))
      return false;
    IndexedSlice slice{*rank, {}};
    for (size_t d = 0; d < dims; ++d) {
      if ((*offset)[d] > tensor.shape[d] || (*shape)[d] > tensor.shape[d] - (*offset)[d])
        return false;
      slice.box.push_back({(*offset)[d], (*offset)[d] + (*shape)[d]});
    }
    tensor.slices.push_back(slice);
    return true;
  }
  /// Disjoint slices whose sizes add up to the tensor cover it exactly.
  Status checkCover(const std::string &name, const IndexedTensor &tensor) const {
    __int128 whole = 1, sum = 0;
    for (int64_t size : tensor.shape)
      if (whole *= size; whole > (__int128{1} << 62))
        return fail("tensor '" + name + "' is too large");
    for (size_t i = 0; i < tensor.slices.size(); ++i) {
      sum += elementCount(tensor.slices[i].box);
      for (size_t j = 0; j < i; ++j)
        if (elementCount(intersect(tensor.slices[i].box, tensor.slices[j].box)) > 0)
          return fail("slices " + std::to_string(j) + " and " + std::to_string(i) + " of tensor '" + name +
                      "' overlap");
    }
    if (sum != whole)
      return fail("the slices of tensor '" + name + "' hold " + std::to_string(static_cast<int64_t>(sum)) + " of " +
                  std::to_string(static_cast<int64_t>(whole)) + " elements");
    return Status::ok();
  }

  const Json &json;
  std::string path;
  CheckpointIndex index;
};

} // namespace

Result<CheckpointIndex> readIndex(const std::string &folder) {
  std::string path = (fs::path(folder) / kIndexName).string();
  std::error_code ignored;
  if (fs::is_regular_file(folder, ignored))
    return Error{ExitCode::BadFile, "'" + folder + "' is a file, not the folder of a checkpoint", ""};
  Result<std::string> content = readTextFile(path, kIndexLimit);
  if (!content) {
    if (content.error().code == ExitCode::Usage && fs::is_directory(folder, ignored)) {
      std::string help;
      for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored))
        if (fs::exists(entry.path() / kIndexName, ignored))
          help = std::max(help, "choose one in it, e.g. '" + entry.path().string() + "'");
      return Error{ExitCode::BadFile, "'" + folder + "' is no complete checkpoint: it has no " + kIndexName, help};
    }
    if (content.error().code == ExitCode::Usage)
      return Error{ExitCode::Usage, "there is no checkpoint '" + folder + "': " + content.error().message, ""};
    return content.error();
  }
  Result<Json> json = parseJsonObject(*content, "'" + path + "'");
  if (!json)
    return json.error();
  std::optional<std::string> format = text(member(*json, "format"));
  if (!format || *format != kFormat)
    return Error{ExitCode::BadFile, "'" + path + "' does not describe a checkpoint", ""};
  std::optional<int64_t> version = wholeNumber(member(*json, "version"));
  if (!version || *version != kVersion)
    return Error{ExitCode::BadFile, "'" + path + "' has format version " + (version ? std::to_string(*version) : "?") +
                                        ", this program reads " + std::to_string(kVersion), ""};
  std::optional<std::string> checksum = text(member(*json, "checksum"));
  size_t at = checksum && checksum->size() == 32 ? content->find(*checksum) : std::string::npos;
  if (at == std::string::npos)
    return Error{ExitCode::BadFile, "'" + path + "' has no checksum", ""};
  content->replace(at, 32, kNoChecksum);
  if (Checksum found = checksumOf(content->data(), content->size()); found != *checksum)
    return Error{ExitCode::BadFile, "'" + path + "' is damaged: its checksum is " + found + ", it says " + *checksum,
                 ""};
  return IndexReader(*json, path).read();
}

std::string writeState(const TrainingState &state) {
  Json json = {{"epoch", state.epoch},
               {"step", state.step},
               {"global_step", state.globalStep},
               {"dataset_position", state.datasetPosition},
               {"plan_digest", state.planDigest},
               {"extra", state.extra}};
  if (state.extra.empty())
    json["extra"] = Json::object();
  return json.dump(1) + "\n";
}

Result<TrainingState> readState(const std::string &folder, const IndexedFile &expected) {
  std::string path = (fs::path(folder) / kStateName).string();
  Result<std::string> content = readTextFile(path, kIndexLimit);
  if (!content) {
    Error error = content.error();
    error.code = ExitCode::BadFile;
    return error;
  }
  if (Checksum found = checksumOf(content->data(), content->size()); found != expected.checksum)
    return Error{ExitCode::BadFile,
                 "'" + path + "' is damaged: its checksum is " + found + ", the index says " + expected.checksum, ""};
  Result<Json> json = parseJsonObject(*content, "'" + path + "'");
  if (!json)
    return json.error();
  TrainingState state;
  auto take = [&](const char *key, int64_t &value) {
    std::optional<int64_t> number = wholeNumber(member(*json, key));
    value = number.value_or(0);
    return number.has_value();
  };
  std::optional<std::string> digest = text(member(*json, "plan_digest"));
  const Json *extra = member(*json, "extra");
  bool complete = take("epoch", state.epoch) && take("step", state.step) && take("global_step", state.globalStep) &&
                  take("dataset_position", state.datasetPosition) && digest && extra && extra->is_object();
  if (complete)
    for (auto &[key, value] : extra->items()) {
      complete = complete && value.is_string();
      if (complete)
        state.extra[key] = value.get<std::string>();
    }
  if (!complete)
    return Error{ExitCode::BadFile, "'" + path + "' is not a usable training state", ""};
  state.planDigest = *digest;
  return state;
}

} // namespace msc
