// What is wrong with a JSON text that a person wrote, and where.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace msc {

struct JsonFlaw {
  enum class Kind { Syntax, NumberTooLarge, KeyTwice } kind;
  size_t line, column; ///< from 1, in bytes; where the text stops being JSON, or where the number or the key ends
  std::string key;     ///< of KeyTwice
};

/// The first flaw of the text. Libraries take the last of several members with one key, which nobody means.
inline std::optional<JsonFlaw> findJsonFlaw(const std::string &text) {
  /// Says how far the parser has read.
  struct Cursor {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char *;
    using reference = const char &;

    const char *at;
    const char **seen;
    reference operator*() const { return *at; }
    Cursor &operator++() {
      *seen = ++at;
      return *this;
    }
    bool operator==(const Cursor &other) const { return at == other.at; }
    bool operator!=(const Cursor &other) const { return at != other.at; }
  };
  struct Handler {
    const std::string &text;
    const char *seen;
    std::optional<JsonFlaw> flaw;
    std::vector<std::set<std::string>> keys;

    bool null() { return true; }
    bool boolean(bool) { return true; }
    bool number_integer(nlohmann::json::number_integer_t) { return true; }
    bool number_unsigned(nlohmann::json::number_unsigned_t) { return true; }
    bool number_float(nlohmann::json::number_float_t, const std::string &) { return true; }
    bool string(std::string &) { return true; }
    bool binary(nlohmann::json::binary_t &) { return true; }
    bool start_array(size_t) { return true; }
    bool end_array() { return true; }
    bool start_object(size_t) {
      keys.emplace_back();
      return true;
    }
    bool end_object() {
      keys.pop_back();
      return true;
    }
    bool key(std::string &name) {
      if (keys.back().insert(name).second)
        return true;
      return isFlaw(JsonFlaw::Kind::KeyTwice, static_cast<size_t>(seen - text.data()), name);
    }
    bool parse_error(size_t position, const std::string &, const nlohmann::detail::exception &error) {
      constexpr int numberOverflow = 406;
      return isFlaw(error.id == numberOverflow ? JsonFlaw::Kind::NumberTooLarge : JsonFlaw::Kind::Syntax, position, "");
    }
    /// At the character with that number, from 1.
    bool isFlaw(JsonFlaw::Kind kind, size_t position, std::string key) {
      const std::string before = text.substr(0, position == 0 ? 0 : position - 1);
      const size_t newline = before.rfind('\n');
      flaw = {kind, 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n')),
              newline == std::string::npos ? before.size() + 1 : before.size() - newline, std::move(key)};
      return false;
    }
  };
  const char *begin = text.data(), *end = begin + text.size();
  Handler handler{text, begin, std::nullopt, {}};
  nlohmann::json::sax_parse(Cursor{begin, &handler.seen}, Cursor{end, &handler.seen}, &handler);
  return std::move(handler.flaw);
}

} // namespace msc
