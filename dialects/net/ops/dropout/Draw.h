// What RandomBits and the operators made of it share.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace msc::net {

/// Operations per word: ten rounds of two products of 32 bits, with what is around them.
inline constexpr double kDrawOperations = 100;

/// Attribute of a Dropout of ranks that have tensors of their own: how many they are, each draws for itself.
inline constexpr llvm::StringLiteral kDrawingRanks = "net.drawing_ranks";

} // namespace msc::net
