// AllReduce on thread ranks against a bound of the same run: the time in which all ranks together copy as many bytes as
// the reduction has to read and write at least (every source once, every target once).
#include "runtime/comm/Region.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "test/bench/CommBench.h"

#include <numeric>
#include <thread>

using namespace msc;
using namespace msc::bench;

namespace {

/// The bound: every rank copies its source to its target.
Times timeCopy(comm::Group &group, const std::vector<float> &source, std::vector<float> &target, int64_t bytes) {
  return timeTogether(group, bytes, [&] {
    comm::copyBytes(target.data(), source.data(), bytes, bytes >= comm::kStreamBytes);
    comm::streamFence();
  });
}

void rankBody(comm::World &world, int64_t ranks) {
  pinTo(world.rank());
  std::vector<int64_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  comm::Group &group = **world.group(all);
  for (int64_t bytes : kSizes) {
    std::vector<float> source(bytes / 4, 1.0f), target(bytes / 4);
    Times copy = timeCopy(group, source, target, bytes);
    Times reduce = timeTogether(group, bytes, [&] {
      (void)group.allReduce(source.data(), target.data(), bytes / 4, comm::ElementType::F32, ReduceKind::Sum, {"bench", ""});
    });
    if (world.rank() == 0)
      printf("%5ld  %8s  %10.1f  %10.1f  %10.1f  %7.2f\n", ranks, sizeText(bytes).c_str(), reduce.median, reduce.best,
             copy.median, reduce.median / copy.median);
    if (target[0] != static_cast<float>(ranks))
      printf("wrong sum %f on rank %ld\n", target[0], world.rank());
  }
}

} // namespace

int main() {
  printf("AllReduce (f32, sum) on thread ranks; %u cores; times in us\n", std::thread::hardware_concurrency());
  printf("%5s  %8s  %10s  %10s  %10s  %7s\n", "ranks", "size", "median", "best", "memcpy", "ratio");
  for (int64_t ranks : {2, 4, 8}) {
    auto hub = *comm::ThreadHub::create(ranks);
    std::vector<std::thread> threads;
    for (int64_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        auto world = hub->world(r);
        rankBody(*world, ranks);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
}
