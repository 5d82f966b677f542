// Pooling, norms and softmax over shapes of ResNet-50 and GPT-2 small against bare oneDNN, in the same run: forward, and forward with
// gradient. Images come and go as dense (N, C, H, W) here; the library has them so and with channels in blocks of 16, and the faster
// counts. Ours does a little more: in training it also multiplies the result by its gradient, adds that up, and updates x.
#include "test/bench/OneRank.h"
#include "test/bench/Timing.h"

#include <dnnl.hpp>
#include <functional>
#include <optional>
#include <unordered_map>

using namespace msc;

/// Of the OpenMP library that oneDNN uses; clang 19 brings no header for it here.
extern "C" void omp_set_num_threads(int count);

namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;

std::string shapeText(const Dims &dims) {
  std::string text;
  for (int64_t size : dims)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "f32[" + text + "]";
}

/// Primitives of the library with their memory.
class Bare {
public:
  Bare() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {}

  void add(const dnnl::primitive &primitive, const std::vector<std::pair<int, Desc>> &wanted) {
    std::unordered_map<int, dnnl::memory> arguments;
    for (const auto &[argument, desc] : wanted) {
      auto [found, isNew] = memory.try_emplace(argument, desc, engine);
      if (isNew)
        std::fill_n(static_cast<float *>(found->second.get_data_handle()), desc.get_size() / sizeof(float), 0.5f);
      arguments.emplace(argument, found->second);
    }
    steps.emplace_back(primitive, std::move(arguments));
  }
  void run() {
    for (auto &[primitive, arguments] : steps)
      primitive.execute(stream, arguments);
    stream.wait();
  }

  dnnl::engine engine;

private:
  dnnl::stream stream;
  std::unordered_map<int, dnnl::memory> memory;
  std::vector<std::pair<dnnl::primitive, std::unordered_map<int, dnnl::memory>>> steps;
};

struct Case {
  std::string name;
  Dims x, y;
  std::string parameters; ///< of the network, beside x
  std::string call;       ///< from %x to %y
  std::function<void(Bare &, Tag, bool isTrained)> build;
};

constexpr auto training = dnnl::prop_kind::forward_training;

/// `call`: from %x to %y.
Case pool(const std::string &name, const std::string &call, dnnl::algorithm algorithm, int64_t n, int64_t c, int64_t size) {
  Dims x{n, c, size, size}, y{n, c, size / 2, size / 2};
  return {name + " 3 x 3, stride 2, " + shapeText(x), x, y, "", call,
          [=](Bare &bare, Tag tag, bool isTrained) {
            Desc source(x, f32, tag), result(y, f32, tag);
            Dims strides{2, 2}, kernel{3, 3}, before{1, 1}, after{0, 0};
            dnnl::pooling_forward::primitive_desc forward(
                {isTrained ? training : dnnl::prop_kind::forward_inference, algorithm, source, result, strides, kernel, before, after}, bare.engine);
            std::vector<std::pair<int, Desc>> arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, result}};
            const bool isMax = algorithm == dnnl::algorithm::pooling_max; // remembers places
            if (isTrained && isMax)
              arguments.push_back({DNNL_ARG_WORKSPACE, forward.workspace_desc()});
            bare.add(dnnl::pooling_forward(forward), arguments);
            if (!isTrained)
              return;
            dnnl::pooling_backward::primitive_desc backward({algorithm, source, result, strides, kernel, before, after}, bare.engine, forward);
            std::vector<std::pair<int, Desc>> back{{DNNL_ARG_DIFF_DST, result}, {DNNL_ARG_DIFF_SRC, source}};
            if (isMax)
              back.push_back({DNNL_ARG_WORKSPACE, forward.workspace_desc()});
            bare.add(dnnl::pooling_backward(backward), back);
          }};
}

Case batchNorm(int64_t n, int64_t c, int64_t size) {
  Dims x{n, c, size, size};
  std::string channels = "f32[" + std::to_string(c) + "]";
  return {"batch norm " + shapeText(x), x, x,
          "  param %g: " + channels + " = Ones()\n  param %b: " + channels + " = Zeros()\n  param %m: " + channels +
              " = Zeros() {requires_grad: false}\n  param %v: " + channels + " = Ones() {requires_grad: false}\n",
          "%y, %mean, %variance = BatchNorm(%x, %g, %b, %m, %v, is_training: true)",
          [=](Bare &bare, Tag tag, bool isTrained) {
            Desc data(x, f32, tag), scale({2, c}, f32, Tag::nc), statistics({c}, f32, Tag::a);
            auto flags = dnnl::normalization_flags::use_scale_shift;
            dnnl::batch_normalization_forward::primitive_desc forward({training, data, 1e-5f, flags}, bare.engine);
            std::vector<std::pair<int, Desc>> both{{DNNL_ARG_SRC, data}, {DNNL_ARG_MEAN, statistics}, {DNNL_ARG_VARIANCE, statistics}, {DNNL_ARG_SCALE_SHIFT, scale}};
            auto arguments = both;
            arguments.push_back({DNNL_ARG_DST, data});
            bare.add(dnnl::batch_normalization_forward(forward), arguments);
            if (!isTrained)
              return;
            dnnl::batch_normalization_backward::primitive_desc backward({dnnl::prop_kind::backward, data, data, 1e-5f, flags}, bare.engine, forward);
            both.insert(both.end(), {{DNNL_ARG_DIFF_DST, data}, {DNNL_ARG_DIFF_SRC, data}, {DNNL_ARG_DIFF_SCALE_SHIFT, scale}});
            bare.add(dnnl::batch_normalization_backward(backward), both);
          }};
}

Case layerNorm(int64_t rows, int64_t width) {
  Dims x{rows, width};
  std::string columns = "f32[" + std::to_string(width) + "]";
  return {"layer norm " + shapeText(x), x, x, "  param %g: " + columns + " = Ones()\n  param %b: " + columns + " = Zeros()\n",
          "%y, %mean, %variance = LayerNorm(%x, %g, %b, begin_norm_axis: -1, begin_params_axis: -1)",
          [=](Bare &bare, Tag tag, bool isTrained) {
            Desc data(x, f32, tag), scale({2, width}, f32, Tag::nc), statistics({rows}, f32, Tag::a);
            auto flags = dnnl::normalization_flags::use_scale_shift;
            dnnl::layer_normalization_forward::primitive_desc forward({training, data, statistics, 1e-5f, flags}, bare.engine);
            std::vector<std::pair<int, Desc>> both{{DNNL_ARG_SRC, data}, {DNNL_ARG_MEAN, statistics}, {DNNL_ARG_VARIANCE, statistics}, {DNNL_ARG_SCALE_SHIFT, scale}};
            auto arguments = both;
            arguments.push_back({DNNL_ARG_DST, data});
            bare.add(dnnl::layer_normalization_forward(forward), arguments);
            if (!isTrained)
              return;
            dnnl::layer_normalization_backward::primitive_desc backward({dnnl::prop_kind::backward, data, data, statistics, 1e-5f, flags}, bare.engine, forward);
            both.insert(both.end(), {{DNNL_ARG_DIFF_DST, data}, {DNNL_ARG_DIFF_SRC, data}, {DNNL_ARG_DIFF_SCALE_SHIFT, scale}});
            bare.add(dnnl::layer_normalization_backward(backward), both);
          }};
}

Case softmax(int64_t rows, int64_t width) {
  Dims x{rows, width};
  return {"softmax " + shapeText(x), x, x, "", "%y = Softmax(%x)", [=](Bare &bare, Tag tag, bool isTrained) {
            Desc data(x, f32, tag);
            dnnl::softmax_forward::primitive_desc forward({training, data, 1}, bare.engine);
            bare.add(dnnl::softmax_forward(forward), {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}});
            if (!isTrained)
              return;
            dnnl::softmax_backward::primitive_desc backward({data, data, 1}, bare.engine, forward);
            bare.add(dnnl::softmax_backward(backward), {{DNNL_ARG_DST, data}, {DNNL_ARG_DIFF_DST, data}, {DNNL_ARG_DIFF_SRC, data}});
          }};
}

std::string networkOf(const Case &test, bool isTrained) {
  std::string x = shapeText(test.x), y = shapeText(test.y);
  if (!isTrained)
    return "network n(%x: " + x + ") {\n" + test.parameters + "  " + test.call + "\n  return out: %y\n}\n" +
           "dataset {source: Random(seed: 1), columns: {x: uniform}, steps: 1}\n";
  return "network n(%d: " + y + ") {\n  param %x: " + x + " = Uniform(1.0)\n" + test.parameters + "  " + test.call +
         "\n  %p = Mul(%y, %d)\n  %loss = ReduceSum(%p)\n  return loss: %loss\n}\n" +
         "dataset {source: Random(seed: 1), columns: {d: uniform}, steps: 1}\ntrain {optimizer: SGD(learning_rate: 1e-9), minimize: loss, steps: 1}\n";
}

/// Milliseconds of ours and of the library in the order that is faster.
void measure(const Case &test, bool isTrained, int threads) {
  bench::OneRank rank(bench::compileText(networkOf(test, isTrained)), threads);
  float *data = reinterpret_cast<float *>(rank.memory(isTrained ? "d" : "x"));
  const Dims &filled = isTrained ? test.y : test.x;
  int64_t count = 1;
  for (int64_t size : filled)
    count *= size;
  for (int64_t i = 0; i < count; ++i)
    data[i] = static_cast<float>(i % 97) / 97;
  std::vector<Tag> tags = test.x.size() == 4 ? std::vector{Tag::nchw, Tag::nChw16c} : std::vector{Tag::nc};
  std::vector<Bare> bare(tags.size());
  for (size_t i = 0; i < tags.size(); ++i)
    test.build(bare[i], tags[i], isTrained);
  std::vector<double> ours;
  std::vector<std::vector<double>> theirs(tags.size());
  for (int i = 0; i < 15; ++i) {
    for (size_t t = 0; t < tags.size(); ++t)
      theirs[t].push_back(bench::secondsOf([&] { bare[t].run(); }));
    ours.push_back(bench::secondsOf([&] { rank.step(); }));
  }
  auto best = [](const std::vector<double> &times) { return *std::min_element(times.begin(), times.end()) * 1e3; };
  double dense = best(theirs[0]), blocked = best(theirs.back()), own = best(ours), fastest = std::min(dense, blocked);
  std::printf("%-52s %-8s %d thread%s %8.2f ms, oneDNN %8.2f", test.name.c_str(), isTrained ? "training" : "forward", threads,
              threads > 1 ? "s" : " ", own, dense);
  if (tags.size() > 1)
    std::printf(", blocked %8.2f", blocked);
  std::printf("   ratio %.2f\n", fastest / own);
  std::fflush(stdout);
}

} // namespace

int main() {
  const dnnl_version_t *version = dnnl_version();
  std::printf("oneDNN %d.%d.%d, f32, best of 15; a ratio above 1: ours takes less than the library in its faster order\n", version->major,
              version->minor, version->patch);
  for (int threads : {1, 2}) {
    omp_set_num_threads(threads);
    const Case most = pool("max pool", "%y = MaxPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: 1)", dnnl::algorithm::pooling_max, 32, 64, 112);
    const Case mean = pool("average pool", "%y = AvgPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: 1)",
                           dnnl::algorithm::pooling_avg_exclude_padding, 32, 64, 112);
    for (const Case &test : {most, mean, batchNorm(32, 64, 56), batchNorm(32, 256, 14), batchNorm(32, 2048, 7), layerNorm(1024, 768),
                             softmax(12288, 256), softmax(1024, 50257)})
      for (bool isTrained : {false, true})
        measure(test, isTrained, threads);
  }
}
