// JSON for people and programs: members and objects have lines of their own, lists of numbers or words have one.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace msc::compiler {

/// Ends in a line break. Text that is no UTF-8 is replaced.
std::string jsonText(const nlohmann::ordered_json &json);

} // namespace msc::compiler
