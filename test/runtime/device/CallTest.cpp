// Kernels that plans call by name: numbers in every element type, the same bits with any number of threads, refusals.
#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"
#include "runtime/device/cpu/calls/MaxWindows.h"
#include "runtime/plan/calls/Window.h"
#include "test/runtime/device/RunCall.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace msc;
using namespace msc::device;

namespace {

/// A tensor that a rank holds whole, with its own memory.
template <typename Element> struct Whole {
  std::vector<int64_t> shape;
  std::vector<Element> elements;

  explicit Whole(std::vector<int64_t> shape) : shape(std::move(shape)), elements(elementCount(this->shape)) {}
  CallTensor tensor(plan::DataType type) {
    CallTensor result{type, shape, {}, reinterpret_cast<std::byte *>(elements.data())};
    for (int64_t size : shape)
      result.box.push_back({0, size});
    return result;
  }
  void draw() {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> uniform(-40, 40); // eighths: exact in every type
    for (Element &element : elements)
      element = static_cast<Element>(static_cast<float>(uniform(random)) / 8);
  }
};

CallSpec pool(const char *kernel, std::vector<CallTensor> operands, CallTensor result) {
  CallSpec spec{kernel, std::move(operands), {std::move(result)}};
  spec.attributes.set("kernel_size", {3, 2});
  spec.attributes.set("strides", {2});
  spec.attributes.setText("pad_mode", "same");
  spec.tasks = 5;
  return spec;
}

template <typename Element> void poolingIsRight(plan::DataType type) {
  Whole<Element> x({2, 3, 5, 6}), most({2, 3, 3, 3}), mean({2, 3, 3, 3}), slope({2, 3, 5, 6});
  x.draw();
  EXPECT_TRUE(runCall(pool("MaxPool", {x.tensor(type)}, most.tensor(type)), 2));
  EXPECT_TRUE(runCall(pool("AvgPool", {x.tensor(type)}, mean.tensor(type)), 2));
  EXPECT_TRUE(runCall(pool("MaxPoolGrad", {x.tensor(type), most.tensor(type)}, slope.tensor(type)), 2));
  double sumOfSlopes = 0, sumOfMost = 0;
  for (int64_t plane = 0; plane < 6; ++plane)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        float largest = -INFINITY, sum = 0, count = 0;
        for (int64_t row = std::max<int64_t>(0, 2 * i - 1); row < std::min<int64_t>(5, 2 * i + 2); ++row)
          for (int64_t column = 2 * j; column < 2 * j + 2; ++column, ++count) {
            auto value = static_cast<float>(x.elements[plane * 30 + row * 6 + column]);
            largest = std::max(largest, value);
            sum += value;
          }
        int64_t at = plane * 9 + i * 3 + j;
        EXPECT_EQ(static_cast<float>(most.elements[at]), largest) << at;
        double tolerance = type == plan::BF16 ? 0.03 : type == plan::F16 ? 0.004 : 1e-6;
        EXPECT_NEAR(static_cast<float>(mean.elements[at]), sum / count, tolerance) << at;
        sumOfMost += static_cast<double>(largest);
      }
  for (Element value : slope.elements)
    sumOfSlopes += static_cast<double>(static_cast<float>(value));
  EXPECT_NEAR(sumOfSlopes, sumOfMost, type == plan::BF16 ? 0.5 : 1e-3);
}

TEST(Calls, PoolingIsRightInEveryType) {
  poolingIsRight<float>(plan::F32);
  poolingIsRight<double>(plan::F64);
  poolingIsRight<_Float16>(plan::F16);
  poolingIsRight<device::calls::BFloat16>(plan::BF16);
}

TEST(Calls, NanIsTheLargest) {
  Whole<float> x({1, 1, 2, 2}), y({1, 1, 1, 1}), dx({1, 1, 2, 2});
  x.elements = {1, NAN, 3, INFINITY};
  CallSpec spec{"MaxPool", {x.tensor(plan::F32)}, {y.tensor(plan::F32)}};
  spec.attributes.set("kernel_size", {2});
  spec.attributes.set("strides", {2});
  EXPECT_TRUE(runCall(spec, 1));
  EXPECT_TRUE(std::isnan(y.elements[0]));
  y.elements = {5};
  spec.kernel = "MaxPoolGrad";
  spec.operands.push_back(y.tensor(plan::F32));
  spec.results = {dx.tensor(plan::F32)};
  EXPECT_TRUE(runCall(spec, 1));
  EXPECT_EQ(dx.elements, (std::vector<float>{0, 5, 0, 0}));
}

/// Rows so wide that windows are searched many at a time, against a plain search: of equal ones the first counts, NaN most of all.
TEST(Calls, LargestOfManyWindows) {
  std::mt19937 random(2);
  for (int64_t columns : {15, 33, 34, 47, 70})
    for (int64_t kernel : {1, 2, 3})
      for (int64_t step : {1, 2, 3})
        for (const char *mode : {"valid", "same"}) {
          const int64_t rows = 7;
          auto windows = [&](int64_t size) { return *mode == 's' ? (size + step - 1) / step : (size - kernel) / step + 1; };
          auto before = [&](int64_t size) { return *mode == 's' ? std::max<int64_t>(0, (windows(size) - 1) * step + kernel - size) / 2 : 0; };
          Whole<float> x({2, 1, rows, columns}), y({2, 1, windows(rows), windows(columns)}), dx(x.shape);
          for (float &value : x.elements)
            value = random() % 40 == 0 ? NAN : static_cast<float>(random() % 3);
          std::vector<float> largest(y.elements.size()), slope(x.elements.size());
          for (int64_t i = 0; i < static_cast<int64_t>(largest.size()); ++i) {
            int64_t j = i % windows(columns), at = -1, plane = i / windows(columns) / windows(rows);
            int64_t top = i / windows(columns) % windows(rows) * step - before(rows), left = j * step - before(columns);
            for (int64_t r = std::max<int64_t>(0, top); r < std::min(rows, top + kernel); ++r)
              for (int64_t c = std::max<int64_t>(0, left); c < std::min(columns, left + kernel); ++c) {
                int64_t here = (plane * rows + r) * columns + c;
                float value = x.elements[here], sofar = at < 0 ? 0 : x.elements[at];
                if (at < 0 || value > sofar || (std::isnan(value) && !std::isnan(sofar)))
                  at = here;
              }
            largest[i] = x.elements[at];
            slope[at] += static_cast<float>(i + 1);
          }
          CallSpec spec = pool("MaxPool", {x.tensor(plan::F32)}, y.tensor(plan::F32));
          spec.attributes.set("kernel_size", {kernel});
          spec.attributes.set("strides", {step});
          spec.attributes.setText("pad_mode", mode);
          ASSERT_TRUE(runCall(spec, 2));
          for (size_t i = 0; i < largest.size(); ++i)
            ASSERT_TRUE(y.elements[i] == largest[i] || (std::isnan(y.elements[i]) && std::isnan(largest[i])))
                << i << ", " << columns << " columns, kernel " << kernel << ", step " << step << " " << mode;
          std::iota(y.elements.begin(), y.elements.end(), 1.0f);
          spec.kernel = "MaxPoolGrad";
          spec.operands.push_back(y.tensor(plan::F32));
          spec.results = {dx.tensor(plan::F32)};
          ASSERT_TRUE(runCall(spec, 2));
          ASSERT_EQ(dx.elements, slope) << columns << " columns, kernel " << kernel << ", step " << step << " " << mode;
        }
}

TEST(Calls, WindowsAreSearchedAlikeByEveryInstructionSet) {
  constexpr int64_t rowLength = 50, rows = 4, columns = 3;
  std::vector<float> x(rows * rowLength);
  std::mt19937 random(3);
  for (float &value : x)
    value = random() % 20 == 0 ? NAN : static_cast<float>(random() % 5);
  for (int64_t step : {1, 2}) {
    std::vector<int32_t> expected;
    for (int64_t i = 0; i < device::calls::kMaxWindows; ++i) {
      int64_t best = 0;
      for (int64_t place = 0; place < (rows - 1) * rowLength + columns; ++place)
        if (float value = x[i * step + place], sofar = x[i * step + best];
            place % rowLength < columns && (value > sofar || (std::isnan(value) && !std::isnan(sofar))))
          best = place;
      expected.push_back(static_cast<int32_t>(best));
    }
    std::vector searches{device::calls::v3::largestOfWindows(step)};
    if (__builtin_cpu_supports("x86-64-v4"))
      searches.push_back(device::calls::v4::largestOfWindows(step));
    for (device::calls::LargestOfWindows search : searches) {
      std::vector<float> most(device::calls::kMaxWindows);
      std::vector<int32_t> places(most.size());
      search({x.data(), rowLength, rows, columns}, most.data(), places.data());
      EXPECT_EQ(places, expected);
      for (size_t i = 0; i < most.size(); ++i)
        EXPECT_EQ(std::memcmp(&most[i], &x[static_cast<int64_t>(i) * step + expected[i]], sizeof(float)), 0);
    }
  }
  EXPECT_EQ(device::calls::v3::largestOfWindows(3), nullptr);
}

/// One convolution in some form: sizes, window, groups.
struct ConvolutionCase {
  std::vector<int64_t> x, w;
  std::vector<int64_t> stride = {1}, dilation = {1}, pad = {0};
  std::string mode = "valid";
  int64_t group = 1;
};

/// The three tensors of a case, with numbers that f32 adds exactly.
template <typename Element> struct ConvolutionTensors {
  Whole<Element> x, w, y;
  CallAttributes attributes;

  explicit ConvolutionTensors(const ConvolutionCase &c) : x(c.x), w(c.w), y(shapeOf(c)) {
    x.draw(), w.draw(), y.draw();
    attributes.set("stride", c.stride);
    attributes.set("dilation", c.dilation);
    attributes.set("pad", c.pad);
    attributes.setText("pad_mode", c.mode);
    attributes.set("group", {c.group});
  }
  static std::vector<int64_t> shapeOf(const ConvolutionCase &c) {
    std::string why;
    auto windows = *windowsOver({{c.w[2], c.w[3]}, c.stride, c.dilation, "stride", c.mode, c.pad}, c.x[2], c.x[3], why);
    return {c.x[0], c.w[0], windows[0].output, windows[1].output};
  }
  /// A tensor as the one that the kernel computes.
  Whole<Element> resultOf(const std::string &kernel) { return Whole<Element>((kernel == "Conv2D" ? y : kernel == "Conv2DBackpropInput" ? x : w).shape); }
  /// Computes it from the two others.
  CallSpec specOf(const std::string &kernel, plan::DataType type, Whole<Element> &result, int64_t tasks) {
    CallSpec spec{kernel, {}, {result.tensor(type)}, attributes, tasks};
    if (kernel == "Conv2D")
      spec.operands = {x.tensor(type), w.tensor(type)};
    else if (kernel == "Conv2DBackpropInput")
      spec.operands = {y.tensor(type), w.tensor(type)};
    else
      spec.operands = {y.tensor(type), x.tensor(type)};
    return spec;
  }
  std::vector<Element> compute(const std::string &kernel, plan::DataType type, int threads, int64_t tasks) {
    Whole<Element> result = resultOf(kernel);
    Status status = runCall(specOf(kernel, type, result, tasks), threads);
    EXPECT_TRUE(status) << status.error().message;
    return result.elements;
  }
};

const ConvolutionCase convolutionCases[] = {
    {{3, 5, 9, 8}, {7, 5, 3, 3}, {1}, {1}, {1}, "pad"},
    {{5, 16, 16, 16}, {32, 16, 1, 1}},
    {{2, 16, 17, 16}, {33, 16, 1, 1}, {2}},
    {{3, 16, 18, 16}, {33, 16, 1, 1}, {2, 3}},
    {{3, 24, 16, 48}, {9, 24, 1, 1}, {2}},
    {{7, 9, 5, 4}, {17, 9, 1, 1}},
    {{4, 64, 1, 1}, {64, 64, 3, 3}, {2}, {1}, {1}, "pad"}, // parts of the kernel meet no input
    {{2, 40, 8, 8}, {40, 40, 3, 3}, {1}, {2}, {0}, "same"},
    {{3, 67, 5, 5}, {75, 67, 2, 2}, {3}, {1}, {1, 2, 1, 0}, "pad"}, // the last windows meet none
    {{3, 300, 3, 3}, {200, 300, 3, 3}, {1}, {1}, {0}, "same"}, // tasks are output channels
    {{2, 1200, 4, 4}, {230, 1200, 1, 1}},
    {{4, 3, 13, 12}, {16, 3, 7, 7}, {2}, {1}, {3}, "pad"},
    {{2, 6, 9, 9}, {6, 1, 3, 3}, {2, 1}, {1}, {0}, "same", 6},
    {{2, 6, 9, 9}, {4, 3, 2, 3}, {1}, {2}, {1, 0, 2, 1}, "pad", 2},
    {{9, 20, 4, 4}, {12, 20, 3, 3}, {1}, {1}, {0}, "same"},
    {{1, 1, 1, 1}, {1, 1, 1, 1}},
};

TEST(Calls, ConvolutionByTheLibraryIsTheDefinition) {
  for (const ConvolutionCase &c : convolutionCases)
    for (const char *kernel : {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"}) {
      ConvolutionTensors<float> single(c);
      ConvolutionTensors<double> exact(c);
      std::vector<double> expected = exact.compute(kernel, plan::F64, 1, 3);
      for (int64_t tasks : {1, 4, 64}) {
        std::vector<float> one = single.compute(kernel, plan::F32, 1, tasks), three = single.compute(kernel, plan::F32, 3, tasks);
        EXPECT_EQ(one, three) << kernel << ": threads change bits";
        double largest = 0, worst = 0;
        for (size_t i = 0; i < expected.size(); ++i) {
          largest = std::max(largest, std::fabs(expected[i]));
          worst = std::max(worst, std::fabs(expected[i] - static_cast<double>(one[i])));
        }
        EXPECT_LE(worst, 1e-6 * largest) << kernel << " " << c.x[0] << "x" << c.x[1] << " in " << tasks << " tasks";
      }
    }
}

/// Where the working memory of an operation lies changes no bit of its result, and nothing beside it.
TEST(Calls, LargeWorkingMemoryIsTakenWhereSomeIsFree) {
  ConvolutionTensors<float> tensors({{8, 128, 28, 28}, {128, 128, 3, 3}, {1}, {1}, {0}, "same"});
  const std::string kernel = "Conv2DBackpropFilter";
  constexpr size_t apart = 64;
  auto run = [&](size_t free, uint64_t &allocated) {
    Whole<float> result = tensors.resultOf(kernel);
    std::unique_ptr<device::Device> device = device::createCpuDevice(*device::KernelLibrary::load(plan::Plan()), {2, {}});
    auto operation = device->prepareCall(tensors.specOf(kernel, plan::F32, result, 8));
    EXPECT_TRUE(operation);
    std::vector<std::byte> memory(2 * free + 3 * apart, std::byte{7}); // two ranges that begin anywhere
    auto freeWhile = [&](const device::Operation &) {
      return std::vector<std::span<std::byte>>{{memory.data() + apart, free}, {memory.data() + 2 * apart + free, free}};
    };
    EXPECT_TRUE(device->finishPreparation(freeWhile));
    EXPECT_TRUE((*operation)->run());
    allocated = device->allocatedBytes();
    for (size_t from : {size_t(0), apart + free, 2 * apart + 2 * free})
      for (size_t i = 0; i < apart; ++i)
        EXPECT_EQ(memory[from + i], std::byte{7});
    return result.elements;
  };
  uint64_t alone = 0, partly = 0, inside = 0;
  const std::vector<float> expected = run(0, alone);
  EXPECT_EQ(run(alone / 2, partly), expected); // one of its three blocks fits into either range
  EXPECT_EQ(run(alone, inside), expected);
  EXPECT_LT(partly, alone);
  EXPECT_EQ(inside, 0u);
}

/// As they are, where the processor multiplies them, and f32 that holds such numbers.
TEST(Calls, ConvolutionsOfBFloat16SumInF32) {
  using device::calls::BFloat16;
  for (const ConvolutionCase &c : convolutionCases)
    for (const char *kernel : {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"}) {
      ConvolutionTensors<BFloat16> narrow(c);
      ConvolutionTensors<float> wide(c);
      wide.attributes.set("holds_bf16", {1});
      std::vector<double> expected = ConvolutionTensors<double>(c).compute(kernel, plan::F64, 1, 3);
      for (int64_t tasks : {1, 4, 64}) {
        std::vector<BFloat16> one = narrow.compute(kernel, plan::BF16, 1, tasks), three = narrow.compute(kernel, plan::BF16, 3, tasks);
        std::vector<float> inF32 = wide.compute(kernel, plan::F32, 2, tasks);
        double largest = 0, worst = 0;
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(one[i].bits, three[i].bits) << kernel << ": threads change bits";
          EXPECT_NEAR(static_cast<double>(static_cast<float>(one[i])), expected[i], std::fabs(expected[i]) / 256) << kernel << " " << i;
          largest = std::max(largest, std::fabs(expected[i]));
          worst = std::max(worst, std::fabs(expected[i] - static_cast<double>(inF32[i])));
        }
        EXPECT_LE(worst, 1e-6 * largest) << kernel << " " << c.x[0] << "x" << c.x[1] << " in " << tasks << " tasks";
      }
    }
}

TEST(Calls, ConvolutionsInF16SumInF32) {
  ConvolutionCase c{{2, 4, 5, 6}, {3, 4, 3, 3}, {1}, {1}, {0}, "same"};
  std::vector<double> expected = ConvolutionTensors<double>(c).compute("Conv2D", plan::F64, 1, 1);
  std::vector<_Float16> found = ConvolutionTensors<_Float16>(c).compute("Conv2D", plan::F16, 2, 4);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(static_cast<float>(found[i]), expected[i], 0.01 * std::max(1.0, std::fabs(expected[i]))) << i;
}

/// The rows [begin, end) of every plane.
Whole<float> rowsOf(const Whole<float> &images, Range rows) {
  Whole<float> part({images.shape[0], images.shape[1], rows.size(), images.shape[3]});
  int64_t columns = images.shape[3], planes = images.shape[0] * images.shape[1];
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t i = 0; i < rows.size() * columns; ++i)
      part.elements[plane * rows.size() * columns + i] = images.elements[(plane * images.shape[2] + rows.begin) * columns + i];
  return part;
}

TEST(Calls, WindowsOfRowsGiveTheRowsOfTheWhole) {
  // 9 rows, windows of 3 with padding: output rows 3 and 4 of 5 reach rows 5 to 8; in memory lie two more, which nobody reads.
  ConvolutionCase c{{2, 3, 9, 8}, {4, 3, 3, 3}, {2}, {1}, {0}, "same"};
  ConvolutionTensors<float> tensors(c);
  Whole<float> whole(tensors.y.shape);
  whole.elements = tensors.compute("Conv2D", plan::F32, 1, 1);
  Whole<float> window({2, 3, 6, 8}), part({2, 4, 2, 4}), known = rowsOf(tensors.x, {5, 9});
  std::fill(window.elements.begin(), window.elements.end(), NAN);
  for (int64_t plane = 0; plane < 6; ++plane)
    std::copy_n(known.elements.begin() + plane * 32, 32, window.elements.begin() + plane * 48);
  CallTensor x = window.tensor(plan::F32), y = part.tensor(plan::F32);
  x.shape[2] = 18; // three ranks
  x.box[2] = {12, 18};
  x.windowed = {0, 0, 9, 0};
  y.shape[2] = 5;
  y.box[2] = {3, 5};
  CallSpec spec{"Conv2D", {x, tensors.w.tensor(plan::F32)}, {y}, tensors.attributes, 2};
  Status status = runCall(spec, 1);
  ASSERT_TRUE(status) << status.error().message;
  Whole<float> expected = rowsOf(whole, {3, 5});
  for (size_t i = 0; i < expected.elements.size(); ++i)
    EXPECT_NEAR(part.elements[i], expected.elements[i], 1e-5 * std::fabs(expected.elements[i]) + 1e-5) << i;
  spec.operands[0].box[2] = {12, 15};
  EXPECT_EQ(runCall(spec, 1).error().message, "Conv2D: the rank lacks indices of dimension 2 that its windows reach");
}

TEST(Calls, EveryKernelOfTheTableIsOnTheDevice) {
  for (const std::string &kernel : kernelNames())
    EXPECT_TRUE(device::calls::table().count(kernel)) << kernel;
  EXPECT_EQ(kernelNames().size(), device::calls::table().size());
}

TEST(Calls, WhatDoesNotFitIsRefused) {
  Whole<float> x({2, 3, 5, 6}), y({2, 3, 3, 3}), wide({2, 3, 3, 4});
  auto why = [&](const CallSpec &spec) {
    Status status = runCall(spec, 1);
    return status ? "" : status.error().message;
  };
  CallSpec good = pool("MaxPool", {x.tensor(plan::F32)}, y.tensor(plan::F32));
  EXPECT_EQ(why(good), "");
  auto changed = [&](auto change) {
    CallSpec spec = good;
    change(spec);
    return why(spec);
  };
  EXPECT_EQ(changed([](auto &s) { s.kernel = "Magic"; }), "there is no kernel 'Magic'");
  EXPECT_EQ(changed([](auto &s) { s.operands.clear(); }), "kernel 'MaxPool' takes 1 operands and gives 1 results, found 0 and 1");
  EXPECT_EQ(changed([](auto &s) { s.operands[0].type = plan::F64; }), "MaxPool takes tensors of one float type");
  EXPECT_EQ(changed([&](auto &s) { s.results = {wide.tensor(plan::F32)}; }), "MaxPool: dimension 3 has 3 windows, found 4");
  EXPECT_EQ(changed([](auto &s) { s.operands[0].box[0].end = 1; }), "MaxPool: batch or channels differ between its tensors");
  EXPECT_EQ(changed([](auto &s) { s.operands[0].box[2].end = 4; }), "MaxPool: the rank lacks indices of dimension 2 that its windows reach");
  EXPECT_EQ(changed([](auto &s) { s.operands[0].windowed = {0, 0, 9, 0}; }), "MaxPool: dimension 2 has 5 windows, found 3");
  EXPECT_EQ(changed([](auto &s) { s.operands[0].windowed = {2, 0, 0, 0}; }), "kernel 'MaxPool' takes no windows of dimension 0");
  EXPECT_EQ(changed([](auto &s) { s.operands[0].windowed = {0, 0, -1, 0}; }), "kernel 'MaxPool' takes no windows of dimension 2");
  EXPECT_EQ(changed([](auto &s) { s.attributes.set("strides", {0}); }), "MaxPool: 'strides' (0, 0) is outside 1 to 1048576");
  EXPECT_EQ(changed([](auto &s) { s.attributes.set("kernel_size", {7, 7, 7}); }),
            "MaxPool: 'kernel_size' is one number, (rows, columns) or (1, 1, rows, columns)");
  EXPECT_EQ(changed([](auto &s) { s.attributes.setText("pad_mode", "full"); }),
            "MaxPool: 'pad_mode' is 'full', but it is one of valid, same, pad");
}

} // namespace
