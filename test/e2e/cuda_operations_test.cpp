// Single operations of the CUDA backend, on the recording driver and with emulated kernels: products whose rows lie unaligned, and sums
// by number. Nothing here runs on a GPU.
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/calls/Elements.h"
#include "test/e2e/CudaTraining.h"

#include <algorithm>
#include <cstring>

using namespace msc;
using namespace msc::e2e;

namespace {

/// Opens what helpers of these tests take part in.
class CudaOperations : public CudaTraining {
public:
  using CudaTraining::Bytes, CudaTraining::Prepare;
  static Bytes onGpu(test::RecordingDriver &driver, const Bytes &bytes, const Prepare &prepare, int runs, const device::CudaOptions &options = {}) {
    return runOperation(driver, bytes, prepare, runs, options);
  }
};
using Bytes = CudaOperations::Bytes;
using Prepare = CudaOperations::Prepare;

size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Numbers of that type whose sums depend on their order.
Bytes numbers(plan::DataType type, int64_t count) {
  Bytes bytes(static_cast<size_t>(count) * elementBytes(type));
  device::calls::withNumber(type, [&]<typename Element>(Element) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t mixed = i * 2654435761 % 1009 - 500;
      using Number = device::calls::Number<Element>;
      Element value = {};
      if constexpr (std::is_integral_v<Element>)
        value = static_cast<Element>(mixed * 10000019);
      else
        value = static_cast<Element>(static_cast<Number>(mixed) / 97);
      std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(Element), &value, sizeof(Element));
    }
  });
  return bytes;
}

/// A product with its matrices behind each other, and guarded bytes behind the result.
struct TestProduct {
  device::MatMulSpec spec;
  size_t right = 0, bias = 0, result = 0;
  Bytes bytes;

  TestProduct(std::array<int64_t, 3> sizes, int form, plan::DataType operands, plan::DataType type) {
    spec = {.rows = sizes[0], .columns = sizes[1], .depth = sizes[2], .operands = operands, .type = type};
    spec.transposeLeft = form & 1, spec.transposeRight = form & 2, spec.relu = form & 4;
    spec.batches = {{}};
    append(operands, sizes[0] * sizes[2]);
    right = append(operands, sizes[2] * sizes[1]);
    bias = append(type, sizes[1]);
    result = append(type, sizes[0] * sizes[1]);
    bytes.resize(bytes.size() + 256, std::byte{0x5a});
  }
  Prepare prepare(bool biased) const {
    return [=, this](device::Device &device, std::byte *arena) {
      device::MatMulSpec own = spec;
      own.left = arena, own.right = arena + right, own.result = arena + result, own.bias = biased ? arena + bias : nullptr;
      return device.prepareMatMul(own);
    };
  }

private:
  size_t append(plan::DataType type, int64_t count) {
    size_t start = bytes.size();
    Bytes more = numbers(type, count);
    bytes.insert(bytes.end(), more.begin(), more.end());
    bytes.resize(rounded(bytes.size()));
    return start;
  }
};

device::CudaOptions always() { return {.packFrom = 0}; }

// The bits of the product as it lies, which the driver adds up in the same order; as many copies as there have to be.
TEST_F(CudaOperations, UnalignedRowsAreMultipliedInScratchMemory) {
  struct Case {
    std::array<int64_t, 3> sizes; ///< rows, columns, depth
    std::array<int, 4> copies;    ///< by which operands are transposed: none, left, right, both
  };
  for (const Case &one : {Case{{261, 271, 521}, {3, 3, 3, 3}}, Case{{264, 261, 256}, {2, 2, 1, 1}}, Case{{259, 264, 272}, {0, 1, 0, 1}},
                          Case{{256, 264, 267}, {2, 0, 2, 2}}, Case{{200, 520, 261}, {2, 0, 2, 2}}})
    for (int form = 0; form < 8; ++form) {
      const bool isBrain = form % 3 != 0, isWide = form % 5 == 0, isBiased = form % 2 != 0 ? form != 5 && form != 7 : form > 2;
      // A right operand whose rows are columns of the result gets rows of zeros, where the result gets columns.
      const bool grows = !isBiased && form % 4 >= 2 && one.sizes[1] == 261;
      plan::DataType operands = isBrain ? plan::BF16 : plan::F16, type = isWide ? plan::F32 : operands;
      SCOPED_TRACE(fmt::format("{}x{} of depth {}, form {}", one.sizes[0], one.sizes[1], one.sizes[2], form));
      TestProduct product(one.sizes, form, operands, type);
      test::RecordingDriver plain;
      Bytes direct = onGpu(plain, product.bytes, product.prepare(isBiased), 1);
      EXPECT_EQ(plain.calls("cuLaunchKernel"), 0);
      test::RecordingDriver driver;
      Bytes packed = onGpu(driver, product.bytes, product.prepare(isBiased), 2, always());
      EXPECT_EQ(driver.calls("cuLaunchKernel"), 2 * (one.copies[static_cast<size_t>(form % 4)] + grows));
      EXPECT_TRUE(packed == direct);
      EXPECT_FALSE(packed == product.bytes);
    }
}

// Tokens of many sequences times one matrix are one product: as such their rows are packed, too.
TEST_F(CudaOperations, RowsOfABatchThatShareAMatrixAreOneProduct) {
  TestProduct whole({270, 271, 521}, 0, plan::BF16, plan::BF16), batch = whole;
  batch.spec.rows = 90;
  batch.spec.batches = {{0, 0, 0}, {90 * 521, 0, 90 * 271}, {180 * 521, 0, 180 * 271}};
  auto compute = [&](const TestProduct &product) {
    test::RecordingDriver driver;
    Bytes result = onGpu(driver, product.bytes, product.prepare(true), 1, always());
    EXPECT_EQ(driver.calls("cuLaunchKernel"), 3);
    return result;
  };
  EXPECT_TRUE(compute(whole) == compute(batch));
}

TEST_F(CudaOperations, ProductsThatGainNothingStayAsTheyAre) {
  for (auto [sizes, operands] : {std::pair(std::array<int64_t, 3>{261, 263, 265}, plan::F32), // not narrow
                                 std::pair(std::array<int64_t, 3>{8, 1001, 500}, plan::BF16),  // few operations per byte
                                 std::pair(std::array<int64_t, 3>{256, 256, 256}, plan::F16)}) {
    TestProduct product(sizes, 0, operands, operands);
    test::RecordingDriver driver;
    onGpu(driver, product.bytes, product.prepare(true), 2, always());
    EXPECT_EQ(driver.calls("cuLaunchKernel"), 0);
  }
}

TEST_F(CudaOperations, TheFastestAlgorithmOfAProductIsKept) {
  const std::string path = (folder / "ways.txt").string();
  for (bool isPacked : {false, true}) {
    std::filesystem::remove(path);
    TestProduct product({261, 271, 521}, 1, plan::BF16, plan::BF16);
    auto timesOf = [&](bool isDeterministic, std::string &note) { // each of the two algorithms ran
      test::RecordingDriver driver;
      device::CudaOptions options = isPacked ? always() : device::CudaOptions();
      options.tuning = path;
      options.deterministic = isDeterministic;
      runOperation(driver, product.bytes, product.prepare(true), 2, options, &note);
      return std::pair(driver.calls("products by algorithm 42"), driver.calls("products by algorithm 43"));
    };
    std::string note;
    EXPECT_EQ(timesOf(true, note), std::pair(2, 0)); // waited for, and captured
    EXPECT_EQ(note, "the file of --tune lacks 1, of 1 convolutions and products, and none is measured here: one process without --deterministic does that");
    EXPECT_TRUE(linesOf(path).empty());
    auto [first, second] = timesOf(false, note);
    EXPECT_EQ(first + second, 2 + 2 * 4);
    EXPECT_EQ(note, "");
    std::vector<std::string> lines = linesOf(path);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(std::regex_match(lines[0], std::regex("[01] .*: cuBLASLt 130000: 261x521\\^T by 521x271 of BF16 to BF16 bias at [0-9]+,[0-9]+,[0-9]+( packed)?"))) << lines[0];
    EXPECT_EQ(lines[0].ends_with(" packed"), isPacked);
    for (char way : {'0', '1'}) {
      std::ofstream(path) << way << lines[0].substr(1) << "\n";
      EXPECT_EQ(timesOf(way == '1', note), way == '0' ? std::pair(2, 0) : std::pair(0, 2));
      EXPECT_EQ(note, "");
    }
  }
}

TEST_F(CudaOperations, WithoutMemoryProductsStayAsTheyAre) {
  TestProduct product({261, 271, 521}, 0, plan::BF16, plan::BF16);
  test::RecordingDriver plain;
  Bytes direct = onGpu(plain, product.bytes, product.prepare(true), 1);
  for (uint64_t megabytes : {34, 288}) { // none is left, or little
    test::RecordingDriver driver;
    driver.memoryBytes = megabytes << 20;
    EXPECT_TRUE(onGpu(driver, product.bytes, product.prepare(true), 2, always()) == direct);
    EXPECT_EQ(driver.calls("cuLaunchKernel"), 0) << megabytes;
  }
}

/// Sums of rows by number, of which this rank holds some.
struct TestSums {
  int64_t count = 0, size = 0, inner = 1, outer = 1;
  bool wide = false;   ///< indices are i64
  bool skewed = false; ///< most number row 3
  Range held = {};     ///< empty: all rows

  /// The same bits as on a CPU. Some indices number nothing.
  void compare(plan::DataType type) const {
    SCOPED_TRACE(fmt::format("{}: {} indices, {} rows, {} x {}", dataTypeName(type), count, size, outer, inner));
    Range own = held.size() > 0 ? held : Range{0, size};
    CallTensor indices{wide ? plan::I64 : plan::I32, {count}, {{0, count}}, nullptr};
    CallTensor rows{type, {outer, count, inner}, {{0, outer}, {0, count}, {0, inner}}, nullptr};
    CallTensor sums{type, {outer, size, inner}, {{0, outer}, own, {0, inner}}, nullptr};
    Bytes bytes = numbers(type, outer * count * inner);
    bytes.resize(rounded(bytes.size()));
    const size_t firstIndex = bytes.size();
    for (int64_t n = 0; n < count; ++n) {
      int64_t number = skewed && n % 3 != 0 ? 3 : n * n * 7 % (size + size / 8 + 1) - size / 16;
      for (size_t i = 0; i < (wide ? 8 : 4); ++i)
        bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
    }
    bytes.resize(rounded(bytes.size()));
    const size_t firstSum = bytes.size();
    bytes.resize(bytes.size() + static_cast<size_t>(outer * own.size() * inner) * elementBytes(type), std::byte{0x5a});
    auto prepare = [&](device::Device &device, std::byte *arena) {
      indices.data = arena + firstIndex, rows.data = arena, sums.data = arena + firstSum;
      CallSpec spec{"GatherGrad", {indices, rows}, {sums}};
      spec.attributes.set("axis", {1});
      spec.tasks = 1;
      return device.prepareCall(spec);
    };
    auto cpu = device::createCpuDevice(*device::KernelLibrary::load(plan::Plan()), {1, {}});
    Bytes expected = bytes;
    auto operation = prepare(*cpu, expected.data());
    ASSERT_TRUE(operation.isOk()) << operation.error().message;
    ASSERT_TRUE(cpu->finishPreparation().isOk() && (*operation)->run().isOk());
    test::RecordingDriver driver;
    EXPECT_TRUE(CudaOperations::onGpu(driver, bytes, prepare, 1) == expected);
  }
};

TEST_F(CudaOperations, SumsByNumberOfEveryType) {
  for (plan::DataType type : {plan::F32, plan::F64, plan::F16, plan::BF16, plan::I32, plan::I64}) {
    TestSums{.count = 300, .size = 50, .inner = 5, .outer = 3, .wide = true}.compare(type);
    TestSums{.count = 300, .size = 50, .inner = 5, .outer = 3, .held = {7, 31}}.compare(type);
    TestSums{.count = 200, .size = 3, .inner = 2}.compare(type);
  }
}

// More than a stretch of indices, many for one row, more elements than a block adds up.
TEST_F(CudaOperations, SumsOfManyRows) {
  TestSums{.count = 2100, .size = 2, .inner = 300}.compare(plan::F32);
  TestSums{.count = 1300, .size = 5, .inner = 3, .outer = 2, .wide = true}.compare(plan::BF16);
  TestSums{.count = 1100, .size = 90, .inner = 1100}.compare(plan::F32);
  TestSums{.count = 3100, .size = 1000, .inner = 4, .skewed = true}.compare(plan::F32);
  // Most number rows of others; stretches beyond the first 31.
  TestSums{.count = 33000, .size = 9000, .inner = 2, .held = {70, 74}}.compare(plan::F32);
}

} // namespace
