// The page that `msc explain --html` writes: the report with what draws it, in one file that loads nothing.
#pragma once

#include "compiler/Report.h"

namespace msc::compiler {

/// The text of the page; works from a file, without a network. It opens at operator `op` (instance name; empty: at the first
/// one). The report is that of reportJson, of the whole network.
std::string explainPage(const plan::Plan &plan, const Findings &findings, const std::string &op);

} // namespace msc::compiler
