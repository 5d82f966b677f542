// The operations of a step on the streams of a GPU.
#pragma once

#include "runtime/device/cuda/Operations.h"

namespace msc::device::cuda {

/// Runs `entries`, which were prepared with `shared`. The first run waits for every operator, so that an error names it; with
/// `graphs` the second one is captured as a CUDA graph, which it and all further ones launch: addresses never change.
Result<std::unique_ptr<Sequence>> makeStreamSequence(Shared &shared, std::vector<SequenceEntry> entries, bool graphs);

} // namespace msc::device::cuda
