// The exact strategy search on synthetic networks.
#include "test/passes/sharding/search/Transformer.h"

#include <cstdio>
#include <ctime>

using namespace msc::search;
using namespace msc::search::test;

namespace {

/// Of processor time, so that neighbours do not count: the least of a few.
template <typename Work> double milliseconds(Work work) {
  double best = infinity;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, double(std::clock() - start) * 1000 / CLOCKS_PER_SEC);
    if (best > 2000)
      break;
  }
  return best;
}

void transformer(int64_t layers, int32_t log2Devices, bool unrolls) {
  SyntheticTransformer network(layers, log2Devices);
  RepeatedSolution folded;
  double time = milliseconds([&] { folded = solveExactly(network.repeated); });
  size_t runs = folded.choice.runs[0].size();
  std::printf("transformer, %6lld layers, %3d devices: folded %8.2f ms, %zu runs, cost %.6g%s", (long long)layers,
              1 << log2Devices, time, runs, folded.summary.cost, folded.summary.optimal ? "" : " NOT PROVEN");
  if (unrolls) {
    Unrolled unrolled = unroll(network.repeated);
    Solution flat;
    time = milliseconds([&] { flat = solveExactly(unrolled.network); });
    std::printf("; unrolled %8.2f ms, cost %.6g, %lld of %lld buckets repeated, %.2g operations, largest table %lld",
                time, flat.cost, (long long)flat.repeated, (long long)flat.eliminations, double(flat.operations),
                (long long)flat.largestTable);
  }
  std::printf("\n");
}

} // namespace

int main() {
  for (int32_t log2Devices : {3, 6})
    for (int64_t layers : {2, 24, 96, 10000})
      transformer(layers, log2Devices, layers < 100);
}
