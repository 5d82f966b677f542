// Which rank gets which GPU, and how they communicate.
#include "runtime/device/cuda/Placement.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::device;
using namespace msc::device::cuda;

namespace {

GpuIdentity gpu(char number) { return {number}; }
VisibleGpus see(std::vector<GpuIdentity> identities) { return visibleGpus(identities); }

const char *const repair = "start as many ranks as there are GPUs, show more with CUDA_VISIBLE_DEVICES, or let ranks share one with "
                           "--collectives local, several with --collectives host";

TEST(Placement, RanksThatSeeTheSameGpusTakeThemInTurn) {
  // CUDA_VISIBLE_DEVICES=2,3 mpirun -n 2, on two hosts.
  VisibleGpus here = see({gpu(2), gpu(3)}), there = see({gpu(12), gpu(13)});
  std::vector<VisibleGpus> seen{here, here, there, there};
  for (int64_t rank : {0, 1, 2, 3})
    EXPECT_EQ(*chooseGpu(seen, rank), rank % 2);
  // Ranks of a host need not be neighbours.
  std::vector<VisibleGpus> turns{here, there, here, there};
  EXPECT_EQ(*chooseGpu(turns, 1), 0);
  EXPECT_EQ(*chooseGpu(turns, 2), 1);
}

TEST(Placement, EveryProcessMaySeeOneOfItsOwn) {
  std::vector<VisibleGpus> seen{see({gpu(0)}), see({gpu(1)}), see({gpu(2)})};
  for (int64_t rank : {0, 1, 2})
    EXPECT_EQ(*chooseGpu(seen, rank), 0);
}

TEST(Placement, FewerGpusThanRanks) {
  VisibleGpus two = see({gpu(2), gpu(3)});
  std::vector<VisibleGpus> seen{see({gpu(9)}), two, two, two};
  for (int64_t rank : {0, 1, 2, 3}) { // all ranks say the same
    auto chosen = chooseGpu(seen, rank);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().code, ExitCode::NoResource);
    EXPECT_EQ(chosen.error().message, "rank 1 and 2 others see only 2 GPUs, and NCCL needs one for each");
    EXPECT_EQ(chosen.error().help, repair);
  }
  std::vector<VisibleGpus> one{see({gpu(1)}), see({gpu(1)})};
  EXPECT_EQ(chooseGpu(one, 1).error().message, "rank 0 and 1 other see only 1 GPU, and NCCL needs one for each");
}

TEST(Placement, TwoRanksOnOneGpu) {
  // They see different lists, so that only the GPUs themselves tell.
  std::vector<GpuIdentity> chosen{gpu(1), gpu(2), gpu(1)};
  Status status = checkDistinct(chosen);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "ranks 0 and 2 both have GPU-01000000-0000-0000-0000-000000000000, and NCCL needs one for each");
  EXPECT_EQ(status.error().help, repair);
  chosen[2] = gpu(3);
  EXPECT_TRUE(checkDistinct(chosen));
}

TEST(Placement, RanksOfOneGpu) {
  EXPECT_TRUE(checkSame(std::vector<GpuIdentity>{gpu(1), gpu(1), gpu(1)}));
  Status status = checkSame(std::vector<GpuIdentity>{gpu(1), gpu(1), gpu(2)});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "--collectives local is for ranks on one GPU: rank 0 has GPU-01000000-0000-0000-0000-000000000000, rank 2 "
                                    "GPU-02000000-0000-0000-0000-000000000000");
  EXPECT_EQ(status.error().help, "show all ranks the same one with CUDA_VISIBLE_DEVICES, or leave out --collectives local");
}

TEST(Placement, TheSameGpusInAnotherOrderAreAnotherList) {
  EXPECT_NE(see({gpu(1), gpu(2)}).list, see({gpu(2), gpu(1)}).list);
}

TEST(Placement, Paths) {
  using enum Collectives;
  auto choose = [](RankCount ranks, int64_t gpus, bool hasNccl) { return chooseCollectives(Auto, ranks, gpus, hasNccl); };
  EXPECT_EQ(choose({1, 1, true}, 1, true), Host); // nobody to talk to
  EXPECT_EQ(choose({4, 4, true}, 4, true), Nccl);
  EXPECT_EQ(choose({4, 4, true}, 4, false), Host);
  EXPECT_EQ(choose({8, 8, true}, 2, true), Host);
  EXPECT_EQ(choose({8, 8, true}, 1, true), Local);
  EXPECT_EQ(choose({8, 8, true}, 1, false), Local);
  // Processes may see one GPU each; if they do not, all of them say so.
  EXPECT_EQ(choose({8, 8, false}, 1, true), Nccl);
  EXPECT_EQ(choose({8, 8, false}, 8, false), Host);
  EXPECT_EQ(chooseCollectives(Host, {4, 4, true}, 4, true), Host);
  EXPECT_EQ(chooseCollectives(Nccl, {4, 4, true}, 1, true), Nccl);
  EXPECT_EQ(chooseCollectives(Nccl, {1, 1, true}, 1, true), Nccl);
  EXPECT_EQ(chooseCollectives(Local, {1, 1, true}, 1, true), Host);
}

} // namespace
