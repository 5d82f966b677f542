// What a convolution is on one rank, as the checker and the kernels see it.
#pragma once

#include "runtime/plan/calls/Call.h"
#include "runtime/plan/calls/Window.h"

namespace msc {

/// y[n, o] = sum over the input channels c of o's group of x[n, c] convolved with w[o, c]. All sizes are this rank's.
struct Convolution {
  int64_t images = 0;
  int64_t inputs = 0, outputs = 0; ///< channels of all groups
  int64_t groups = 1;              ///< 0 where the rank has no channels
  std::array<Window, 2> windows;   ///< over x, one per element of y

  int64_t inputsPerGroup() const { return groups == 0 ? 0 : inputs / groups; }
  int64_t outputsPerGroup() const { return groups == 0 ? 0 : outputs / groups; }
};

/// From the tensors x (N, C, H, W), w (O, C / group, rows, columns), y (N, O, ...) and the attributes stride, dilation,
/// pad_mode, pad, group. On failure empty, and `why` says what does not fit.
std::optional<Convolution> convolutionOf(const CallAttributes &attributes, const CallTensor &x, const CallTensor &w,
                                         const CallTensor &y, std::string &why);

} // namespace msc
