// The planes that a pooling kernel reads and writes on one rank, and the windows between them, as they lie in memory.
#pragma once

#include "runtime/plan/calls/Pooling.h"

#include <vector>

namespace msc {

/// The rows (or columns) of the large plane that one row (column) of the small one stands for; all as they lie in memory.
struct PoolingCover {
  int64_t small = 0;
  int64_t begin = 0, end = 0;
  int64_t counted = 1; ///< how many an average divides by
};

struct PoolingPlanes {
  std::vector<PoolingCover> rows, columns;
  int64_t largeRows = 0, largeColumns = 0, smallRows = 0, smallColumns = 0;

  int64_t largeSize() const { return largeRows * largeColumns; }
  int64_t smallSize() const { return smallRows * smallColumns; }
};

/// How the planes of a gradient lie within those of the input: a rank may have more of the input around its own part.
struct PoolingInset {
  int64_t rows = 0, columns = 0;        ///< of the gradient
  int64_t firstRow = 0, firstColumn = 0; ///< of the input, over the gradient's first

  int64_t size() const { return rows * columns; }
  /// Element of the gradient's plane for one of the input's, or -1.
  int64_t inside(int64_t at, int64_t inputColumns) const {
    int64_t row = at / inputColumns - firstRow, column = at % inputColumns - firstColumn;
    return row < 0 || row >= rows || column < 0 || column >= columns ? -1 : row * columns + column;
  }
};

/// Of a call that was checked, with an element of its result per window.
PoolingPlanes planesOfPool(const CallSpec &spec);

/// A gradient with respect to the images, from those of the windows that reach over it. `images` may hold more around it:
/// then the windows lie over these.
PoolingPlanes planesOfGradient(const CallSpec &spec, const CallTensor &images, PoolingInset &inset);

} // namespace msc
