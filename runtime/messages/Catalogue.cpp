#include "runtime/messages/Catalogue.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace msc::messages {

namespace {

struct Entry {
  int code;
  std::string_view english, chinese;
};

constexpr Entry entries[] = {
#define CODE(number, meaning, chinese, wrong, right)
#define SAYS(number, english, chinese) {number, english, chinese},
#define TEXT(english, chinese) {0, english, chinese},
#include "runtime/messages/All.def"
#undef CODE
#undef SAYS
#undef TEXT
};

constexpr size_t mostPlaceholders = 10;

/// Longer texts are no messages of ours, and matching stays cheap.
constexpr size_t longestText = 1 << 14;

/// One form of an entry: fixed texts with placeholders between them.
struct Pattern {
  const Entry *entry;
  std::vector<std::string> fixed; ///< one more than placeholders; only the first and the last may be empty
  std::vector<size_t> placeholders;
  std::array<bool, mostPlaceholders> nested{};
  size_t letters = 0; ///< of the fixed texts
};

/// The placeholder that begins at `at`, "{0}" or "{0!}": its length, else 0.
size_t placeholderLength(std::string_view text, size_t at) {
  if (at + 2 >= text.size() || text[at] != '{' || !std::isdigit(static_cast<unsigned char>(text[at + 1])))
    return 0;
  if (text[at + 2] == '}')
    return 3;
  return at + 3 < text.size() && text[at + 2] == '!' && text[at + 3] == '}' ? 4 : 0;
}

/// "{a|b}" at `at`: its length, else 0.
size_t alternativesLength(std::string_view text, size_t at) {
  size_t end = text.find_first_of("{}", at + 1);
  bool isOne = text[at] == '{' && end != std::string_view::npos && text[end] == '}' &&
               text.substr(at, end - at).find('|') != std::string_view::npos;
  return isOne ? end - at + 1 : 0;
}

void addPatterns(const Entry &entry, const std::string &text, std::vector<Pattern> &patterns) {
  for (size_t at = 0; at < text.size(); ++at) {
    size_t length = alternativesLength(text, at);
    if (length == 0)
      continue;
    std::string_view inside = std::string_view(text).substr(at + 1, length - 2);
    while (true) {
      size_t bar = inside.find('|');
      addPatterns(entry, text.substr(0, at) + std::string(inside.substr(0, bar)) + text.substr(at + length), patterns);
      if (bar == std::string_view::npos)
        return;
      inside.remove_prefix(bar + 1);
    }
  }
  Pattern pattern{.entry = &entry, .fixed = {""}};
  for (size_t at = 0; at < text.size();) {
    if (size_t length = placeholderLength(text, at)) {
      size_t number = static_cast<size_t>(text[at + 1] - '0');
      pattern.placeholders.push_back(number);
      pattern.nested[number] = length == 4;
      pattern.fixed.emplace_back();
      at += length;
    } else {
      pattern.fixed.back() += text[at++];
      ++pattern.letters;
    }
  }
  patterns.push_back(std::move(pattern));
}

const std::vector<Pattern> &patterns() {
  static const std::vector<Pattern> all = [] {
    std::vector<Pattern> list;
    for (const Entry &entry : entries)
      addPatterns(entry, std::string(entry.english), list);
    return list;
  }();
  return all;
}

using Values = std::array<std::string_view, mostPlaceholders>;

/// A fixed text before forms, a message with a code before its parts, more letters before fewer.
std::array<size_t, 3> rankOf(const Pattern &pattern) {
  return {pattern.placeholders.empty(), pattern.entry->code != 0, pattern.letters};
}

/// Every placeholder takes at least `least` letters and as few as possible.
bool match(const Pattern &pattern, std::string_view text, size_t least, Values &values) {
  const std::string &first = pattern.fixed.front(), &last = pattern.fixed.back();
  if (pattern.placeholders.empty())
    return text == first;
  if (text.size() < pattern.letters + least * pattern.placeholders.size() || text.substr(0, first.size()) != first ||
      text.substr(text.size() - last.size()) != last)
    return false;
  size_t at = first.size(), end = text.size() - last.size();
  for (size_t i = 0; i < pattern.placeholders.size(); ++i) {
    bool isLast = i + 1 == pattern.placeholders.size();
    size_t next = isLast ? end : text.substr(0, end).find(pattern.fixed[i + 1], at + least);
    if (next == std::string_view::npos || next < at + least)
      return false;
    values[pattern.placeholders[i]] = text.substr(at, next - at);
    at = next + (isLast ? 0 : pattern.fixed[i + 1].size());
  }
  return true;
}

/// The pattern of the highest rank that fits; null if none does.
const Pattern *bestMatch(std::string_view text, size_t least, Values &values) {
  const Pattern *best = nullptr;
  Values found;
  for (const Pattern &pattern : patterns())
    if ((!best || rankOf(pattern) > rankOf(*best)) && match(pattern, text, least, found)) {
      best = &pattern;
      values = found;
    }
  return best;
}

/// The messages within a message, by their number in its form.
using Inner = std::array<std::optional<Found>, mostPlaceholders>;

std::string filled(const Pattern &pattern, const Values &values, const Inner &inner) {
  std::string_view form = pattern.entry->chinese;
  std::string text;
  for (size_t at = 0; at < form.size();) {
    size_t length = placeholderLength(form, at);
    if (length == 0) {
      text += form[at++];
      continue;
    }
    size_t number = static_cast<size_t>(form[at + 1] - '0');
    text += inner[number] ? inner[number]->chinese : std::string(values[number]);
    at += length;
  }
  return text;
}

/// Where a rank failed, the code of why, if that has one.
int codeOf(const Pattern &pattern, const Inner &inner) {
  constexpr int ofRanks = 8201;
  if (pattern.entry->code == ofRanks)
    for (size_t number : pattern.placeholders)
      if (inner[number] && inner[number]->code != 0)
        return inner[number]->code;
  return pattern.entry->code;
}

} // namespace

std::optional<Found> find(std::string_view text) {
  if (text.empty() || text.size() > longestText)
    return std::nullopt;
  Values values;
  const Pattern *best = bestMatch(text, 1, values);
  if (!best)
    best = bestMatch(text, 0, values); // a name may be empty: "there is no file ''"
  if (!best)
    return std::nullopt;
  Inner inner;
  for (size_t number : best->placeholders)
    if (best->nested[number])
      inner[number] = find(values[number]);
  return Found{codeOf(*best, inner), filled(*best, values, inner)};
}

Language languageOfEnvironment() {
  for (const char *name : {"LC_ALL", "LC_MESSAGES", "LANG"})
    if (const char *value = std::getenv(name); value && *value)
      return std::string_view(value).substr(0, 5) == "zh_CN" ? Language::Chinese : Language::English;
  return Language::English;
}

std::string translated(std::string_view text) {
  if (languageOfEnvironment() == Language::English)
    return std::string(text);
  std::optional<Found> found = find(text);
  return found ? found->chinese : std::string(text);
}

std::string withCode(std::string_view text) {
  std::optional<Found> found = find(text);
  std::string shown = found && languageOfEnvironment() == Language::Chinese ? found->chinese : std::string(text);
  return found && found->code != 0 ? shown + " [" + codeText(found->code) + "]" : shown;
}

std::string translatedLine(const std::string &line) {
  for (std::string_view prefix : {"note: ", "msrun: warning: "})
    if (line.compare(0, prefix.size(), prefix) == 0)
      return std::string(prefix) + withCode(std::string_view(line).substr(prefix.size()));
  return translated(line);
}

std::string codeText(int code) {
  return "MSC" + std::to_string(code);
}

const std::vector<Explanation> &explanations() {
  static const std::vector<Explanation> all = [] {
    std::vector<Explanation> list = {
#define CODE(number, meaning, chinese, wrong, right) {number, meaning, chinese, wrong, right},
#define SAYS(number, english, chinese)
#define TEXT(english, chinese)
#include "runtime/messages/All.def"
#undef CODE
#undef SAYS
#undef TEXT
    };
    std::sort(list.begin(), list.end(), [](const Explanation &a, const Explanation &b) { return a.code < b.code; });
    return list;
  }();
  return all;
}

/// The lines of `text`, indented.
static std::string indented(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines += "    " + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// A form as users read it: "takes {1} operand{|s}" as "takes ... operand(s)".
static std::string readable(std::string_view form) {
  std::string text;
  for (size_t at = 0; at < form.size();)
    if (size_t length = placeholderLength(form, at)) {
      text += "...";
      at += length;
    } else if (size_t choice = alternativesLength(form, at)) {
      std::string_view inside = form.substr(at + 1, choice - 2);
      size_t bar = inside.find('|');
      text += bar == 0 ? "(" + std::string(inside.substr(1)) + ")" : std::string(inside.substr(0, bar));
      at += choice;
    } else {
      text += form[at++];
    }
  return text;
}

std::string explanationText(const Explanation &explanation) {
  bool chinese = languageOfEnvironment() == Language::Chinese;
  std::string text = codeText(explanation.code) + ": " +
                     std::string(chinese ? explanation.chinese : explanation.meaning) + "\n\n" + translated("says:") +
                     "\n";
  for (const Entry &entry : entries)
    if (entry.code == explanation.code)
      text += indented(readable(chinese ? entry.chinese : entry.english));
  if (explanation.right.empty())
    return text;
  return text + "\n" + translated("wrong:") + "\n" + indented(explanation.wrong) + "\n" + translated("right:") + "\n" +
         indented(explanation.right);
}

bool looksLikeCode(std::string_view word) {
  if (word.size() < 4)
    return false;
  std::string head(word.substr(0, 3));
  for (char &c : head)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return head == "MSC" && std::all_of(word.begin() + 3, word.end(), [](unsigned char c) { return std::isdigit(c); });
}

} // namespace msc::messages
