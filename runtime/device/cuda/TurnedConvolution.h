// Convolutions of images whose channels are brought behind their planes, as tensor cores want them.
#pragma once

#include "runtime/device/cuda/Operations.h"

namespace msc::device::cuda {

/// A tensor of a convolution, as it lies in the arena: dense, of N, C, rows, columns.
struct PlainTensor {
  std::byte *data = nullptr;
  cudnn::Sizes sizes = {};
};

/// True if copies in which channels are neighbours, and engines for those, are likely to take less time than engines for planes. cuDNN
/// makes such copies itself, by kernels that are slow where planes do not begin at multiples of 16 bytes; and it has no fast
/// engine for few channels. `problem` says windows and type; at least `leastOperations` are worth the launches.
bool turnsChannels(const cudnn::Problem &problem, const PlainTensor &x, const PlainTensor &w, const PlainTensor &y, int64_t leastOperations);

/// Null if cuDNN has no engine for it, or there is no room for the copies.
Prepared turnedConvolution(Shared &shared, cudnn::Problem problem, const PlainTensor &x, const PlainTensor &w, const PlainTensor &y);

} // namespace msc::device::cuda
