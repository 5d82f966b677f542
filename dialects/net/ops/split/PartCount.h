// How many results operators make that part a tensor.
#pragma once

#include "dialects/net/ops/support/Infer.h"

namespace msc::net {

/// At most 65536.
inline llvm::LogicalResult checkPartCount(const Inference &at, int64_t count) {
  constexpr int64_t most = 1 << 16;
  if (count <= most)
    return llvm::success();
  return at.error("'" + at.opName + "' makes " + llvm::Twine(count) + " results of " + at.text(0) + ": there are at most " + llvm::Twine(most), {0});
}

} // namespace msc::net
