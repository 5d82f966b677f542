// Tables of deep networks: layers whose rows differ in their numbers only are shown once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace msc::compiler {

using Row = std::vector<std::string>;

/// Where blocks of rows follow each other, of which each has every number that changes one higher (or lower) than the one
/// before, the first block stays, and a row of one cell says "layers 1..95 alike, 49 rows each". Numbers may change in the
/// columns `named`; all other cells have to be equal.
std::vector<Row> foldAlikeRows(const std::vector<Row> &rows, const std::vector<size_t> &named);

} // namespace msc::compiler
