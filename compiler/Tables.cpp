#include "compiler/Tables.h"

#include "runtime/ControlCharacters.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace msc::compiler {

std::string timeCell(double us) {
  const std::string text = timeText(us);
  return llvm::StringRef(text).ends_with(" us") ? text : timeText(us, /*digits=*/3);
}

std::string moreText(double us) {
  const std::string text = timeCell(std::abs(us));
  return (us < 0 && text != timeCell(0) ? "-" : "+") + text;
}

std::string bytesText(uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value == static_cast<int64_t>(value) ? "%.0f %s" : "%.1f %s", value,
                units[unit]);
  return text;
}

std::string namesText(std::vector<std::string> names) {
  constexpr size_t shown = 12;
  if (names.size() > shown) {
    std::string more = "and " + std::to_string(names.size() - shown) + " more";
    names.resize(shown);
    names.push_back(std::move(more));
  }
  return llvm::join(names, ", ");
}

/// Columns of a terminal: wide characters take two. Bytes where the text is not UTF-8.
static size_t widthOf(const std::string &text) {
  const int columns = llvm::sys::unicode::columnWidthUTF8(text);
  return columns < 0 ? text.size() : static_cast<size_t>(columns);
}

constexpr size_t leastColumns = 60; // narrower terminals wrap by themselves

/// The words in lines of at most so many columns, the first behind an indent, the others behind `indent`; a word is never cut.
static std::string wordsIn(const std::string &words, std::string first, const std::string &indent, size_t columns) {
  std::string text, line;
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    if (!line.empty() && first.size() + widthOf(line) + 1 + widthOf(word) > columns) {
      text += first + line + "\n";
      line.clear();
      first = indent;
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return text + first + line + "\n";
}

std::string wrapped(const std::string &text, size_t columns) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t words = std::min(line.find_first_not_of(' '), line.size());
    const bool isShort = columns < leastColumns || widthOf(line) <= columns;
    const std::string indent = line.substr(0, words);
    const std::string lines = isShort ? line + "\n" : wordsIn(line.substr(words), indent, indent + "  ", columns);
    result += end < text.size() ? lines : lines.substr(0, lines.size() - 1);
    at = end + 1;
  }
  return result;
}

/// Before which columns of a table, whose widest cells are known, a line of their own begins. Never before the last one: its words go where
/// they fit.
static std::vector<bool> breaksOf(const std::vector<size_t> &widths, size_t indent, size_t columns) {
  std::vector<bool> breaks(widths.size(), false);
  size_t used = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    breaks[i] = i > 0 && used + 2 + widths[i] > columns;
    used = (breaks[i] ? indent : used + 2) + widths[i];
  }
  return breaks;
}

std::string table(const std::vector<Row> &given, size_t columns) {
  std::vector<Row> rows = given;
  for (Row &row : rows)
    for (std::string &cell : row)
      cell = withoutControls(cell); // a name with a line break is one cell all the same
  std::vector<size_t> widths;
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size() && row.size() > 1; ++i) {
      widths.resize(std::max(widths.size(), row.size()), 0);
      widths[i] = std::max(widths[i], widthOf(row[i]));
    }
  const std::string indent(6, ' ');
  const std::vector<bool> breaks = columns < leastColumns ? std::vector<bool>(widths.size(), false) : breaksOf(widths, indent.size(), columns);
  std::string text;
  auto add = [&](const std::string &line) { text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n"; };
  for (const Row &row : rows) {
    if (row.size() == 1) {
      text += "    ... " + row.front() + "\n";
      continue;
    }
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      if (breaks[i])
        add(line);
      line = (breaks[i] ? indent : line + "  ") + row[i] + std::string(widths[i] - widthOf(row[i]), ' ');
    }
    const bool fits = columns < leastColumns || widthOf(line) + 2 + widthOf(row.back()) <= columns;
    add(fits ? line + "  " + row.back() : line);
    if (!fits)
      text += wordsIn(row.back(), indent, indent, columns);
  }
  return text;
}

} // namespace msc::compiler
