#include "runtime/device/cuda/Placement.h"

#include <map>

namespace msc::device::cuda {

std::string identityText(const GpuIdentity &identity) {
  std::string text = "GPU";
  for (size_t i = 0; i < identity.size(); ++i) {
    bool begins = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", begins ? "-" : "", static_cast<unsigned char>(identity[i]));
  }
  return text;
}

VisibleGpus visibleGpus(std::span<const GpuIdentity> identities) {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  for (const GpuIdentity &identity : identities)
    for (char byte : identity)
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return {hash, static_cast<int64_t>(identities.size())};
}

Collectives chooseCollectives(Collectives asked, const RankCount &ranks, int64_t gpus, bool hasNccl) {
  if (ranks.all == 1) // has nothing to say; NCCL is started if it is asked for, which tests it where there is one GPU
    return asked == Collectives::Nccl ? asked : Collectives::Host;
  if (asked != Collectives::Auto)
    return asked;
  if (ranks.oneProcess && ranks.all > gpus)
    return gpus == 1 ? Collectives::Local : Collectives::Host;
  return hasNccl ? Collectives::Nccl : Collectives::Host;
}

constexpr const char *giveEachOne =
    "start as many ranks as there are GPUs, show more with CUDA_VISIBLE_DEVICES, or let ranks share one with "
    "--collectives local, several with --collectives host";

Result<int> chooseGpu(std::span<const VisibleGpus> seen, int64_t rank) {
  std::map<uint64_t, int64_t> users;
  int64_t own = 0;
  for (size_t i = 0; i < seen.size(); ++i)
    if (int64_t turn = users[seen[i].list]++; static_cast<int64_t>(i) == rank)
      own = turn;
  for (size_t i = 0; i < seen.size(); ++i)
    if (int64_t sharing = users[seen[i].list]; sharing > seen[i].count)
      return Error{ExitCode::NoResource,
                   fmt::format("rank {} and {} other{} see only {} GPU{}, and NCCL needs one for each", i, sharing - 1,
                               sharing == 2 ? "" : "s", seen[i].count, seen[i].count == 1 ? "" : "s"),
                   giveEachOne};
  return static_cast<int>(own);
}

Status checkDistinct(std::span<const GpuIdentity> chosen) {
  std::map<GpuIdentity, size_t> owners;
  for (size_t rank = 0; rank < chosen.size(); ++rank)
    if (auto [at, isNew] = owners.emplace(chosen[rank], rank); !isNew)
      return Error{ExitCode::NoResource,
                   fmt::format("ranks {} and {} both have {}, and NCCL needs one for each", at->second, rank,
                               identityText(chosen[rank])),
                   giveEachOne};
  return {};
}

Status checkSame(std::span<const GpuIdentity> chosen) {
  for (size_t rank = 1; rank < chosen.size(); ++rank)
    if (chosen[rank] != chosen[0])
      return Error{ExitCode::NoResource,
                   fmt::format("--collectives local is for ranks on one GPU: rank 0 has {}, rank {} {}", identityText(chosen[0]), rank,
                               identityText(chosen[rank])),
                   "show all ranks the same one with CUDA_VISIBLE_DEVICES, or leave out --collectives local"};
  return {};
}

} // namespace msc::device::cuda
