// Which rank gets which GPU, and how the GPUs of a run communicate.
#pragma once

#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/Tables.h"

#include <array>
#include <span>

namespace msc::device::cuda {

/// A GPU, or a part of one, among all that there are.
using GpuIdentity = std::array<char, 16>;

/// "GPU-01020304-0506-0708-090a-0b0c0d0e0f10", as nvidia-smi -L shows it.
std::string identityText(const GpuIdentity &identity);

/// What a rank sees after CUDA_VISIBLE_DEVICES: which GPUs, as a number that is the same for the same ones in the same order.
struct VisibleGpus {
  uint64_t list = 0;
  int64_t count = 0;
};
VisibleGpus visibleGpus(std::span<const GpuIdentity> identities);

/// The path that `asked` means for ranks of which this host has `ranks.local` and this process sees `gpus` GPUs.
Collectives chooseCollectives(Collectives asked, const RankCount &ranks, int64_t gpus, bool hasNccl);

/// The GPU of `rank` among those it sees, if each rank is to have one of its own: ranks that see the same ones take them in turn.
/// `seen`: by rank. The same answer, or the same error, on all ranks.
Result<int> chooseGpu(std::span<const VisibleGpus> seen, int64_t rank);

/// No two ranks have the same GPU. The same answer on all ranks.
Status checkDistinct(std::span<const GpuIdentity> chosen);

/// All ranks have the same GPU. The same answer on all ranks.
Status checkSame(std::span<const GpuIdentity> chosen);

} // namespace msc::device::cuda
