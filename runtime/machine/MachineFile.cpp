#include "runtime/machine/MachineFile.h"

#include "runtime/JsonFlaw.h"
#include "runtime/Nearest.h"
#include "runtime/ReadFile.h"
#include "runtime/machine/Presets.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace msc {

using Json = nlohmann::ordered_json;

namespace {

/// What a number may be. The bounds are far from all machines; within them no sum of times overflows.
struct Range {
  double least, most;
};
constexpr Range times{0, 1e12};         ///< microseconds
constexpr Range timesPerByte{0, 1e9};   ///< microseconds
constexpr Range rates{1e-9, 1e30};      ///< per microsecond
constexpr Range shares{0, 1e6};
constexpr Range sizes{0, 1e18};         ///< bytes
constexpr int64_t mostRanks = int64_t{1} << 30;

struct Flaw {
  std::string what;
  std::string help; ///< empty: no repair but that of all files
};

/// Reads members of an object, which lies at `place` in the file; the first flaw stays.
class Reader {
public:
  explicit Reader(Flaw &flaw, std::string place = "") : flaw(flaw), place(std::move(place)) {}

  /// Reads what lies below `key`, or below an element of the list of that name.
  Reader below(const std::string &key) const { return Reader(flaw, pathOf(key)); }
  Reader below(const char *list, size_t index) const { return Reader(flaw, fmt::format("{}[{}]", pathOf(list), index)); }

  double number(const Json &object, const char *key, Range range) {
    if (!object.is_object() || !object.contains(key) || !object[key].is_number()) {
      note(fmt::format("'{}' is missing or no number", pathOf(key)));
      return 1;
    }
    double value = object[key].get<double>();
    if (value >= range.least && value <= range.most)
      return value;
    note(fmt::format("'{}' is {}, expected a number from {:g} to {:g}", pathOf(key), object[key].dump(), range.least, range.most));
    return 1;
  }

  double numberOrZero(const Json &object, const char *key, Range range) {
    return object.is_object() && object.contains(key) ? number(object, key, range) : 0;
  }

  /// Bytes of which there are some; 0: unknown.
  double bytesOrZero(const Json &object, const char *key) {
    if (object.is_object() && object.contains(key) && object[key].is_string()) {
      note(fmt::format("'{}' is {}, expected a number of bytes", pathOf(key), object[key].dump(-1, ' ', false, Json::error_handler_t::replace)));
      return 0;
    }
    double bytes = numberOrZero(object, key, sizes);
    if (bytes > 0 && bytes < 1)
      note(fmt::format("'{}' is {}, expected 0 or a number from 1 to {:g}", pathOf(key), object[key].dump(), sizes.most),
           fmt::format("write bytes, or leave out '{}' if they are unknown", key));
    return bytes;
  }

  /// `help`: what to do about one that is too small.
  int64_t wholeNumber(const Json &object, const char *key, int64_t least = 0, const std::string &help = "") {
    if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) {
      note(fmt::format("'{}' is missing or no whole number", pathOf(key)));
      return 1;
    }
    if (object[key].is_number_unsigned() && object[key].get<uint64_t>() >= static_cast<uint64_t>(least) && object[key].get<uint64_t>() <= mostRanks)
      return object[key].get<int64_t>();
    note(fmt::format("'{}' is {}, expected a number from {} to {}", pathOf(key), object[key].dump(), least, mostRanks), help);
    return 1;
  }

  std::string text(const Json &object, const char *key) {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string()) {
      note(fmt::format("'{}' is missing or no text", pathOf(key)));
      return "";
    }
    std::string text = object[key].get<std::string>();
    if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; })) // they would go to terminals
      note(fmt::format("'{}' has characters that cannot be printed", pathOf(key)));
    return text;
  }

  std::string name(const Json &object) {
    std::string name = text(object, "name");
    if (name.empty())
      note(fmt::format("'{}' is empty", pathOf("name")), "write a name: plans and reports show it");
    return name;
  }

  bool yesOrNo(const Json &object, const char *key) {
    if (!object.is_object() || !object.contains(key))
      return false;
    if (!object[key].is_boolean())
      note(fmt::format("'{}' is neither true nor false", pathOf(key)));
    return object[key].is_boolean() && object[key].get<bool>();
  }

  /// The place of a word among the first `count` names; 0 where it is missing.
  template <typename NameOf> size_t word(const Json &object, const char *key, size_t count, NameOf nameOf) {
    if (!object.is_object() || !object.contains(key))
      return 0;
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i)
      names.push_back(nameOf(i));
    size_t at = std::find(names.begin(), names.end(), text(object, key)) - names.begin();
    if (at == count)
      note(fmt::format("'{}' is {}, expected {}", pathOf(key), object[key].dump(), fmt::join(names, ", ")));
    return at % count;
  }

  /// A misspelt key would leave a default in its place; it is told in front of the key that is missing then.
  void onlyKeys(const Json &object, std::initializer_list<std::string_view> known) {
    if (!object.is_object())
      return;
    std::vector<std::string_view> open(known);
    std::erase_if(open, [&](std::string_view key) { return object.contains(key); });
    for (const auto &entry : object.items())
      if (std::find(known.begin(), known.end(), entry.key()) == known.end()) {
        const std::string near = nearest(entry.key(), open);
        note(fmt::format("'{}' is unknown, expected {}", pathOf(entry.key()), fmt::join(known, ", ")), near.empty() ? "" : "did you mean '" + near + "'?");
      }
  }

  /// "levels[0].collectives.AllReduce.alpha_us"
  std::string pathOf(const std::string &key) const { return place.empty() ? key : place + "." + key; }

  /// That of the object itself.
  const std::string &path() const { return place; }

  void note(const std::string &what, const std::string &help = "") {
    if (flaw.what.empty())
      flaw = {what, help};
  }

private:
  Flaw &flaw;
  std::string place;
};

LinkLevel readLevel(const Json &json, Reader reader) {
  LinkLevel level;
  if (!json.is_object()) {
    reader.note(fmt::format("'{}' is missing or no object", reader.path()));
    return level;
  }
  reader.onlyKeys(json, {"name", "ranks", "staged", "collectives"});
  level.name = reader.name(json);
  level.ranks = reader.wholeNumber(json, "ranks");
  level.isStaged = reader.yesOrNo(json, "staged");
  if (!json.contains("collectives") || !json["collectives"].is_object()) {
    reader.note(fmt::format("'{}' is missing or no object", reader.pathOf("collectives")));
    return level;
  }
  const Json &collectives = json["collectives"];
  Reader ofCollectives = reader.below("collectives");
  ofCollectives.onlyKeys(collectives, {moveKindName(MoveKind::AllReduce), moveKindName(MoveKind::ReduceScatter),
                                       moveKindName(MoveKind::AllGather), moveKindName(MoveKind::AlltoAll),
                                       moveKindName(MoveKind::CollectivePermute), moveKindName(MoveKind::Exchange)});
  for (size_t kind = 1; kind < moveKinds; ++kind) {
    const char *name = moveKindName(static_cast<MoveKind>(kind));
    if (!collectives.contains(name)) {
      reader.note(fmt::format("'{}' is missing or no object", ofCollectives.pathOf(name)));
      continue;
    }
    const Json &cost = collectives[name];
    Reader ofCost = ofCollectives.below(name);
    ofCost.onlyKeys(cost, {"alpha_us", "hop_us", "beta_us_per_byte", "own_share", "cache_bytes", "beyond_cache_us_per_byte", "algorithm"});
    level.costs[kind] = {.alphaUs = ofCost.number(cost, "alpha_us", times),
                         .hopUs = ofCost.number(cost, "hop_us", times),
                         .betaUsPerByte = ofCost.number(cost, "beta_us_per_byte", timesPerByte),
                         .ownShare = ofCost.numberOrZero(cost, "own_share", shares),
                         .cacheBytes = ofCost.numberOrZero(cost, "cache_bytes", sizes),
                         .beyondCacheUsPerByte = ofCost.numberOrZero(cost, "beyond_cache_us_per_byte", timesPerByte)};
    // A switch reduces and copies; it does nothing for those who send each other different elements.
    bool maySwitch = static_cast<MoveKind>(kind) <= MoveKind::AllGather;
    level.costs[kind].algorithm = static_cast<CollectiveAlgorithm>(
        ofCost.word(cost, "algorithm", maySwitch ? collectiveAlgorithms : collectiveAlgorithms - 1,
                    [](size_t i) { return collectiveAlgorithmName(static_cast<CollectiveAlgorithm>(i)); }));
  }
  return level;
}

/// Peaks by what a device computes in; one number is that of f32.
void readPeaks(const Json &json, Reader &reader, MachineModel &machine) {
  constexpr const char *key = "flops_per_us";
  auto &peaks = machine.flopsPerUs;
  bool isObject = json.contains(key) && json[key].is_object();
  Reader ofPeaks = reader.below(key);
  if (isObject)
    ofPeaks.onlyKeys(json[key], {"f32", "f64", "tf32", "bf16", "f16"});
  double f32 = isObject ? ofPeaks.number(json[key], "f32", rates) : reader.number(json, key, rates);
  peaks.fill(f32);
  peaks[static_cast<size_t>(Arithmetic::F64)] = f32 / 2;
  if (isObject) {
    for (size_t i = 0; i < arithmetics; ++i)
      if (const char *name = arithmeticName(static_cast<Arithmetic>(i)); json[key].contains(name))
        peaks[i] = ofPeaks.number(json[key], name, rates);
  }
  constexpr Arithmetic forF32[] = {Arithmetic::F32, Arithmetic::TF32};
  machine.productsOfF32 =
      forF32[reader.word(json, "products_of_f32", 2, [&](size_t i) { return arithmeticName(forF32[i]); })];
}

/// The model that `text` describes; `source` names it in messages.
Result<MachineModel> parse(const std::string &text, const std::string &source) {
  constexpr const char *kept = "'msc machine h100x8' prints a file of this kind, 'msrun --calibrate machine.json' measures this machine and writes one";
  if (std::optional<JsonFlaw> found = findJsonFlaw(text)) {
    auto isWrong = [&](const std::string &what) {
      return Error{ExitCode::BadFile, fmt::format("machine file '{}', line {}, column {}: {}", source, found->line, found->column, what), kept};
    };
    switch (found->kind) {
    case JsonFlaw::Kind::NumberTooLarge: // 1e999
      return isWrong("this number is too large");
    case JsonFlaw::Kind::KeyTwice:
      return isWrong(fmt::format("an object has the key '{}' twice", found->key));
    case JsonFlaw::Kind::Syntax:
      return Error{ExitCode::BadFile,
                   fmt::format("machine file '{}' is no JSON object from line {}, column {} on", source, found->line, found->column),
                   kept};
    }
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Flaw flaw;
  Reader reader(flaw);
  if (!json.is_object())
    return Error{ExitCode::BadFile, fmt::format("machine file '{}' is no JSON object", source), kept};
  MachineModel machine;
  reader.onlyKeys(json, {"$schema", "name", "source", "measured_ranks", "devices", "flops_per_us", "products_of_f32",
                         "memory_bytes", "memory_bytes_per_us", "launch_us", "overlap", "levels"});
  machine.name = reader.name(json);
  machine.source = reader.text(json, "source");
  machine.measuredRanks = json.contains("measured_ranks") ? reader.wholeNumber(json, "measured_ranks") : 0;
  machine.devices = json.contains("devices") ? reader.wholeNumber(json, "devices", 1, "leave out 'devices' if the machine has any number of them") : 0;
  readPeaks(json, reader, machine);
  machine.memoryBytes = reader.bytesOrZero(json, "memory_bytes");
  machine.memoryBytesPerUs = reader.number(json, "memory_bytes_per_us", rates);
  machine.launchUs = reader.number(json, "launch_us", times);
  machine.overlaps = reader.yesOrNo(json, "overlap");
  if (!json.contains("levels") || !json["levels"].is_array() || json["levels"].empty())
    reader.note("'levels' is missing or empty");
  else
    for (const Json &level : json["levels"])
      machine.levels.push_back(readLevel(level, reader.below("levels", machine.levels.size())));
  if (!machine.levels.empty() && machine.levels.back().ranks != 0 && machine.devices > machine.levels.back().ranks)
    reader.note(fmt::format("the last level has units of {} ranks, but there are {} devices", machine.levels.back().ranks,
                            machine.devices));
  for (size_t i = 1; i < machine.levels.size(); ++i) {
    int64_t inner = machine.levels[i - 1].ranks, outer = machine.levels[i].ranks;
    if (inner == 0)
      reader.note("only the last level may have 0 ranks, which means any number");
    else if (outer % inner != 0 || outer == inner)
      reader.note(fmt::format("units of {} ranks do not consist of units of {}", outer, inner));
  }
  if (!flaw.what.empty())
    return Error{ExitCode::BadFile, fmt::format("machine file '{}': {}", source, flaw.what), flaw.help.empty() ? kept : flaw.help};
  if (machine.devices == 0)
    machine.devices = machine.levels.back().ranks; // there are no links beyond the last level
  return machine;
}

} // namespace

Result<MachineModel> readMachine(const std::string &nameOrPath) {
  if (std::optional<PresetChoice> preset = findPreset(nameOrPath)) {
    Result<MachineModel> machine = parse(preset->text, nameOrPath);
    if (machine)
      narrowTo(*preset, *machine);
    return machine;
  }
  std::error_code ignored;
  if (!std::filesystem::exists(nameOrPath, ignored)) {
    std::string near = presetNear(nameOrPath);
    if (near.empty())
      near = nearest(nameOrPath, machinePresets());
    return Error{ExitCode::Usage, fmt::format("there is no machine '{}' and no file of that name", nameOrPath),
                 near.empty() ? fmt::format("use {}, or the path of a machine file", presetWords())
                              : "did you mean '" + near + "'?"};
  }
  if (!std::filesystem::is_regular_file(nameOrPath, ignored)) // opening a pipe would wait for its writer
    return Error{ExitCode::Usage, fmt::format("'{}' is not a file", nameOrPath), "name a file"};
  const Result<std::string> text = readFile(nameOrPath);
  return text ? parse(*text, nameOrPath) : text.error();
}

const MachineModel &MachineModel::cpuLocal() {
  static const MachineModel model = *readMachine("cpu-local");
  return model;
}

std::string machineJson(const MachineModel &machine) {
  Json json{{"name", machine.name},
            {"source", machine.source}};
  if (machine.measuredRanks != 0)
    json["measured_ranks"] = machine.measuredRanks;
  if (machine.devices != 0)
    json["devices"] = machine.devices;
  Json &peaks = json["flops_per_us"];
  double f32 = machine.flopsPerUs[static_cast<size_t>(Arithmetic::F32)];
  for (size_t i = 0; i < arithmetics; ++i)
    if (auto type = static_cast<Arithmetic>(i);
        type == Arithmetic::F32 || machine.flopsPerUs[i] != (type == Arithmetic::F64 ? f32 / 2 : f32))
      peaks[arithmeticName(type)] = machine.flopsPerUs[i];
  if (machine.productsOfF32 != Arithmetic::F32)
    json["products_of_f32"] = arithmeticName(machine.productsOfF32);
  if (machine.memoryBytes != 0)
    json["memory_bytes"] = machine.memoryBytes;
  json.update({{"memory_bytes_per_us", machine.memoryBytesPerUs},
               {"launch_us", machine.launchUs},
               {"overlap", machine.overlaps},
               {"levels", Json::array()}});
  for (const LinkLevel &level : machine.levels) {
    Json collectives = Json::object();
    for (size_t kind = 1; kind < moveKinds; ++kind) {
      const LinkCost &cost = level.costs[kind];
      Json &entry = collectives[moveKindName(static_cast<MoveKind>(kind))];
      entry = {{"alpha_us", cost.alphaUs}, {"hop_us", cost.hopUs}, {"beta_us_per_byte", cost.betaUsPerByte}};
      for (auto [key, value] : {std::pair("own_share", cost.ownShare), std::pair("cache_bytes", cost.cacheBytes),
                                std::pair("beyond_cache_us_per_byte", cost.beyondCacheUsPerByte)})
        if (value != 0)
          entry[key] = value;
      if (cost.algorithm != CollectiveAlgorithm::Ring)
        entry["algorithm"] = collectiveAlgorithmName(cost.algorithm);
    }
    Json &made = json["levels"].emplace_back(Json{{"name", level.name}, {"ranks", level.ranks}});
    if (level.isStaged)
      made["staged"] = true;
    made["collectives"] = collectives;
  }
  return json.dump(2) + "\n";
}

} // namespace msc
