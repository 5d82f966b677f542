// What a convolution is on one rank, as the checker and the kernels see it.
#pragma once

#include "runtime/plan/calls/Call.h"
#include "runtime/plan/calls/Window.h"

namespace msc {

/// Which of the three tensors of a convolution is computed from the others.
enum class ConvolutionResult { Output, Input, Filter };

/// One direction of the planes of a tensor: how many rows (columns) lie in memory, and the first that takes part.
struct PlaneSide {
  int64_t held = 0;
  int64_t first = 0;
};

/// y[n, o] = sum over the input channels c of o's group of x[n, c] convolved with w[o, c]. All sizes are this rank's.
struct Convolution {
  int64_t images = 0;
  int64_t inputs = 0, outputs = 0; ///< channels of all groups
  int64_t groups = 1;              ///< 0 where the rank has no channels
  /// Over the rows and columns of x that take part, one per element of y that does. Nothing else meets.
  std::array<Window, 2> windows;
  std::array<PlaneSide, 2> x, y; ///< the planes around them

  int64_t inputsPerGroup() const { return groups == 0 ? 0 : inputs / groups; }
  int64_t outputsPerGroup() const { return groups == 0 ? 0 : outputs / groups; }
};

/// From the tensors x (N, C, H, W), w (O, C / group, rows, columns), y (N, O, ...) and the attributes stride, dilation,
/// pad_mode, pad, group. What the rank has of the result (of y, for weights) decides which rows and columns it needs of the
/// others. On failure empty, and `why` says what does not fit.
std::optional<Convolution> convolutionOf(const CallAttributes &attributes, ConvolutionResult result, const CallTensor &x,
                                         const CallTensor &w, const CallTensor &y, std::string &why);

} // namespace msc
