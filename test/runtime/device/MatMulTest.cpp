#include "runtime/device/JoinBatches.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/MatMul.h"
#include "runtime/device/cpu/calls/Elements.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
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
  bool transposeLeft, transposeRight, bias, relu;
  int64_t tasks;
  bool hasNan = false; ///< the first element of the left matrix
  plan::DataType operands = plan::F32, type = plan::F32; ///< as MatMulSpec
  bool sharesRight = false; ///< all batches have the first right matrix
};

using device::calls::BFloat16;

/// The numbers as a tensor of that type holds them.
std::vector<std::byte> stored(const std::vector<float> &values, plan::DataType type) {
  std::vector<std::byte> bytes(values.size() * (type == plan::BF16 ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    const BFloat16 narrow(values[i]);
    type == plan::BF16 ? std::memcpy(&bytes[2 * i], &narrow, 2) : std::memcpy(&bytes[4 * i], &values[i], 4);
  }
  return bytes;
}

std::vector<float> loaded(const std::vector<std::byte> &bytes, plan::DataType type) {
  std::vector<float> values(bytes.size() / (type == plan::BF16 ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    BFloat16 narrow;
    type == plan::BF16 ? std::memcpy(&narrow, &bytes[2 * i], 2) : std::memcpy(&values[i], &bytes[4 * i], 4);
    if (type == plan::BF16)
      values[i] = static_cast<float>(narrow);
  }
  return values;
}

struct Operands {
  std::vector<float> left, right, bias;
};

/// The same numbers for cases of the same sizes.
Operands drawAll(const Case &c) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  auto draw = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = uniform(random);
    return values;
  };
  Operands operands;
  operands.left = draw(c.batches * c.rows * c.depth);
  if (c.hasNan)
    operands.left[0] = std::numeric_limits<float>::quiet_NaN();
  operands.right = draw(c.batches * c.depth * c.columns);
  operands.bias = draw(c.columns);
  return operands;
}

/// Runs a case on a device and returns its result and the largest error against sums in f64.
std::pair<std::vector<float>, double> compute(const Case &c, int threads) {
  std::unique_ptr<Device> device = cpu(threads);
  auto [left, right, bias] = drawAll(c);
  std::vector<float> result(static_cast<size_t>(c.batches * c.rows * c.columns), 7.0f);
  std::vector<std::byte> lefts = stored(left, c.operands), rights = stored(right, c.operands), biases = stored(bias, c.type), results = stored(result, c.type);
  left = loaded(lefts, c.operands), right = loaded(rights, c.operands), bias = loaded(biases, c.type);
  MatMulSpec spec;
  spec.operands = c.operands, spec.type = c.type;
  spec.rows = c.rows, spec.columns = c.columns, spec.depth = c.depth;
  spec.transposeLeft = c.transposeLeft, spec.transposeRight = c.transposeRight;
  spec.left = lefts.data(), spec.right = rights.data(), spec.result = results.data();
  spec.bias = c.bias ? biases.data() : nullptr;
  spec.relu = c.relu;
  spec.tasks = c.tasks;
  for (int64_t b = 0; b < c.batches; ++b)
    spec.batches.push_back({b * c.rows * c.depth, c.sharesRight ? 0 : b * c.depth * c.columns, b * c.rows * c.columns});
  auto operation = device->prepareMatMul(spec);
  EXPECT_TRUE(operation) << (operation ? "" : operation.error().message);
  EXPECT_TRUE(device->finishPreparation());
  EXPECT_TRUE((*operation)->run());
  EXPECT_TRUE((*operation)->run()); // overwrites, does not accumulate
  result = loaded(results, c.type);
  double worst = 0;
  for (int64_t b = 0; b < c.batches; ++b)
    for (int64_t i = 0; i < c.rows; ++i)
      for (int64_t j = 0; j < c.columns; ++j) {
        double sum = c.bias ? bias[j] : 0;
        for (int64_t k = 0; k < c.depth; ++k)
          sum += static_cast<double>(left[spec.batches[b].left + (c.transposeLeft ? k * c.rows + i : i * c.depth + k)]) *
                 static_cast<double>(right[spec.batches[b].right + (c.transposeRight ? j * c.depth + k : k * c.columns + j)]);
        double expected = c.relu && sum < 0 ? 0 : sum;
        worst = std::max(worst, std::fabs(expected - static_cast<double>(result[spec.batches[b].result + i * c.columns + j])));
      }
  return {result, worst};
}

TEST(MatMul, AgreesWithSumsInDouble) {
  for (bool left : {false, true})
    for (bool right : {false, true})
      for (bool relu : {false, true})
        for (int64_t tasks : {1, 3})
          EXPECT_LT(compute({1, 17, 13, 29, left, right, tasks == 3, relu, tasks}, 1).second, 5e-6) << relu << left << right;
  EXPECT_LT(compute({6, 5, 4, 3, false, true, false, false, 4}, 1).second, 1e-6);
  EXPECT_LT(compute({2, 40, 4, 3, true, false, true, true, 8}, 2).second, 1e-6);
  EXPECT_LT(compute({1, 1, 1, 1, true, true, false, false, 1}, 1).second, 1e-6);
  for (bool left : {false, true}) // batches that share a matrix: one product whose columns are cut, or several
    for (int64_t tasks : {1, 4}) {
      Case c{3, 40, 1100, 30, left, !left, true, tasks == 4, tasks};
      c.sharesRight = true;
      EXPECT_LT(compute(c, 2).second, 1e-5) << left << tasks;
    }
  // Right operands that are brought into the order of the library, by rows of a page and others, for tasks of different sizes.
  for (bool left : {false, true}) {
    EXPECT_LT(compute({1, 65, 1024, 40, left, false, true, true, 3}, 2).second, 1e-5);
    EXPECT_LT(compute({1, 257, 100, 33, left, false, false, true, 2}, 1).second, 1e-5);
    EXPECT_LT(compute({1, 1030, 70, 50, left, true, true, false, 4}, 2).second, 1e-5);
  }
}

/// By kernels of the library for bf16 where the processor has fast ones, else on operands that are cast: ctest runs both.
TEST(MatMul, NarrowOperandsAddInF32) {
  const auto bf16 = plan::BF16;
  for (bool left : {false, true})
    for (bool right : {false, true})
      for (bool relu : {false, true})
        for (int64_t tasks : {1, 3})
          for (Case c : {Case{1, 17, 13, 29, left, right, tasks == 3, relu, tasks}, Case{3, 6, 5, 31, left, right, false, relu, tasks},
                         Case{1, 257, 100, 33, left, right, true, relu, tasks}, Case{1, 65, 1024, 40, left, right, tasks == 3, relu, tasks},
                         Case{1, 90, 777, 21, left, right, tasks == 3, relu, 2 * tasks}, // tasks of columns
                         Case{1, 1, 1, 1, left, right, true, relu, tasks}, Case{1, 5, 1, 70, left, right, true, relu, tasks},
                         Case{2, 1, 40, 9, left, right, false, relu, tasks}}) {
            c.operands = bf16;
            for (int threads : {1, 2}) {
              c.type = plan::F32;
              EXPECT_LT(compute(c, threads).second, 1e-5) << c.rows << " x " << c.columns << " x " << c.depth << left << right << relu << tasks;
              c.type = bf16; // the largest sums are below 16, and bf16 has 8 bits
              EXPECT_LT(compute(c, threads).second, 0.04) << c.rows << " x " << c.columns << " x " << c.depth << left << right << relu << tasks;
            }
          }
}

TEST(MatMul, NarrowResultsAreRoundedOnce) {
  for (Case c : {Case{1, 40, 48, 70, false, false, false, false, 2}, Case{3, 20, 30, 40, true, true, false, true, 2}}) {
    c.operands = plan::BF16;
    const std::vector<float> wide = compute(c, 1).first;
    c.type = plan::BF16;
    const std::vector<float> narrow = compute(c, 1).first;
    for (size_t i = 0; i < wide.size(); ++i)
      EXPECT_EQ(narrow[i], static_cast<float>(BFloat16(wide[i]))) << i;
  }
}

/// What is cast at a time is bounded: columns, and rows of a task, in parts.
TEST(MatMul, LargeNarrowOperandsAreCastInParts) {
  for (bool right : {false, true}) {
    for (plan::DataType type : {plan::F32, plan::BF16})
      EXPECT_LT(compute({1, 3, 4099, 2049, false, right, true, true, 2, false, plan::BF16, type}, 2).second, type == plan::F32 ? 1e-4 : 0.6) << right;
    EXPECT_LT(compute({1, 20, 61, 70001, !right, right, false, false, 2, false, plan::BF16, plan::F32}, 2).second, 2e-3) << right;
    EXPECT_LT(compute({2, 3, 75, 70001, !right, right, false, true, 1, false, plan::BF16, plan::F32}, 1).second, 2e-3) << right;
  }
}

/// GPT-2's head reads 154 MB of weights in f32 where the processor has no tiles.
TEST(MatMul, WorkingMemoryIsBounded) {
  Case c{1, 4, 50257, 768, false, true, false, false, 2, false, plan::BF16, plan::F32};
  std::vector<std::byte> left(c.rows * c.depth * 2), right(c.columns * c.depth * 2), result(c.rows * c.columns * 4);
  MatMulSpec spec{.rows = c.rows, .columns = c.columns, .depth = c.depth, .operands = plan::BF16, .transposeRight = true,
                  .left = left.data(), .right = right.data(), .result = result.data()};
  spec.tasks = c.tasks;
  spec.batches.push_back({});
  WorkerPool pool(2, {});
  auto operation = prepareMatMul(spec, pool);
  ASSERT_TRUE(operation);
  EXPECT_LE((*operation)->scratchSize().shared, size_t(17) << 20);
  EXPECT_LE((*operation)->scratchSize().worker, size_t(9) << 20);
}

TEST(MatMul, EmptySumsGiveTheEpilogueOfZero) {
  for (bool relu : {false, true})
    for (plan::DataType type : {plan::F32, plan::BF16})
      EXPECT_EQ(compute({2, 3, 4, 0, false, false, true, relu, 2, false, plan::BF16, type}, 1).second, 0);
  for (bool relu : {false, true})
    EXPECT_EQ(compute({2, 3, 4, 0, false, false, true, relu, 2}, 1).second, 0);
  EXPECT_EQ(compute({1, 3, 4, 0, false, false, false, false, 1}, 1).first, std::vector<float>(12, 0.0f));
}

/// What a bias and ReLU as operators of their own make of the bare product.
std::vector<float> separately(const Case &c) {
  Case bare = c;
  bare.bias = bare.relu = false;
  std::vector<float> result = compute(bare, 1).first, bias = drawAll(c).bias;
  for (size_t i = 0; i < result.size(); ++i) {
    float sum = c.bias ? result[i] + bias[i % bias.size()] : result[i];
    result[i] = c.relu && 0 > sum ? 0.0f : sum;
  }
  return result;
}

TEST(MatMul, OperandsInF16AreRefused) {
  for (int64_t depth : {0, 4}) {
    MatMulSpec spec{.rows = 1, .columns = 1, .depth = depth, .operands = plan::F16};
    auto made = cpu(1)->prepareMatMul(spec);
    ASSERT_FALSE(made.isOk());
    EXPECT_EQ(made.error().help, "compile the network again with --device-target auto");
  }
}

TEST(MatMul, TheEpilogueGivesTheBitsOfSeparateOperators) {
  for (bool bias : {false, true})
    for (bool relu : {false, true})
      for (Case c : {Case{1, 64, 48, 80, false, false, bias, relu, 1}, Case{1, 33, 31, 2000, false, true, bias, relu, 3},
                     Case{3, 5, 7, 1, true, false, bias, relu, 2}, Case{1, 80, 1024, 90, false, false, bias, relu, 2}, Case{1, 300, 257, 513, true, true, bias, relu, 2}}) {
        std::vector<float> fused = compute(c, 1).first, separate = separately(c);
        EXPECT_EQ(std::memcmp(fused.data(), separate.data(), fused.size() * sizeof(float)), 0)
            << c.rows << " x " << c.columns << " x " << c.depth << ", bias " << bias << ", relu " << relu;
      }
}

TEST(MatMul, NanPassesThroughReLU) {
  for (int64_t depth : {1, 17, 600})
    for (int64_t rows : {1, 40})
      for (plan::DataType operands : {plan::F32, plan::BF16})
        for (plan::DataType type : {plan::F32, operands}) {
          std::vector<float> result = compute({1, rows, 24, depth, false, false, true, true, 1, true, operands, type}, 1).first;
          for (int64_t j = 0; j < 24; ++j)
            EXPECT_TRUE(std::isnan(result[j])) << rows << " rows, depth " << depth << ", column " << j;
        }
}

TEST(MatMul, ThreadsChangeNoBit) {
  for (Case c : {Case{1, 128, 64, 96, false, false, true, true, 8}, Case{1, 96, 64, 1000, true, false, false, false, 5},
                 Case{7, 33, 31, 65, false, true, true, false, 4}, Case{1, 300, 1024, 70, false, false, true, true, 4},
                 Case{1, 70, 1000, 65, false, true, true, true, 6}, Case{1, 3, 2048, 130, true, false, false, false, 4}}) // tasks of columns
    for (plan::DataType operands : {plan::F32, plan::BF16}) {
      for (plan::DataType type : {plan::F32, operands}) {
        c.operands = operands, c.type = type;
        std::vector<float> one = compute(c, 1).first;
        for (int threads : {2, 3, 5})
          EXPECT_EQ(std::memcmp(one.data(), compute(c, threads).first.data(), one.size() * sizeof(float)), 0);
      }
    }
}

/// Batches whose rows lie together are one product, also if its columns are cut; with gaps, or left operands that are transposed, they are not.
TEST(MatMul, BatchesThatShareAMatrixAreOneProduct) {
  MatMulSpec spec;
  spec.rows = 5, spec.columns = 7, spec.depth = 3;
  spec.batches = {{10, 4, 0}, {25, 4, 35}, {40, 4, 70}};
  MatMulSpec joined = joinBatches(spec);
  EXPECT_EQ(joined.rows, 15);
  ASSERT_EQ(joined.batches.size(), 1u);
  EXPECT_EQ(joined.batches[0].left, 10);
  MatMulSpec transposed = spec, gap = spec, own = spec;
  transposed.transposeLeft = true, gap.batches[2].left = 41, own.batches[1].right = 25;
  for (const MatMulSpec &other : {transposed, gap, own})
    EXPECT_EQ(joinBatches(other).batches.size(), 3u);
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
