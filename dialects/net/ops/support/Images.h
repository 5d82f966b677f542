// What operators on images (N, C, H, W) share: windows, and rows and columns that are cut with halos.
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

/// Windows of one element, each over the element of its own index: pieces have all that they reach.
bool isPointwise(const Window &window);

/// Adds factors "h" and "w" of rows and columns that may be cut: of two images, with an element of `small` per window over
/// `large`. `reaches`: windows of that direction may lie over several pieces. Returns the first.
int32_t addImage(ShardingRule &rule, llvm::ArrayRef<int64_t> large, llvm::ArrayRef<int64_t> small, std::array<bool, 2> reaches,
                 FactorKind kind = FactorKind::PassThrough);

/// Adds factors of the rows and columns of a kernel, which cannot be cut; returns the first of the two.
int32_t addWholeKernel(ShardingRule &rule, llvm::ArrayRef<int64_t> shape);

} // namespace msc::net
