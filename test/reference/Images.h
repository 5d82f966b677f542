// Windows over images, by the definition.
#pragma once

#include "test/reference/Tensor.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace msc::reference {

/// One direction of sliding windows: position t of window i lies over element i * stride + t * dilation - before.
struct Slide {
  int64_t size, count, kernel, stride, dilation, before, after;

  int64_t under(int64_t i, int64_t t) const { return i * stride + t * dilation - before; }
  bool covers(int64_t i, int64_t t) const { return under(i, t) >= 0 && under(i, t) < size; }
};

/// Attributes as users write them: one number or one per direction; `pad` for all sides or (top, bottom, left, right).
Slide slideOf(int direction, int64_t size, llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> stride,
              llvm::ArrayRef<int64_t> dilation, llvm::StringRef mode, llvm::ArrayRef<int64_t> pad);

} // namespace msc::reference
