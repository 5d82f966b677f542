// What `--repropagate` leaves out of a dump.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace msc::frontend {

/// The in_strategy of an operator that is not kept, as text; whoever reads a file takes the attribute away.
inline constexpr llvm::StringLiteral leftOutStrategyName = "net.left_out_strategy";

} // namespace msc::frontend
