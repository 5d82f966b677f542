#include "test/reference/Images.h"

#include <algorithm>

namespace msc::reference {

static int64_t inDirection(llvm::ArrayRef<int64_t> list, int direction) {
  return list.size() == 1 ? list[0] : list[list.size() - 2 + direction];
}

Slide slideOf(int direction, int64_t size, llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> stride,
              llvm::ArrayRef<int64_t> dilation, llvm::StringRef mode, llvm::ArrayRef<int64_t> pad) {
  Slide slide{size, 0, inDirection(kernel, direction), inDirection(stride, direction), inDirection(dilation, direction), 0, 0};
  int64_t reach = slide.dilation * (slide.kernel - 1) + 1;
  if (mode == "same") {
    slide.count = (size + slide.stride - 1) / slide.stride;
    int64_t missing = std::max<int64_t>(0, (slide.count - 1) * slide.stride + reach - size);
    slide.before = missing / 2;
    slide.after = missing - slide.before;
    return slide;
  }
  if (mode == "pad") {
    slide.before = pad.size() == 1 ? pad[0] : pad[2 * direction];
    slide.after = pad.size() == 1 ? pad[0] : pad[2 * direction + 1];
  }
  while (slide.count * slide.stride + reach <= size + slide.before + slide.after)
    ++slide.count;
  return slide;
}

} // namespace msc::reference
