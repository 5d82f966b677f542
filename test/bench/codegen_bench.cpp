// Fused pointwise chains as msrun runs them against the memory bandwidth measured in the same run: copies of the same
// memory by as many threads, with plain stores and with stores that go around the caches. All count bytes read plus
// bytes written.
#include "test/bench/OneRank.h"
#include "test/bench/Timing.h"

#include "runtime/device/cpu/WorkerPool.h"

#include <immintrin.h>

using namespace msc;

namespace {

constexpr int64_t columns = 1024;
constexpr double aim = 85;

/// `length` operators on `rows` x `columns` elements that become one kernel; with a second input the first one adds it.
std::string chain(int length, bool twoInputs, int64_t rows) {
  static const char *const ops[] = {"Mul(%s, 0.5)", "Add(%s, 0.25)", "ReLU(%s)", "Abs(%s)"};
  std::string type = "f32[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  std::string text = "network chain(%v0: " + type + (twoInputs ? ", %w: " + type : "") + ") {\n";
  for (int i = 0; i < length; ++i) {
    std::string call = twoInputs && i == 0 ? "Add(%s, %w)" : ops[i % 4];
    call.replace(call.find("%s"), 2, "%v" + std::to_string(i));
    text += "  %v" + std::to_string(i + 1) + " = " + call + "\n";
  }
  return text + "  return out: %v" + std::to_string(length) + "\n}\ndataset {source: Random(seed: 1), columns: {v0: uniform" +
         (twoInputs ? ", w: uniform" : "") + "}, steps: 1}\n";
}

/// Moves whole vectors of 32 bytes.
template <bool aroundCaches>
__attribute__((target("avx2"))) void copyPart(std::byte *to, const std::byte *from, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 32) {
    __m256i vector = _mm256_load_si256(reinterpret_cast<const __m256i *>(from + i));
    auto *target = reinterpret_cast<__m256i *>(to + i);
    aroundCaches ? _mm256_stream_si256(target, vector) : _mm256_store_si256(target, vector);
  }
  _mm_sfence();
}

/// A copy by all threads of a pool, each a contiguous part.
struct Copy {
  std::byte *to;
  const std::byte *from;
  int64_t bytes;
  int64_t threads;

  template <bool aroundCaches> void run(device::WorkerPool &pool) {
    pool.run(
        threads,
        [](void *self, int64_t task, int) {
          auto *copy = static_cast<Copy *>(self);
          int64_t part = copy->bytes / copy->threads;
          copyPart<aroundCaches>(copy->to, copy->from, task * part, (task + 1) * part);
        },
        this);
  }
};

struct Bandwidth {
  double median, best; ///< GB/s
};
Bandwidth bandwidthOf(const std::vector<double> &seconds, double bytes) {
  return {bytes / bench::median(seconds) / 1e9, bytes / *std::min_element(seconds.begin(), seconds.end()) / 1e9};
}

/// Bytes of the working set that shows what a chain's arithmetic allows: it lies in the second-level cache.
constexpr int64_t smallest = 512 << 10;

/// Prints the bandwidth of a chain and its ratio to the faster copy. `fromCache` is the chain's own bandwidth on the
/// smallest working set: where it is less than the aim, arithmetic is the bound. Returns the best bandwidth.
double measure(int length, bool twoInputs, int64_t bytes, int threads, double fromCache) {
  int64_t buffers = twoInputs ? 3 : 2, rows = bytes / buffers / (columns * 4), part = rows * columns * 4;
  bench::OneRank rank(bench::compileText(chain(length, twoInputs, rows)), threads);
  device::CpuOptions share = device::shareOfHost(threads, 0, 1);
  device::WorkerPool pool(threads, share.processors);
  Copy copy{rank.memory("v" + std::to_string(length)), rank.memory("v0"), part, threads};
  for (const char *input : {"v0", "w"})
    if (twoInputs || *input == 'v')
      std::fill_n(reinterpret_cast<float *>(rank.memory(input)), rows * columns, 0.75f);
  // Each is repeated for about two milliseconds, after one run that brings the caches into its own state.
  int64_t times = std::max<int64_t>(1, 40'000'000 / (buffers * part));
  auto timed = [&](std::vector<double> &list, auto work) {
    work();
    list.push_back(bench::secondsOf([&] {
                     for (int64_t i = 0; i < times; ++i)
                       work();
                   }) /
                   static_cast<double>(times));
  };
  std::vector<double> ours, plain, around;
  for (int i = 0; i < 21; ++i) {
    timed(plain, [&] { copy.run<false>(pool); });
    timed(ours, [&] { rank.step(); });
    timed(around, [&] { copy.run<true>(pool); });
  }
  Bandwidth kernel = bandwidthOf(ours, static_cast<double>(buffers * part)), cached = bandwidthOf(plain, 2.0 * static_cast<double>(part)),
            streamed = bandwidthOf(around, 2.0 * static_cast<double>(part));
  double median = 100 * kernel.median / std::max(cached.median, streamed.median), best = 100 * kernel.best / std::max(cached.best, streamed.best);
  bool computes = bytes == smallest || fromCache < aim / 100 * std::max(cached.best, streamed.best);
  std::printf("%2d operators, %d in 1 out, %5.1f MiB, %d threads, %zu kernel: %6.1f GB/s (best %6.1f)  copy %6.1f (%6.1f)  "
              "around the caches %6.1f (%6.1f)  ratio %5.1f %% (best %5.1f %%)%s\n",
              length, twoInputs ? 2 : 1, static_cast<double>(buffers * part) / 1048576, threads, rank.steps(), kernel.median,
              kernel.best, cached.median, cached.best, streamed.median, streamed.best, median, best,
              best >= aim ? "" : computes ? "  bound by arithmetic" : "  below the aim");
  std::fflush(stdout);
  return kernel.best;
}

} // namespace

/// `codegen_bench [MIB]`: only one working set.
int main(int argc, char **argv) {
  std::vector<int64_t> sizes = {smallest, 3 << 20, 12 << 20, 48 << 20, 192 << 20, 768 << 20};
  if (argc > 1)
    sizes = {smallest, std::atoll(argv[1]) << 20};
  std::printf("fused chains on f32 against copies of the same memory; aim %.0f %%\n", aim);
  for (int threads : {1, 2})
    for (auto [length, twoInputs] : {std::pair(1, false), {4, false}, {4, true}, {16, false}}) {
      double fromCache = 0;
      for (int64_t bytes : sizes) {
        double best = measure(length, twoInputs, bytes, threads, fromCache);
        fromCache = bytes == smallest ? best : fromCache;
      }
    }
  return 0;
}
