// How long the planner of redistributions takes for one question, cold (no cache), and how far its sequences are from the
// lower bound. Up to 5 dimensions and 8 axes of the device matrix (256 devices); aim: below 1 ms.
#include "dialects/dist/Reshard.h"
#include "test/bench/Timing.h"

#include <algorithm>
#include <cstdio>
#include <random>

using namespace msc;
using namespace msc::bench;
using namespace msc::dist;

static Sharding randomSharding(std::mt19937_64 &random, size_t axes, size_t dims, bool partial) {
  Sharding sharding{.axes = std::vector<int64_t>(axes, 2), .dims = std::vector<std::vector<int32_t>>(dims)};
  std::vector<int32_t> order(axes);
  for (size_t i = 0; i < axes; ++i)
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

int main(int argc, char **argv) {
  const int questions = argc > 1 ? std::atoi(argv[1]) : 400;
  std::printf("%5s %5s %8s %9s | %9s %9s %9s | %s\n", "dims", "axes", "partial", "elements", "median us", "99 % us",
              "worst us", "received / lower bound");
  MachineModel machine = MachineModel::cpuLocal();
  for (size_t dims : {2, 3, 5})
    for (size_t axes : {3, 4, 6, 8})
      for (bool partial : {false, true})
        for (int64_t size : {int64_t{256}, int64_t{4096}}) {
          if (dims == 5 && size > 256)
            continue;
          std::mt19937_64 random(axes * 100 + dims);
          std::vector<double> us;
          double received = 0, bound = 0;
          std::vector<int64_t> shape(dims, size);
          for (int i = 0; i < questions; ++i) {
            Sharding from = randomSharding(random, axes, dims, partial), to = randomSharding(random, axes, dims, false);
            std::vector<ReshardStep> steps;
            us.push_back(1e6 * secondsOf([&] { steps = planReshard(from, to, shape, 4, machine); }));
            if (!from.isPartial()) {
              received += static_cast<double>(reshardElements(steps));
              bound += static_cast<double>(receivedElements(from, to, shape));
            }
          }
          std::sort(us.begin(), us.end());
          std::printf("%5zu %5zu %8s %9ld | %9.1f %9.1f %9.1f | %.4f\n", dims, axes, partial ? "yes" : "no",
                      elementCount(shape), us[us.size() / 2], us[us.size() * 99 / 100], us.back(), received / bound);
        }
  return 0;
}
