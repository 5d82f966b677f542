#include "compiler/StrategyFile.h"

#include "compiler/JsonText.h"
#include "compiler/strategies.pb.h"
#include "dialects/dist/Algebra.h"
#include "dialects/net/Pieces.h"
#include "runtime/JsonFlaw.h"
#include "runtime/MissingFile.h"
#include "runtime/ReadFile.h"
#include "runtime/plan/PlanIndex.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

namespace msc::compiler {

using Json = nlohmann::ordered_json; // keys in the order in which they are written
using ReadJson = nlohmann::json;    // which finds a key among many
using strategies::StrategyMap;

namespace {

bool isJson(const std::string &path) { return llvm::StringRef(path).ends_with_insensitive(".json"); }

Error notStrategies(const std::string &path, const std::string &why) {
  return {ExitCode::BadFile, "'" + path + "' holds no strategies: " + why, "msc compile NETWORK --strategy-save " + newFileLike(path) + " writes such a file"};
}

Error otherStage(const std::string &path, const std::string &name, const std::string &stage) {
  return notStrategies(path, "that of '" + name + "' is for stage " + stage + ", and there is stage 0 only");
}

//===-- from text -----------------------------------------------------------===//

/// "((2, 4), (4, 1))", as plans have it.
net::Strategy strategyFrom(const std::string &text) {
  net::Strategy strategy;
  for (size_t at = 0; at < text.size(); ++at)
    if (text[at] == '(' && at > 0)
      strategy.emplace_back();
    else if (std::isdigit(static_cast<unsigned char>(text[at])) && !strategy.empty()) {
      size_t end = at;
      strategy.back().push_back(std::stoll(text.substr(at), &end));
      at += end - 1;
    }
  return strategy;
}

/// Pieces, not less than 1.
std::optional<net::Strategy> strategyFrom(const ReadJson &json) {
  if (!json.is_array())
    return std::nullopt;
  net::Strategy strategy;
  for (const ReadJson &tensor : json) {
    if (!tensor.is_array())
      return std::nullopt;
    strategy.emplace_back();
    for (const ReadJson &pieces : tensor) {
      if (!pieces.is_number_integer() || pieces.get<int64_t>() < 1)
        return std::nullopt;
      strategy.back().push_back(pieces.get<int64_t>());
    }
  }
  return strategy;
}

/// The first key of an object that is none of these; empty if there is none.
std::string unknownKey(const ReadJson &json, llvm::ArrayRef<llvm::StringRef> known) {
  if (json.is_object())
    for (const auto &entry : json.items())
      if (!llvm::is_contained(known, entry.key()))
        return entry.key();
  return "";
}

constexpr const char *wrongDevices = "'device_num' has to be a whole number from 1 to 1048576";

/// How parameters lie is not read, but it is no other thing.
bool isLayouts(const ReadJson &json) {
  return json.is_object() && std::ranges::all_of(json, [](const ReadJson &layout) { return layout.is_object(); });
}

/// 0 if the file does not say; nullopt if it says something else.
std::optional<int64_t> devicesOf(const ReadJson &json) {
  auto found = json.find("device_num");
  if (found == json.end())
    return 0;
  if (!found->is_number_integer() || *found < 1 || *found > net::mostDevices)
    return std::nullopt;
  return found->get<int64_t>();
}

Result<StrategyFile> fromJson(const std::string &path, const std::string &text) {
  if (std::optional<JsonFlaw> flaw = findJsonFlaw(text)) {
    if (flaw->kind == JsonFlaw::Kind::KeyTwice)
      return notStrategies(path, "'" + flaw->key + "' stands there twice, again in line " + std::to_string(flaw->line));
    return notStrategies(path, "it is not JSON from line " + std::to_string(flaw->line) + ", column " +
                                   std::to_string(flaw->column) + " on");
  }
  const ReadJson json = ReadJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("parallel_strategy_item"))
    return notStrategies(path, "'parallel_strategy_item' is missing");
  if (!json["parallel_strategy_item"].is_object())
    return notStrategies(path, "'parallel_strategy_item' has to be an object with a member for each operator");
  if (std::string key = unknownKey(json, {"current_stage", "device_num", "parallel_strategy_item", "parallel_layout_item"}); !key.empty())
    return notStrategies(path, "'" + key + "' is unknown, expected current_stage, device_num, parallel_strategy_item, parallel_layout_item");
  if (json.contains("current_stage") && json["current_stage"] != 0)
    return notStrategies(path, "they are for stage " + json["current_stage"].dump() + ", and there is stage 0 only");
  const std::optional<int64_t> devices = devicesOf(json);
  if (!devices)
    return notStrategies(path, wrongDevices);
  if (json.contains("parallel_layout_item") && !isLayouts(json["parallel_layout_item"]))
    return notStrategies(path, "'parallel_layout_item' has to be an object with an object for each parameter");
  KeptStrategies kept;
  for (const auto &[name, item] : json["parallel_strategy_item"].items()) {
    if (std::string key = unknownKey(item, {"stage", "parallel_strategy", "out_strategy"}); !key.empty())
      return notStrategies(path, "'" + key + "' of '" + name + "' is unknown, expected stage, parallel_strategy, out_strategy");
    if (item.is_object() && item.contains("stage") && item["stage"] != 0)
      return otherStage(path, name, item["stage"].dump());
    bool hasIn = item.is_object() && item.contains("parallel_strategy");
    std::optional<net::Strategy> in = hasIn ? strategyFrom(item["parallel_strategy"]) : std::nullopt;
    bool hasOut = hasIn && item.contains("out_strategy");
    std::optional<net::Strategy> out = hasOut ? strategyFrom(item["out_strategy"]) : net::Strategy();
    if (!in || !out)
      return notStrategies(path, "that of '" + name + "' has to be lists of pieces from 1 up, one per operand");
    kept[name] = {*in, *out};
  }
  if (kept.empty())
    return notStrategies(path, "it names no operator");
  return StrategyFile{std::move(kept), *devices};
}

Result<StrategyFile> fromProto(const std::string &path, const std::string &bytes) {
  google::protobuf::LogSilencer silencer; // what is wrong is said below, and names the file
  StrategyMap map;
  if (!map.ParseFromString(bytes)) {
    if (llvm::StringRef(bytes).ltrim().starts_with("{"))
      return notStrategies(path, "it looks like JSON, and the name of such a file ends in .json");
    return notStrategies(path, "it is damaged, or another kind of file");
  }
  if (map.current_stage() != 0)
    return notStrategies(path, "they are for stage " + std::to_string(map.current_stage()) + ", and there is stage 0 only");
  if (map.parallel_strategy_item().empty())
    return notStrategies(path, "it names no operator");
  if (map.operator_num() > map.parallel_strategy_item().size())
    return notStrategies(path, "it is cut off, " + std::to_string(map.parallel_strategy_item().size()) + " of " + std::to_string(map.operator_num()) + " operators are there");
  if (map.layout_num() > map.parallel_layout_item().size())
    return notStrategies(path, "it is cut off, " + std::to_string(map.parallel_layout_item().size()) + " of " + std::to_string(map.layout_num()) + " parameters are there");
  if (map.device_num() > net::mostDevices)
    return notStrategies(path, wrongDevices);
  strategies::StrategyEntries entries;
  std::set<std::string> names;
  if (entries.ParseFromString(bytes))
    for (const auto &entry : entries.parallel_strategy_item())
      if (!names.insert(entry.key()).second)
        return notStrategies(path, "'" + entry.key() + "' stands there twice");
  KeptStrategies kept;
  for (const auto &[name, item] : map.parallel_strategy_item()) {
    KeptStrategy &entry = kept[name];
    if (item.stage() != 0)
      return otherStage(path, name, std::to_string(item.stage()));
    for (auto [from, to] : {std::pair(&item.parallel_strategy(), &entry.in), std::pair(&item.out_strategy(), &entry.out)})
      for (const auto &tensor : *from) {
        to->emplace_back(tensor.dim().begin(), tensor.dim().end());
        for (int64_t pieces : tensor.dim())
          if (pieces < 1)
            return notStrategies(path, "that of '" + name + "' has " + std::to_string(pieces) + " pieces");
      }
  }
  return StrategyFile{std::move(kept), map.device_num()};
}

//===-- to text -------------------------------------------------------------===//

/// Axes counted from the right; a dimension that several axes cut is told by the most minor one, as MindSpore merges them.
std::vector<int64_t> tensorMapOf(const dist::TensorLayout &layout) {
  std::vector<int64_t> map;
  for (const std::vector<int64_t> &axes : layout.tensorMap)
    map.push_back(axes.empty() ? -1 : axes.back());
  return map;
}

StrategyMap mapOf(const plan::Plan &plan) {
  StrategyMap map;
  for (const plan::OperatorNote &note : plan.operators()) {
    strategies::Strategy &item = (*map.mutable_parallel_strategy_item())[note.name()];
    item.Clear();
    for (const std::vector<int64_t> &tensor : strategyFrom(note.in_strategy()))
      item.add_parallel_strategy()->mutable_dim()->Assign(tensor.begin(), tensor.end());
    for (const std::vector<int64_t> &tensor : strategyFrom(note.out_strategy()))
      item.add_out_strategy()->mutable_dim()->Assign(tensor.begin(), tensor.end());
  }
  for (const plan::Parameter &parameter : plan.parameters()) {
    const plan::Buffer &buffer = plan.buffers(static_cast<int>(parameter.buffer()));
    dist::TensorLayout layout = dist::tensorLayout(toSharding(plan.shardings(static_cast<int>(buffer.sharding()))));
    strategies::Layout &item = (*map.mutable_parallel_layout_item())[parameter.name()];
    item.mutable_dev_matrix()->Assign(layout.deviceMatrix.begin(), layout.deviceMatrix.end());
    std::vector<int64_t> axes = tensorMapOf(layout);
    item.mutable_tensor_map()->Assign(axes.begin(), axes.end());
  }
  return map;
}

/// Operators in the order of the plan.
std::string jsonOf(const plan::Plan &plan) {
  StrategyMap map = mapOf(plan);
  auto tensors = [](const auto &list) {
    Json json = Json::array();
    for (const auto &tensor : list)
      json.push_back(std::vector<int64_t>(tensor.dim().begin(), tensor.dim().end()));
    return json;
  };
  Json items = Json::object(), layouts = Json::object();
  for (const plan::OperatorNote &note : plan.operators()) {
    const strategies::Strategy &item = map.parallel_strategy_item().at(note.name());
    items[note.name()] = {{"stage", 0}, {"parallel_strategy", tensors(item.parallel_strategy())}};
    if (item.out_strategy_size() > 0)
      items[note.name()]["out_strategy"] = tensors(item.out_strategy());
  }
  for (const plan::Parameter &parameter : plan.parameters()) {
    const strategies::Layout &item = map.parallel_layout_item().at(parameter.name());
    layouts[parameter.name()] = {{"dev_matrix", std::vector<int64_t>(item.dev_matrix().begin(), item.dev_matrix().end())},
                                 {"tensor_map", std::vector<int64_t>(item.tensor_map().begin(), item.tensor_map().end())}};
  }
  return jsonText({{"current_stage", 0}, {"device_num", plan.devices()}, {"parallel_strategy_item", items}, {"parallel_layout_item", layouts}});
}

/// What the file says of itself stands in front, so that a file that was cut off is known.
std::string protoOf(const plan::Plan &plan) {
  const StrategyMap map = mapOf(plan);
  StrategyMap head;
  head.set_device_num(plan.devices());
  head.set_layout_num(static_cast<uint32_t>(map.parallel_layout_item().size()));
  head.set_operator_num(static_cast<uint32_t>(map.parallel_strategy_item().size()));
  std::string bytes = head.SerializeAsString();
  {
    google::protobuf::io::StringOutputStream stream(&bytes); // appends
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    map.SerializeToCodedStream(&out);
  }
  return bytes;
}

} // namespace

std::string newFileLike(const std::string &path) { return isJson(path) ? "new.json" : "new.strategies"; }

Result<StrategyFile> readStrategies(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return notStrategies(path, "it is a folder");
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return notStrategies(path, "it is a pipe or a device");
  if (!std::filesystem::is_regular_file(path, ignored))
    return missingFile(path);
  const Result<std::string> text = readFile(path);
  return !text ? text.error() : isJson(path) ? fromJson(path, *text) : fromProto(path, *text);
}

Result<std::string> strategiesText(const std::string &path, const plan::Plan &plan) {
  std::map<std::string, const plan::OperatorNote *> named;
  for (const plan::OperatorNote &note : plan.operators()) {
    const plan::OperatorNote &first = *named.try_emplace(note.name(), &note).first->second;
    if (first.in_strategy() != note.in_strategy() || first.out_strategy() != note.out_strategy())
      return Error{ExitCode::Failed,
                   "'" + path + "' cannot tell operators named '" + note.name() + "' apart: " + first.in_strategy() + " (" +
                       placeOf(plan, first.location()) + ") and " + note.in_strategy() + " (" + placeOf(plan, note.location()) + ")",
                   "give each a name of its own: @ \"NAME\""};
  }
  return isJson(path) ? jsonOf(plan) : protoOf(plan);
}

} // namespace msc::compiler
