// Convolutions of calls, by cuDNN.
#pragma once

#include "runtime/device/cuda/Operations.h"
#include "runtime/plan/calls/Convolution.h"

namespace msc::device::cuda {

/// The convolution of these tensors, of which `result` is computed from the others. Null where cuDNN is missing or has
/// nothing for it: it knows f32, f16 and bf16, and no engine of its own may do less than our kernels promise.
Prepared libraryConvolution(Shared &shared, const Convolution &shape, ConvolutionResult result, const CallTensor &x,
                            const CallTensor &w, const CallTensor &y);

} // namespace msc::device::cuda
