// What the windows of a pooling kernel cover, in one direction.
#pragma once

#include "runtime/plan/calls/Window.h"

namespace msc {

/// One direction of a pooling kernel: what its windows cover. Windows of all indices of the small side, over the large side.
class PoolingSide {
public:
  /// Sliding windows; padding counts in averages if wanted.
  PoolingSide(const Window &window, bool countPadding) : window(window), countPadding(countPadding) {}
  /// `small` windows of nearly equal sizes that cover `large` elements: [floor(i large / small), ceil((i + 1) large / small)).
  PoolingSide(int64_t large, int64_t small) : window{.input = large, .output = small}, isAdaptive(true) {}

  int64_t large() const { return window.input; }
  int64_t small() const { return window.output; }
  /// The elements under window `i`, padding left out.
  Range cover(int64_t i) const;
  /// How many elements an average over window `i` divides by; at least 1.
  int64_t counted(int64_t i) const;
  /// The elements under any of the windows.
  Range under(const Range &windows) const;
  /// The windows that reach over any of the elements.
  Range over(const Range &elements) const;

private:
  Window window;
  bool countPadding = false;
  bool isAdaptive = false;
};

} // namespace msc
