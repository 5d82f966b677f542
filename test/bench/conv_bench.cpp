// The convolutions of ResNet-50 through msrun's CPU device against bare oneDNN, one thread each, in the same run. The bare
// library gets its tensors in the order that it wants and keeps them so; ours come and go as dense (N, C, H, W).
#include "test/bench/Timing.h"

#include "runtime/device/cpu/CpuDevice.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <random>
#include <string_view>

using namespace msc;

/// Of the OpenMP library that oneDNN uses; clang 19 brings no header for it here.
extern "C" void omp_set_num_threads(int count);

namespace {

struct Shape {
  int64_t channels, size, outputs, kernel, stride;
  int64_t times; ///< that the network has it
  int64_t padding() const { return kernel / 2; }
  int64_t outputSize() const { return (size + 2 * padding() - kernel) / stride + 1; }
};

/// Images of 224 px.
constexpr Shape shapes[] = {
    {3, 224, 64, 7, 2, 1},    {64, 56, 64, 1, 1, 1},     {64, 56, 64, 3, 1, 3},    {64, 56, 256, 1, 1, 4},   {256, 56, 64, 1, 1, 2},   {256, 56, 128, 1, 1, 1},
    {128, 56, 128, 3, 2, 1},  {256, 56, 512, 1, 2, 1},   {128, 28, 512, 1, 1, 4},  {512, 28, 128, 1, 1, 3},  {128, 28, 128, 3, 1, 3},  {512, 28, 256, 1, 1, 1},
    {256, 28, 256, 3, 2, 1},  {512, 28, 1024, 1, 2, 1},  {256, 14, 1024, 1, 1, 6}, {1024, 14, 256, 1, 1, 5}, {256, 14, 256, 3, 1, 5},  {1024, 14, 512, 1, 1, 1},
    {512, 14, 512, 3, 2, 1},  {1024, 14, 2048, 1, 2, 1}, {512, 7, 2048, 1, 1, 3},  {2048, 7, 512, 1, 1, 2},  {512, 7, 512, 3, 1, 2},
};

enum class Direction { Forward, ToInput, ToFilter };

/// 0.5 in bf16; twice that is a number in f32, too.
constexpr uint16_t halfBits = 0x3f00;

/// oneDNN alone with the orders of its choice.
class Bare {
public:
  Bare(const Shape &s, int64_t images, Direction direction, plan::DataType elements) : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    using Desc = dnnl::memory::desc;
    const auto type = elements == plan::BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    constexpr auto any = dnnl::memory::format_tag::any;
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    Desc x({images, s.channels, s.size, s.size}, type, any), w({s.outputs, s.channels, s.kernel, s.kernel}, type, any);
    Desc y({images, s.outputs, s.outputSize(), s.outputSize()}, type, any);
    dnnl::memory::dims strides{s.stride, s.stride}, pad{s.padding(), s.padding()};
    dnnl::convolution_forward::primitive_desc forward({dnnl::prop_kind::forward_training, direct, x, w, y, strides, pad, pad}, engine);
    if (direction == Direction::Forward) {
      primitive = dnnl::convolution_forward(forward);
      arguments = {{DNNL_ARG_SRC, memory(forward.src_desc())}, {DNNL_ARG_WEIGHTS, memory(forward.weights_desc())}, {DNNL_ARG_DST, memory(forward.dst_desc())}};
    } else if (direction == Direction::ToInput) {
      dnnl::convolution_backward_data::primitive_desc chosen({direct, x, w, y, strides, pad, pad}, engine, forward);
      primitive = dnnl::convolution_backward_data(chosen);
      arguments = {{DNNL_ARG_DIFF_SRC, memory(chosen.diff_src_desc())}, {DNNL_ARG_WEIGHTS, memory(chosen.weights_desc())},
                   {DNNL_ARG_DIFF_DST, memory(chosen.diff_dst_desc())}};
    } else {
      dnnl::convolution_backward_weights::primitive_desc chosen({direct, x, w, y, strides, pad, pad}, engine, forward);
      primitive = dnnl::convolution_backward_weights(chosen);
      arguments = {{DNNL_ARG_SRC, memory(chosen.src_desc())}, {DNNL_ARG_DIFF_WEIGHTS, memory(chosen.diff_weights_desc())},
                   {DNNL_ARG_DIFF_DST, memory(chosen.diff_dst_desc())}};
    }
  }
  void run() {
    primitive.execute(stream, arguments);
    stream.wait();
  }

private:
  dnnl::memory memory(const dnnl::memory::desc &desc) {
    dnnl::memory memory(desc, engine);
    std::fill_n(static_cast<uint16_t *>(memory.get_data_handle()), desc.get_size() / sizeof(uint16_t), halfBits);
    return memory;
  }
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

/// A convolution as a plan calls it.
class Ours {
public:
  Ours(const Shape &s, int64_t images, Direction direction, plan::DataType elements) : elements(elements) {
    CallTensor x = tensor({images, s.channels, s.size, s.size}), w = tensor({s.outputs, s.channels, s.kernel, s.kernel});
    CallTensor y = tensor({images, s.outputs, s.outputSize(), s.outputSize()});
    CallSpec spec;
    spec.kernel = direction == Direction::Forward ? "Conv2D" : direction == Direction::ToInput ? "Conv2DBackpropInput" : "Conv2DBackpropFilter";
    spec.operands = direction == Direction::Forward   ? std::vector{x, w}
                    : direction == Direction::ToInput ? std::vector{y, w}
                                                      : std::vector{y, x};
    spec.results = {direction == Direction::Forward ? y : direction == Direction::ToInput ? x : w};
    spec.attributes.set("stride", {s.stride});
    spec.attributes.set("pad", {s.padding()});
    spec.attributes.setText("pad_mode", "pad");
    spec.tasks = 64;
    auto made = device->prepareCall(spec);
    if (!made || !device->finishPreparation())
      std::exit(1);
    operation = std::move(*made);
  }
  void run() { (void)operation->run().isOk(); }

private:
  CallTensor tensor(const std::vector<int64_t> &shape) {
    memory.emplace_back(static_cast<size_t>(elementCount(shape)) * elementBytes(elements) / sizeof(uint16_t), halfBits);
    CallTensor result{elements, shape, {}, reinterpret_cast<std::byte *>(memory.back().data())};
    for (int64_t size : shape)
      result.box.push_back({0, size});
    return result;
  }
  std::unique_ptr<device::Device> device = device::createCpuDevice(*device::KernelLibrary::load(plan::Plan()), {1, {}});
  plan::DataType elements;
  std::vector<std::vector<uint16_t>> memory;
  std::unique_ptr<device::Operation> operation;
};

constexpr Direction directions[] = {Direction::Forward, Direction::ToInput, Direction::ToFilter};

/// No gradient flows to the images.
bool isThere(const Shape &s, Direction direction) { return direction != Direction::ToInput || s.channels != 3; }

/// Milliseconds of all convolutions of a training step in the bare library, each the best of three: no step takes less with these kernels.
double boundOf(int64_t images, int64_t pixels, plan::DataType elements) {
  double ms = 0;
  for (Shape s : shapes) {
    s.size = s.size * pixels / 224;
    for (Direction direction : directions) {
      if (!isThere(s, direction))
        continue;
      Bare bare(s, images, direction, elements);
      double least = 1e9;
      for (int i = 0; i < 3; ++i)
        least = std::min(least, bench::secondsOf([&] { bare.run(); }));
      ms += 1000 * static_cast<double>(s.times) * least;
    }
  }
  return ms;
}

} // namespace

/// `conv_bench [IMAGES] [bf16]`: 16 in f32 unless given. `conv_bench --bound IMAGES PIXELS THREADS [bf16]`: prints what a training step takes at least.
int main(int argc, char **argv) {
  if (argc > 4 && std::string_view(argv[1]) == "--bound") {
    omp_set_num_threads(std::atoi(argv[4]));
    const bool isNarrow = argc > 5 && std::string_view(argv[5]) == "bf16";
    std::printf("%.1f\n", boundOf(std::atoll(argv[2]), std::atoll(argv[3]), isNarrow ? plan::BF16 : plan::F32));
    return 0;
  }
  const int64_t images = argc > 1 ? std::atoll(argv[1]) : 16;
  const bool isNarrow = argc > 2 && std::string_view(argv[2]) == "bf16";
  const plan::DataType elements = isNarrow ? plan::BF16 : plan::F32;
  omp_set_num_threads(1);
  const dnnl_version_t *version = dnnl_version();
  std::printf("oneDNN %d.%d.%d, convolutions of ResNet-50, %ld images, %s, one thread; GFLOP/s, best of 5\n", version->major,
              version->minor, version->patch, images, isNarrow ? "bf16" : "f32");
  double ours = 0, theirs = 0;
  for (const Shape &s : shapes) {
    std::printf("%4ld x %3ld x %3ld -> %4ld, kernel %ld, stride %ld", s.channels, s.size, s.size, s.outputs, s.kernel, s.stride);
    double flops = 2.0 * static_cast<double>(images * s.outputs * s.outputSize() * s.outputSize() * s.channels * s.kernel * s.kernel);
    for (Direction direction : directions) {
      if (!isThere(s, direction))
        continue;
      Ours own(s, images, direction, elements);
      Bare bare(s, images, direction, elements);
      double mine = 1e9, other = 1e9;
      for (int i = 0; i < 5; ++i) {
        other = std::min(other, bench::secondsOf([&] { bare.run(); }));
        mine = std::min(mine, bench::secondsOf([&] { own.run(); }));
      }
      ours += mine, theirs += other;
      std::printf("  %s %5.1f / %5.1f = %3.0f %%", direction == Direction::Forward ? "forward" : direction == Direction::ToInput ? "input" : "filter",
                  flops / mine / 1e9, flops / other / 1e9, 100 * other / mine);
    }
    std::printf("\n");
  }
  std::printf("all of them: ratio %.1f %%\n", 100 * theirs / ours);
  return 0;
}
