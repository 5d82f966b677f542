// Convolutions on the CPU: plain loops for every element type, oneDNN for f32 and bf16.
#pragma once

#include "runtime/device/cpu/calls/Kernels.h"
#include "runtime/plan/calls/Convolution.h"

namespace msc::device::calls {

/// A convolution with the addresses of its tensors.
struct ConvolutionCall {
  Convolution shape;
  ConvolutionResult result = ConvolutionResult::Output;
  std::byte *x = nullptr, *w = nullptr, *y = nullptr;
  plan::DataType type = plan::F32;
  bool holdsBFloat16 = false; ///< the f32 elements of both operands are numbers of bf16
  int64_t tasks = 1;
};

/// By oneDNN, of f32 or bf16, for operands that have elements.
Result<std::unique_ptr<ScratchOperation>> prepareLibraryConvolution(const ConvolutionCall &call, WorkerPool &pool);

} // namespace msc::device::calls
