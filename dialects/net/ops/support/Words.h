// The words that attributes of operators may take.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace msc::net {

inline constexpr llvm::StringRef kDataFormats[] = {"NCHW", "NCDHW", "NHWC"};
inline constexpr llvm::StringRef kImageFormats[] = {"NCHW"};
inline constexpr llvm::StringRef kPadModes[] = {"valid", "same", "pad"};
inline constexpr llvm::StringRef kDivergenceReductions[] = {"mean", "batchmean", "sum", "none"};
inline constexpr llvm::StringRef kGeLUForms[] = {"none", "tanh"};
inline constexpr llvm::StringRef kMirrorModes[] = {"REFLECT", "SYMMETRIC"};
inline constexpr llvm::StringRef kLossReductions[] = {"mean", "sum", "none"};

} // namespace msc::net
