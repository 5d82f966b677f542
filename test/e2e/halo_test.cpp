// Images cut in rows and columns: every kind of window, forward and backward, on even and uneven sizes, gives the numbers of
// the f64 reference on 2 to 8 devices.
#include "test/e2e/Differential.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <iostream>

using namespace msc::e2e;

namespace {

/// An operator over images of N x C x rows x columns.
struct WindowCase {
  const char *op;
  std::vector<int64_t> weights; ///< empty: none
  const char *attributes;
  int64_t batch = 2, channels = 2, rows = 16, columns = 12;
};

/// The image is the product of the input and of a parameter, so that the gradient of every element shows.
std::string networkOf(const WindowCase &c, const std::string &type, int64_t rowPieces, int64_t columnPieces) {
  std::string image = fmt::format("{}, {}, {}", c.channels, c.rows, c.columns);
  std::string weights = c.weights.empty() ? "" : fmt::format("  param %w: {}[{}] = Normal(0.5)\n", type, fmt::join(c.weights, ", "));
  return fmt::format("network halo(%x: {0}[{1}, {2}]) {{\n"
                     "  param %s: {0}[{2}] = Normal(0.5)\n{3}"
                     "  %scaled = Mul(%x, %s)\n"
                     "  %y = {4}(%scaled{5}{6}) {{in_strategy: ((1, 1, {7}, {8}){9})}}\n"
                     "  %bent = Sin(%y)\n"
                     "  %loss = ReduceMean(%bent)\n"
                     "  return loss: %loss, y: %y\n}}\n"
                     "dataset {{source: Random(seed: 1), columns: {{x: normal}}, steps: 1}}\n"
                     "train {{optimizer: SGD(learning_rate: 1.0), minimize: loss, epochs: 1}}\n"
                     "context {{parallel_mode: auto_parallel, dataset_strategy: full_batch}}\n",
                     type, c.batch, image, weights, c.op, c.weights.empty() ? "" : ", %w", c.attributes, rowPieces, columnPieces,
                     c.weights.empty() ? "" : ", (1, 1, 1, 1)");
}

void expectNumbers(const std::vector<WindowCase> &cases) {
  Coverage coverage;
  int number = 0;
  for (const WindowCase &c : cases)
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{2, 1}, {3, 1}, {1, 4}, {2, 3}, {2, 4}, {4, 2}}) {
      Case test;
      test.devices = rows * columns;
      test.mode = "auto_parallel";
      test.type = number % 2 ? "f32" : "f64"; // f32 convolutions run in a library
      test.text = networkOf(c, test.type, rows, columns);
      Verdict verdict = checkCase(test, fmt::format("{}-{}", c.op, number++), coverage);
      EXPECT_EQ(verdict.failure, "");
    }
  std::cout << coverage.cases << " cases, " << coverage.windows << " kernels with halos, " << coverage.uneven << " uneven\n";
  EXPECT_EQ(coverage.withoutState, 0);
}

TEST(Halo, Convolutions) {
  expectNumbers({{"Conv2D", {3, 2, 3, 3}, ", pad_mode: same"},
                 {"Conv2D", {3, 2, 5, 3}, ", pad_mode: same", 2, 2, 13, 17},
                 {"Conv2D", {3, 2, 3, 2}, "", 1, 2, 11, 10},
                 {"Conv2D", {3, 2, 3, 3}, ", pad_mode: same, stride: 2"},
                 {"Conv2D", {3, 2, 3, 4}, ", pad_mode: pad, pad: (2, 1, 0, 3), stride: (2, 3)", 2, 2, 15, 19},
                 {"Conv2D", {3, 2, 3, 3}, ", pad_mode: same, dilation: (3, 2)", 1, 2, 17, 13},
                 {"Conv2D", {3, 2, 1, 1}, "", 2, 2, 9, 10},
                 {"Conv2D", {3, 2, 1, 1}, ", stride: 2", 2, 2, 14, 13},
                 {"Conv2D", {3, 2, 1, 2}, ", stride: (3, 3)", 2, 2, 20, 23},
                 {"Conv2D", {3, 2, 2, 2}, ", stride: 2", 2, 2, 16, 16},
                 {"Conv2D", {3, 2, 7, 7}, ", pad_mode: pad, pad: 3, stride: 2", 1, 2, 16, 18}});
}

TEST(Halo, ConvolutionsInGroups) {
  expectNumbers({{"Conv2D", {4, 1, 3, 3}, ", pad_mode: same, group: 4", 2, 4, 11, 12},
                 {"Conv2D", {4, 2, 3, 2}, ", group: 2, stride: (1, 2)", 2, 4, 12, 13}});
}

TEST(Halo, TransposedConvolutions) {
  expectNumbers({{"Conv2DTranspose", {2, 3, 3, 3}, ", stride: 2", 2, 2, 8, 9},
                 {"Conv2DTranspose", {2, 3, 2, 2}, ", stride: 2", 2, 2, 8, 8},
                 {"Conv2DTranspose", {2, 3, 3, 3}, ", pad_mode: same, stride: 1", 2, 2, 9, 7},
                 {"Conv2DTranspose", {2, 1, 3, 1}, ", stride: (3, 2), group: 2", 2, 2, 7, 8}});
}

TEST(Halo, Pooling) {
  expectNumbers({{"MaxPool", {}, ", kernel_size: 3, strides: 2, pad_mode: same"},
                 {"MaxPool", {}, ", kernel_size: 2, strides: 2"},
                 {"MaxPool", {}, ", kernel_size: (3, 2), strides: 1", 2, 2, 9, 11},
                 {"MaxPool", {}, ", kernel_size: (1, 2), strides: 3", 2, 2, 17, 13},
                 {"MaxPool", {}, ", kernel_size: 3, strides: 2, pad_mode: pad, pad: (2, 0, 1, 1)", 2, 2, 13, 12},
                 {"AvgPool", {}, ", kernel_size: 3, strides: 2, pad_mode: same", 2, 2, 15, 12},
                 {"AvgPool", {}, ", kernel_size: 3, strides: 1, pad_mode: pad, pad: 1, count_include_pad: true", 2, 2, 9, 8},
                 {"AvgPool", {}, ", kernel_size: (2, 4), strides: (3, 2)", 2, 2, 17, 18}});
}

TEST(Halo, AdaptivePooling) {
  expectNumbers({{"AdaptiveAvgPool2D", {}, ", output_size: (4, 5)", 2, 2, 11, 9},
                 {"AdaptiveAvgPool2D", {}, ", output_size: (6, 4)", 2, 2, 12, 12},
                 {"AdaptiveAvgPool2D", {}, ", output_size: (11, 20)", 2, 2, 5, 7},
                 {"AdaptiveAvgPool2D", {}, ", output_size: 1", 2, 2, 11, 7}});
}

} // namespace
