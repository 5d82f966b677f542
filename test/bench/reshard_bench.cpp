// How long the planner of redistributions takes for one question, cold (no cache), and how far its sequences are from the
// lower bound. Up to 5 dimensions and 8 axes of the device matrix (256 devices and more), some of 3, sizes that they cut evenly and
// not; aim: below 1 ms of processor time.
#include "dialects/dist/Reshard.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

using namespace msc;
using namespace msc::dist;

static Sharding randomSharding(std::mt19937_64 &random, const std::vector<int64_t> &matrix, size_t dims, bool partial) {
  Sharding sharding{.axes = matrix, .dims = std::vector<std::vector<int32_t>>(dims)};
  std::vector<int32_t> order(matrix.size());
  for (size_t i = 0; i < matrix.size(); ++i)
    order[i] = static_cast<int32_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  for (int32_t axis : order) {
    size_t place = random() % (dims + 2);
    if (place < dims)
      sharding.dims[place].push_back(axis);
    else if (place == dims && partial)
      sharding.partial.push_back({axis, ReduceKind::Sum});
  }
  std::sort(sharding.partial.begin(), sharding.partial.end(),
            [](const PartialAxis &a, const PartialAxis &b) { return a.axis < b.axis; });
  return sharding;
}

/// Microseconds of processor time: the machine may do other things.
template <typename F> static double processorUs(F work) {
  timespec start, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  work();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return 1e6 * static_cast<double>(end.tv_sec - start.tv_sec) + 1e-3 * static_cast<double>(end.tv_nsec - start.tv_nsec);
}

int main(int argc, char **argv) {
  const int questions = argc > 1 ? std::atoi(argv[1]) : 400;
  std::printf("%5s %5s %8s %8s | %9s %9s %9s | %s\n", "dims", "axes", "partial", "sizes", "median us", "99 % us",
              "worst us", "received / lower bound");
  const MachineModel machine = MachineModel::cpuLocal();
  for (size_t dims : {2, 3, 5})
    for (size_t axes : {3, 4, 6, 8})
      for (bool partial : {false, true})
        for (int64_t size : {int64_t{256}, int64_t{4096}, int64_t{251}}) {
          if (dims == 5 && size == 4096)
            continue;
          std::mt19937_64 random(axes * 100 + dims);
          std::vector<double> us;
          double received = 0, bound = 0;
          std::vector<int64_t> shape(dims, size);
          for (int i = 0; i < questions; ++i) {
            std::vector<int64_t> matrix(axes, 2);
            if (i % 4 == 3)
              matrix[random() % axes] = 3;
            Sharding from = randomSharding(random, matrix, dims, partial), to = randomSharding(random, matrix, dims, false);
            std::vector<ReshardStep> steps;
            auto plan = [&] { steps = planReshard(from, to, shape, 4, machine); };
            us.push_back(std::min(processorUs(plan), processorUs(plan)));
            if (!from.isPartial()) {
              received += static_cast<double>(reshardElements(steps));
              bound += static_cast<double>(receivedElements(from, to, shape));
            }
          }
          std::sort(us.begin(), us.end());
          std::printf("%5zu %5zu %8s %8ld | %9.1f %9.1f %9.1f | %.4f\n", dims, axes, partial ? "yes" : "no", size,
                      us[us.size() / 2], us[us.size() * 99 / 100], us.back(), received / bound);
        }
  return 0;
}
