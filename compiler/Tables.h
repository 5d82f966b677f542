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

/// Of a difference in microseconds: "+1.5", "-0.3", "+0.0".
std::string moreText(double us);

/// Lines of cells, columns padded to the same width; two spaces between columns. A single cell is a remark about the lines
/// above it.
std::string table(const std::vector<Row> &rows);

} // namespace msc::compiler
