#include "runtime/checkpoint/Json.h"

#include <set>

namespace msc {

Result<Json> parseJsonObject(const std::string &text, const std::string &what) {
  auto bad = [&](const std::string &why) { return Error{ExitCode::BadFile, what + " " + why, ""}; };
  std::vector<std::set<std::string>> keys;
  std::string repeated;
  size_t deepest = 0;
  auto watch = [&](int depth, Json::parse_event_t event, Json &value) {
    deepest = std::max(deepest, static_cast<size_t>(depth));
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end && !keys.empty())
      keys.pop_back();
    else if (event == Json::parse_event_t::key && !keys.empty() && !keys.back().insert(value.get<std::string>()).second)
      repeated = value.get<std::string>();
    return deepest < 32;
  };
  Json json = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (json.is_discarded() || deepest >= 32)
    return bad("is not valid JSON");
  if (!json.is_object())
    return bad("is not a JSON object");
  if (!repeated.empty())
    return bad("has the key '" + repeated + "' twice");
  return json;
}

const Json *member(const Json &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<int64_t> wholeNumber(const Json *value) {
  if (!value || !value->is_number_unsigned() || value->get<uint64_t>() >= (uint64_t{1} << 62))
    return std::nullopt;
  return static_cast<int64_t>(value->get<uint64_t>());
}

std::optional<std::string> text(const Json *value) {
  if (!value || !value->is_string())
    return std::nullopt;
  return value->get<std::string>();
}

std::optional<std::vector<int64_t>> wholeNumbers(const Json *value) {
  if (!value || !value->is_array())
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json &entry : *value) {
    std::optional<int64_t> number = wholeNumber(&entry);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

} // namespace msc
