// Strict reading of JSON that comes from files: no exceptions, no duplicate keys, numbers in range.
#pragma once

#include "runtime/Status.h"

#include <nlohmann/json.hpp>

namespace msc {

using Json = nlohmann::ordered_json;

/// A JSON object, or why it is none ("at byte 17"); duplicate keys are refused.
Result<Json> parseJsonObject(const std::string &text, const std::string &what);

/// A member that is a non-negative whole number below 2^62; null if it is missing or anything else.
const Json *member(const Json &object, const char *key);
std::optional<int64_t> wholeNumber(const Json *value);
std::optional<std::string> text(const Json *value);
/// A list of such numbers.
std::optional<std::vector<int64_t>> wholeNumbers(const Json *value);

} // namespace msc
