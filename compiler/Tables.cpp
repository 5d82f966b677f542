#include "compiler/Tables.h"

#include "runtime/ControlCharacters.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace msc::compiler {

std::string usText(double us) {
  const std::string text = timeText(us);
  return llvm::StringRef(text).ends_with(" us") ? text.substr(0, text.size() - 3) : timeText(us, /*digits=*/3);
}

std::string moreText(double us) {
  const std::string text = usText(std::abs(us));
  return (us < 0 && text != "0.0" ? "-" : "+") + text;
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

/// Columns of a terminal: wide characters take two. Bytes where the text is not UTF-8.
static size_t widthOf(const std::string &text) {
  const int columns = llvm::sys::unicode::columnWidthUTF8(text);
  return columns < 0 ? text.size() : static_cast<size_t>(columns);
}

std::string table(const std::vector<Row> &given) {
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
  std::string text;
  for (const Row &row : rows) {
    if (row.size() == 1) {
      text += "    ... " + row.front() + "\n";
      continue;
    }
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i)
      line += " " + row[i] + std::string(i + 1 < row.size() ? widths[i] - widthOf(row[i]) + 1 : 0, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

} // namespace msc::compiler
