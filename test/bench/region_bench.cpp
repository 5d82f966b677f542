// Copies between strided regions against memcpy of the same bytes, both within the caches: what an exchange of tensors that are
// cut along their last dimension does.
#include "runtime/comm/Region.h"
#include "test/bench/Timing.h"

#include <cstdio>
#include <vector>

using namespace msc;
using namespace msc::bench;

namespace {

constexpr int64_t kElements = 32768;

/// Nanoseconds per run and against memcpy, of f32 runs of `run` elements that lie `gap` times their length apart.
void row(int64_t run, int64_t sourceGap, int64_t targetGap) {
  int64_t rows = kElements / run;
  std::vector<float> from(kElements * sourceGap, 1.0f), to(kElements * targetGap), dense(kElements);
  comm::Region source{0, {rows, run}, {run * sourceGap, 1}}, target{0, {rows, run}, {run * targetGap, 1}};
  std::vector<double> strided, plain;
  for (int repeat = 0; repeat < 300; ++repeat) {
    strided.push_back(secondsOf([&] { comm::copyRegion(to.data(), target, from.data(), source, 4, false); }));
    plain.push_back(secondsOf([&] { comm::copyBytes(dense.data(), from.data(), kElements * 4); }));
  }
  double us = median(strided) * 1e6, bound = median(plain) * 1e6;
  printf("%5ld  %10ld  %10ld  %9.1f  %9.2f  %9.1f  %6.2f\n", run * 4, sourceGap, targetGap, us, us * 1e3 / static_cast<double>(rows),
         bound, us / bound);
}

} // namespace

int main() {
  printf("copies of %ld KiB in runs of f32; times in us, per run in ns\n", kElements * 4 / 1024);
  printf("%5s  %10s  %10s  %9s  %9s  %9s  %6s\n", "bytes", "source gap", "target gap", "strided", "per run", "memcpy", "ratio");
  for (int64_t run : {1, 2, 4, 8, 16, 32, 128})
    row(run, 1, 8);
  for (int64_t run : {1, 2, 4, 8, 16, 32, 128})
    row(run, 8, 1);
}
