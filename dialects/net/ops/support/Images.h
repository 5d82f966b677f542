// What operators on images (N, C, H, W) share: windows, and the rule that rows and columns stay whole.
#pragma once

#include "dialects/net/ShardingRule.h"
#include "dialects/net/ops/support/Infer.h"
#include "runtime/plan/calls/Window.h"

namespace msc::net {

/// Operand `operand` has 4 dimensions, a float element type, and `dataFormat` is one that images have.
llvm::LogicalResult checkImage(const Inference &at, unsigned operand, llvm::StringRef dataFormat);

/// The windows over an image of the given shape (N, C, H, W); reports what does not fit at operand `operand`.
llvm::FailureOr<std::array<Window, 2>> windowsOf(const Inference &at, unsigned operand, llvm::ArrayRef<int64_t> shape,
                                                 const WindowAttributes &attributes);

/// Adds factors of the rows and columns of `shape`, which cannot be cut; returns the first of the two.
int32_t addWholeImage(ShardingRule &rule, llvm::ArrayRef<int64_t> shape, const char *rows, const char *columns,
                      const char *reason = "its windows reach over the boundaries of pieces");

} // namespace msc::net
