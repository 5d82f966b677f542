#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/MatMul.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace msc;
using namespace msc::device;

namespace {

std::unique_ptr<Device> cpu(int threads) {
  return createCpuDevice(*KernelLibrary::load(plan::Plan()), {threads, {}});
}

struct Case {
  int64_t batches, rows, columns, depth;
  bool transposeLeft, transposeRight, bias;
  std::string activation;
  int64_t tasks;
};

double activate(const std::string &name, double x) {
  if (name == "relu")
    return x > 0 ? x : 0;
  if (name == "gelu_erf")
    return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
  if (name == "gelu_tanh")
    return x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (name == "sigmoid")
    return 1 / (1 + std::exp(-x));
  if (name == "tanh")
    return std::tanh(x);
  return name == "silu" ? x / (1 + std::exp(-x)) : x;
}

/// Runs a case on a device and returns its result and the largest error against sums in f64.
template <typename T> std::pair<std::vector<T>, double> compute(const Case &c, int threads) {
  std::unique_ptr<Device> device = cpu(threads);
  std::mt19937 random(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  auto draw = [&](int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    for (T &value : values)
      value = uniform(random);
    return values;
  };
  std::vector<T> left = draw(c.batches * c.rows * c.depth), right = draw(c.batches * c.depth * c.columns);
  std::vector<T> bias = draw(c.columns), result(static_cast<size_t>(c.batches * c.rows * c.columns), T(7));
  MatMulSpec spec;
  spec.type = sizeof(T) == 8 ? plan::F64 : plan::F32;
  spec.rows = c.rows, spec.columns = c.columns, spec.depth = c.depth;
  spec.transposeLeft = c.transposeLeft, spec.transposeRight = c.transposeRight;
  spec.left = reinterpret_cast<std::byte *>(left.data());
  spec.right = reinterpret_cast<std::byte *>(right.data());
  spec.result = reinterpret_cast<std::byte *>(result.data());
  spec.bias = c.bias ? reinterpret_cast<std::byte *>(bias.data()) : nullptr;
  spec.activation = c.activation;
  spec.tasks = c.tasks;
  for (int64_t b = 0; b < c.batches; ++b)
    spec.batches.push_back({b * c.rows * c.depth, b * c.depth * c.columns, b * c.rows * c.columns});
  auto operation = device->prepareMatMul(spec);
  EXPECT_TRUE(operation) << (operation ? "" : operation.error().message);
  EXPECT_TRUE(device->finishPreparation());
  EXPECT_TRUE((*operation)->run());
  EXPECT_TRUE((*operation)->run()); // overwrites, does not accumulate
  double worst = 0;
  for (int64_t b = 0; b < c.batches; ++b)
    for (int64_t i = 0; i < c.rows; ++i)
      for (int64_t j = 0; j < c.columns; ++j) {
        double sum = c.bias ? bias[j] : 0;
        for (int64_t k = 0; k < c.depth; ++k)
          sum += static_cast<double>(left[spec.batches[b].left + (c.transposeLeft ? k * c.rows + i : i * c.depth + k)]) *
                 static_cast<double>(right[spec.batches[b].right + (c.transposeRight ? j * c.depth + k : k * c.columns + j)]);
        double expected = activate(c.activation, sum);
        worst = std::max(worst, std::fabs(expected - static_cast<double>(result[spec.batches[b].result + i * c.columns + j])));
      }
  return {result, worst};
}

TEST(MatMul, AgreesWithSumsInDouble) {
  for (bool left : {false, true})
    for (bool right : {false, true})
      for (const char *activation : {"", "relu", "gelu_erf", "gelu_tanh", "sigmoid", "tanh", "silu"})
        for (int64_t tasks : {1, 3}) {
          Case c{1, 17, 13, 29, left, right, tasks == 3, activation, tasks};
          EXPECT_LT(compute<float>(c, 1).second, 2e-5) << activation << left << right;
          EXPECT_LT(compute<double>(c, 1).second, 1e-13) << activation << left << right;
        }
  EXPECT_LT(compute<float>({6, 5, 4, 3, false, true, false, "", 4}, 1).second, 1e-6);
  EXPECT_LT(compute<float>({2, 40, 4, 3, true, false, true, "relu", 8}, 2).second, 1e-6);
  EXPECT_LT(compute<float>({1, 1, 1, 1, true, true, false, "", 1}, 1).second, 1e-6);
}

TEST(MatMul, EmptySumsGiveTheEpilogueOfZero) {
  Case c{1, 3, 4, 0, false, false, true, "sigmoid", 2};
  EXPECT_LT(compute<float>(c, 1).second, 1e-6);
  EXPECT_EQ(compute<float>({1, 3, 4, 0, false, false, false, "", 1}, 1).first, std::vector<float>(12, 0.0f));
}

TEST(MatMul, ThreadsChangeNoBit) {
  for (Case c : {Case{1, 128, 64, 96, false, false, true, "relu", 8}, Case{1, 96, 64, 1000, true, false, false, "", 5},
                 Case{7, 33, 31, 65, false, true, false, "gelu_erf", 4}}) {
    std::vector<float> one = compute<float>(c, 1).first;
    for (int threads : {2, 3, 5})
      EXPECT_EQ(std::memcmp(one.data(), compute<float>(c, threads).first.data(), one.size() * sizeof(float)), 0);
  }
}

TEST(MatMul, RowBlocksCoverEverythingOnce) {
  for (size_t batches : {1, 2, 3, 12})
    for (int64_t rows : {1, 2, 5, 64})
      for (int64_t tasks : {1, 2, 3, 8, 100}) {
        std::vector<int> seen(batches * rows, 0);
        for (const std::vector<RowBlock> &task : splitRows(batches, rows, tasks))
          for (const RowBlock &block : task)
            for (int64_t row = block.begin; row < block.end; ++row)
              ++seen[block.batch * rows + row];
        EXPECT_EQ(seen, std::vector<int>(batches * rows, 1)) << batches << " " << rows << " " << tasks;
      }
}

} // namespace
