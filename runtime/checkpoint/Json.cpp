#include "runtime/checkpoint/Json.h"

#include <unordered_set>
#include <vector>

namespace msc {

namespace {
/// Keys that stand twice in an object, and brackets within brackets, as a text is read. (A callback of Json::parse looks through all elements of an
/// array at the end of each.)
class Watch final : public nlohmann::json_sax<Json> {
public:
  static constexpr size_t mostLevels = 32;
  std::string repeated;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override {
    keys.emplace_back();
    return enter();
  }
  bool key(string_t &name) override {
    if (!keys.back().insert(name).second)
      repeated = name;
    return true;
  }
  bool end_object() override {
    keys.pop_back();
    --depth;
    return true;
  }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override {
    --depth;
    return true;
  }
  bool parse_error(size_t, const std::string &, const nlohmann::detail::exception &) override { return false; }

private:
  bool enter() { return ++depth < mostLevels; }

  std::vector<std::unordered_set<std::string>> keys; ///< of the objects that are open
  size_t depth = 0;
};
} // namespace

Result<Json> parseJsonObject(const std::string &text, const std::string &what) {
  auto bad = [&](const std::string &why) { return Error{ExitCode::BadFile, what + " " + why, ""}; };
  Watch watch;
  if (!Json::sax_parse(text, &watch))
    return bad("is not valid JSON");
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return bad("is not valid JSON");
  if (!json.is_object())
    return bad("is not a JSON object");
  if (!watch.repeated.empty())
    return bad("has the key '" + watch.repeated + "' twice");
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
