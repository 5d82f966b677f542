#include "runtime/plan/PtxText.h"

#include <charconv>
#include <fmt/format.h>

namespace msc {
namespace {

template <typename... Args> Error refused(fmt::format_string<Args...> format, Args &&...args) {
  return Error{ExitCode::BadFile, fmt::format(format, std::forward<Args>(args)...), ""};
}

/// Takes words from the front of a line: letters, digits, and what names and directives are made of.
std::string_view nextWord(std::string_view &line) {
  auto inWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$' || c == '%'; };
  size_t begin = 0;
  while (begin < line.size() && !inWord(line[begin]))
    ++begin;
  size_t end = begin;
  while (end < line.size() && inWord(line[end]))
    ++end;
  std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

uint32_t numberIn(std::string_view word) {
  uint32_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

} // namespace

Result<PtxText> readPtx(std::string_view text) {
  PtxText result;
  PtxText::Entry *entry = nullptr;
  std::string target;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string_view directive = nextWord(line);
    if (directive == ".visible" || directive == ".extern" || directive == ".weak") {
      if (directive != ".visible")
        return refused("it imports '{}'", line);
      directive = nextWord(line);
    }
    if (directive == ".target")
      target = nextWord(line);
    if (directive == ".entry") {
      std::string name(nextWord(line));
      auto [known, isNew] = result.entries.try_emplace(name);
      if (!isNew)
        return refused("it defines '{}' twice", name);
      entry = &known->second;
    }
    if (directive == ".param" && entry) {
      if (std::string_view type = nextWord(line); type != ".u64")
        return refused("a parameter has the type '{}'", type);
      ++entry->parameters;
    }
    if (directive == ".reqntid" && entry)
      entry->block = numberIn(nextWord(line));
    if (directive.empty() && line.empty())
      continue;
  }
  if (target.empty())
    return refused("it is no PTX text");
  if (target.substr(0, 3) != "sm_" || numberIn(std::string_view(target).substr(3)) < 80)
    return refused("it is for '{}', expected sm_80 or later", target);
  return result;
}

} // namespace msc
