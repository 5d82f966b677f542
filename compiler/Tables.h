// Tables for people: what `msc explain` prints is made of them.
#pragma once

#include "compiler/AlikeRows.h"
#include "runtime/machine/TimeText.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::compiler {

/// "1.5 KiB".
std::string bytesText(uint64_t bytes);

/// In a table: "1.5 us", "44.041 s".
std::string timeCell(double us);
/// Of a difference: "+1.5 us", "-0.3 us", "+0.0 us", "+61.738 ms".
std::string moreText(double us);

/// "a, b, c": the first names, and how many more there are.
std::string namesText(std::vector<std::string> names);

/// Lines of cells, columns padded to the same width; two spaces between columns. A single cell is a remark about the lines
/// above it. On a terminal of so many columns what does not fit goes below, indented: columns from the same one on in all rows, and the
/// words of the last one. 0: a line for each row.
std::string table(const std::vector<Row> &rows, size_t columns = 0);

/// Lines of words, which go on further to the right on the next line where the terminal has so many columns. 0: as they are.
std::string wrapped(const std::string &text, size_t columns);

} // namespace msc::compiler
