#include "compiler/JsonText.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace msc::compiler {

namespace {

using Json = nlohmann::ordered_json;

std::string leafText(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool hasObjects(const Json &json) {
  return json.is_object() ? !json.empty() : json.is_array() && std::ranges::any_of(json, hasObjects);
}

void write(const Json &json, size_t indent, std::string &text) {
  if (!json.is_structured() || json.empty()) {
    text += leafText(json);
    return;
  }
  const bool hasLines = hasObjects(json);
  const std::string between = hasLines ? "\n" + std::string(indent + 2, ' ') : "";
  text += json.is_object() ? '{' : '[';
  bool isFirst = true;
  for (auto member = json.begin(); member != json.end(); ++member) {
    text += isFirst ? between : hasLines ? "," + between : ", ";
    isFirst = false;
    if (json.is_object())
      text += leafText(member.key()) + ": ";
    write(*member, indent + 2, text);
  }
  if (hasLines)
    text += "\n" + std::string(indent, ' ');
  text += json.is_object() ? '}' : ']';
}

} // namespace

std::string jsonText(const Json &json) {
  std::string text;
  write(json, 0, text);
  return text + "\n";
}

} // namespace msc::compiler
