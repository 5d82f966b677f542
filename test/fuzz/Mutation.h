// Random changes to bytes, for the fuzzers that run among the tests: what libFuzzer does, without its instrumentation.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace msc::test {

using Random = std::mt19937_64;

/// A number that programs trip over, as text.
inline std::string trickyNumber(Random &random) {
  static constexpr const char *numbers[] = {"0", "1", "2", "-1", "255", "256", "65536", "2147483647", "4294967296",
                                            "4611686018427387904", "9223372036854775807", "18446744073709551615",
                                            "99999999999999999999999", "1e400", "0.5", "007"};
  return numbers[random() % std::size(numbers)];
}

/// Replaces the number around or behind a random place by another.
inline void changeNumber(std::string &text, Random &random) {
  auto isDigit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  auto begin = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(random() % text.size()), text.end(), isDigit);
  auto end = std::find_if_not(begin, text.end(), isDigit);
  text.replace(begin, end, trickyNumber(random));
}

/// One change: bits, bytes, ranges that go, come twice or move, numbers, an early end.
inline void mutate(std::string &text, Random &random) {
  if (text.empty()) {
    text.push_back(static_cast<char>(random()));
    return;
  }
  size_t at = random() % text.size(), length = std::min<size_t>(text.size() - at, 1 + random() % 16);
  switch (random() % 9) {
  case 0: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8)); break;
  case 1: text[at] = static_cast<char>(random()); break;
  case 2: text.insert(at, 1, static_cast<char>(random())); break;
  case 3: text.erase(at, length); break;
  case 4: text.insert(random() % text.size(), text.substr(at, length)); break;
  case 5: text.resize(at); break;
  case 6: std::swap(text[at], text[random() % text.size()]); break;
  default: changeNumber(text, random); break;
  }
}

} // namespace msc::test
