// Matrix products through msrun's CPU device against bare oneDNN, one thread each, in the same run.
#include "test/bench/Timing.h"

#include "runtime/device/cpu/CpuDevice.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <random>
#include <unistd.h>

using namespace msc;

/// Of the OpenMP library that oneDNN uses; clang 19 brings no header for it here.
extern "C" void omp_set_num_threads(int count);

namespace {

/// oneDNN alone, on all threads that OpenMP has.
class Bare {
public:
  Bare(int64_t n, void *left, void *right, float *result, dnnl::memory::data_type type = dnnl::memory::data_type::f32)
      : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    dnnl::memory::desc factor({n, n}, type, dnnl::memory::dims{n, 1}), matrix({n, n}, dnnl::memory::data_type::f32, dnnl::memory::dims{n, 1});
    product = dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(factor, factor, matrix), engine));
    arguments = {{DNNL_ARG_SRC, dnnl::memory(factor, engine, left)},
                 {DNNL_ARG_WEIGHTS, dnnl::memory(factor, engine, right)},
                 {DNNL_ARG_DST, dnnl::memory(matrix, engine, result)}};
  }
  void run() {
    product.execute(stream, arguments);
    stream.wait();
  }

private:
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::matmul product;
  std::unordered_map<int, dnnl::memory> arguments;
};

/// The task count that the compiler gives a product of this size: see passes/plan/BuildPlan.cpp.
int64_t tasksFor(int64_t n) {
  int64_t most = std::clamp<int64_t>(std::max(n / 256, std::min<int64_t>(n / 128, 2)), 1, 64);
  return std::clamp<int64_t>(2 * n * n * n / 16'000'000, 1, most);
}

std::unique_ptr<device::Operation> prepare(device::Device &device, int64_t n, int64_t tasks, std::byte *arena) {
  auto bytes = static_cast<size_t>(n * n) * sizeof(float);
  device::MatMulSpec spec;
  spec.rows = spec.columns = spec.depth = n;
  spec.left = arena, spec.right = arena + bytes, spec.result = arena + 2 * bytes;
  spec.batches = {{}};
  spec.tasks = tasks;
  auto operation = device.prepareMatMul(spec);
  if (!operation || !device.finishPreparation())
    std::exit(1);
  return std::move(*operation);
}

void measure(int64_t n, int threads, int64_t tasks) {
  plan::Plan empty;
  auto device = device::createCpuDevice(*device::KernelLibrary::load(empty), {threads, {}});
  auto bytes = static_cast<uint64_t>(n * n) * sizeof(float);
  auto arena = device->allocateArena(3 * bytes);
  if (!arena)
    std::exit(1);
  auto *numbers = reinterpret_cast<float *>(*arena);
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::generate_n(numbers, 2 * n * n, [&] { return uniform(engine); });
  auto operation = prepare(*device, n, tasks, *arena);
  omp_set_num_threads(threads);
  Bare bare(n, numbers, numbers + n * n, numbers + 2 * n * n);
  std::vector<double> ours, theirs;
  const int repetitions = n >= 4096 ? 5 : n >= 2048 ? 11 : 41;
  for (int i = 0; i < repetitions; ++i) {
    omp_set_num_threads(threads);
    theirs.push_back(bench::secondsOf([&] { bare.run(); }));
    ours.push_back(bench::secondsOf([&] { (void)operation->run().isOk(); }));
  }
  double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  double bestOurs = *std::min_element(ours.begin(), ours.end()), bestTheirs = *std::min_element(theirs.begin(), theirs.end());
  std::printf("%5ld  %d threads  %3ld tasks  msrun %7.1f GFLOP/s (best %7.1f)  oneDNN %7.1f GFLOP/s (best %7.1f)  ratio %.1f %% (best %.1f %%; aim 98 %%)\n",
              n, threads, tasks, flops / bench::median(ours) / 1e9, flops / bestOurs / 1e9, flops / bench::median(theirs) / 1e9,
              flops / bestTheirs / 1e9, 100 * bench::median(theirs) / bench::median(ours), 100 * bestTheirs / bestOurs);
}

/// A product of GPT-2's against the library's with its operands as they lie, on one thread.
void measureLayer(int64_t rows, int64_t depth, int64_t columns, bool transposeRight) {
  plan::Plan empty;
  auto device = device::createCpuDevice(*device::KernelLibrary::load(empty), {1, {}});
  std::vector<float> left(static_cast<size_t>(rows * depth), 0.5f), right(static_cast<size_t>(depth * columns), 0.5f),
      result(static_cast<size_t>(rows * columns));
  device::MatMulSpec spec;
  spec.rows = rows, spec.columns = columns, spec.depth = depth, spec.transposeRight = transposeRight;
  spec.left = reinterpret_cast<std::byte *>(left.data()), spec.right = reinterpret_cast<std::byte *>(right.data());
  spec.result = reinterpret_cast<std::byte *>(result.data());
  spec.batches = {{}};
  spec.tasks = rows / 256;
  auto operation = device->prepareMatMul(spec);
  if (!operation || !device->finishPreparation())
    std::exit(1);
  omp_set_num_threads(1);
  using Desc = dnnl::memory::desc;
  constexpr auto f32 = dnnl::memory::data_type::f32;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  Desc a({rows, depth}, f32, dnnl::memory::dims{depth, 1}), c({rows, columns}, f32, dnnl::memory::dims{columns, 1});
  Desc b({depth, columns}, f32, transposeRight ? dnnl::memory::dims{1, depth} : dnnl::memory::dims{columns, 1});
  dnnl::matmul product(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), engine));
  std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, dnnl::memory(a, engine, left.data())},
                                                  {DNNL_ARG_WEIGHTS, dnnl::memory(b, engine, right.data())},
                                                  {DNNL_ARG_DST, dnnl::memory(c, engine, result.data())}};
  std::vector<double> ours, theirs;
  for (int i = 0; i < 15; ++i) {
    theirs.push_back(bench::secondsOf([&] { product.execute(stream, arguments), stream.wait(); }));
    ours.push_back(bench::secondsOf([&] { (void)(*operation)->run().isOk(); }));
  }
  double flops = 2e-9 * static_cast<double>(rows * depth) * static_cast<double>(columns);
  std::printf("%5ld x %5ld x %5ld%s  1 thread   msrun %7.1f GFLOP/s  oneDNN as it lies %7.1f GFLOP/s  ratio %.2f\n", rows, depth, columns,
              transposeRight ? " transposed" : "           ", flops / bench::median(ours), flops / bench::median(theirs),
              bench::median(theirs) / bench::median(ours));
}

/// Kernels that read bf16 against those that read f32, both of oneDNN, on one thread: see decisions/0013. The numbers do not matter.
void measureNarrow(int64_t n) {
  std::vector<float> left(static_cast<size_t>(n * n), 1), right(left), result(left);
  std::vector<uint16_t> narrow(left.size(), 0x3f80);
  omp_set_num_threads(1);
  Bare wide(n, left.data(), right.data(), result.data());
  std::vector<double> f32, bf16;
  try {
    Bare half(n, narrow.data(), narrow.data(), result.data(), dnnl::memory::data_type::bf16);
    for (int i = 0; i < 41; ++i) {
      f32.push_back(bench::secondsOf([&] { wide.run(); }));
      bf16.push_back(bench::secondsOf([&] { half.run(); }));
    }
  } catch (const dnnl::error &) {
    std::printf("%5ld  skipped: oneDNN has no products of bf16 here\n", n);
    return;
  }
  std::printf("%5ld  oneDNN's bf16 %.2f x its f32 (best %.2f x)\n", n, bench::median(f32) / bench::median(bf16),
              *std::min_element(f32.begin(), f32.end()) / *std::min_element(bf16.begin(), bf16.end()));
}

} // namespace

/// `matmul_bench [TASKS]`: another cut than the compiler's.
int main(int argc, char **argv) {
  // OpenMP's threads spin for milliseconds after a parallel region and would take the cores of what is measured next.
  if (!std::getenv("OMP_WAIT_POLICY")) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
  }
  const int64_t tasks = argc > 1 ? std::atoll(argv[1]) : 0;
  const dnnl_version_t *version = dnnl_version();
  std::printf("oneDNN %d.%d.%d, n x n x n, f32\n", version->major, version->minor, version->patch);
  for (int threads : {1, 2})
    for (int64_t n : {1024, 2048, 4096})
      measure(n, threads, tasks > 0 ? tasks : tasksFor(n));
  for (bool transposed : {false, true})
    for (auto [depth, columns] : {std::pair<int64_t, int64_t>{768, 768}, {768, 3072}, {3072, 768}})
      measureLayer(1024, depth, columns, transposed);
  for (int64_t n : {128, 512, 1024})
    measureNarrow(n);
  return 0;
}
