// bf16 and f16 in kernels: conversions against arithmetic in double, over every value of the narrow types and around every
// tie between two of them; tensors of 16 bits move unchanged.
#include "KernelTestSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace msc::test {
namespace {

/// Runs the only function of `text` on one input for the whole range; every instruction set must give the same bytes.
std::string run(const std::string &text, const void *input, size_t inputBytes, size_t outputBytes, int64_t range) {
  auto module = parse(text);
  codegen::KernelLibrary library;
  auto kernel = library.add(*module->getOps<mlir::func::FuncOp>().begin());
  EXPECT_TRUE(succeeded(kernel));
  auto compiled = library.finish(module->getLoc());
  std::string first;
  for (const codegen::CodeObject &object : *compiled) {
    if (!cpuHas(object.isa))
      continue;
    LoadedObject loaded(object.bytes);
    Buffer in(inputBytes), out(outputBytes);
    std::memcpy(in.data(), input, inputBytes);
    callKernel(loaded.symbol(kernel->symbol), {in.data(), out.data()}, 0, range);
    EXPECT_TRUE(in.guardIntact() && out.guardIntact());
    if (first.empty())
      first = out.content();
    EXPECT_EQ(first == out.content(), true) << object.isa;
  }
  return first;
}

/// Elements of `from` through `body` (a statement that makes %y of %x) into elements of `to`.
template <typename To, typename From>
std::vector<To> convert(const std::string &from, const std::string &to, const std::string &body, const std::vector<From> &values) {
  auto count = static_cast<int64_t>(values.size());
  std::string text = fmt::format(R"(#m = affine_map<(i) -> (i)>
func.func @f(%a: tensor<{0}x{1}>) -> tensor<{0}x{2}> {{
  %e = tensor.empty() : tensor<{0}x{2}>
  %r = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel"]}} ins(%a : tensor<{0}x{1}>) outs(%e : tensor<{0}x{2}>) {{
  ^bb0(%x: {1}, %o: {2}):
    {3}
    linalg.yield %y : {2}
  }} -> tensor<{0}x{2}>
  return %r : tensor<{0}x{2}>
}})", count, from, to, body);
  std::string bytes = run(text, values.data(), values.size() * sizeof(From), values.size() * sizeof(To), count);
  std::vector<To> result(values.size());
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

float ofBits(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// The bf16 nearest to `x`, ties to even, by arithmetic on doubles alone.
float nearestBf16(double x) {
  if (!std::isfinite(x) || x == 0)
    return static_cast<float>(x);
  int exponent = std::max(std::ilogb(x), -126) - 7; // of the last of 8 digits
  double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
  return std::fabs(rounded) >= std::ldexp(1.0, 128) ? std::copysign(INFINITY, rounded) : static_cast<float>(rounded);
}

std::vector<uint16_t> everyPattern() {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint16_t>(i);
  all.resize(all.size() + 5, 0x3f80); // the last vector is not whole
  return all;
}

bool sameValue(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

TEST(NarrowFloat, EveryBf16WidensExactly) {
  std::vector<uint16_t> all = everyPattern();
  auto wide = convert<float>("bf16", "f32", "%y = arith.extf %x : bf16 to f32", all);
  auto wider = convert<double>("bf16", "f64", "%y = arith.extf %x : bf16 to f64", all);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(sameValue(wide[i], ofBits(all[i]))) << all[i];
    ASSERT_TRUE(sameValue(static_cast<float>(wider[i]), ofBits(all[i]))) << all[i];
  }
}

TEST(NarrowFloat, EveryF16WidensExactly) {
  std::vector<uint16_t> all = everyPattern();
  auto wide = convert<float>("f16", "f32", "%y = arith.extf %x : f16 to f32", all);
  for (size_t i = 0; i < all.size(); ++i)
    ASSERT_TRUE(sameValue(wide[i], static_cast<float>(std::bit_cast<_Float16>(all[i])))) << all[i];
}

TEST(NarrowFloat, F32RoundsToTheNearestBf16) {
  std::vector<float> values;
  for (uint32_t high = 0; high < 65536; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  auto rounded = convert<uint16_t>("f32", "bf16", "%y = arith.truncf %x : f32 to bf16", values);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(sameValue(ofBits(rounded[i]), nearestBf16(static_cast<double>(values[i])))) << values[i];
}

/// Numbers whose distance to a tie is lost where f32 stands in between.
std::vector<double> aroundTies(int digits) {
  std::vector<double> values{0.0, -0.0, INFINITY, -INFINITY, NAN, 1e300, -1e300, 1e-300, 3.4028235677973366e38, 65519.999999, 65520.0};
  for (int exponent = -30; exponent < 20; ++exponent)
    for (int step = 0; step < 40; ++step)
      for (double nudge : {0.0, 1e-15, -1e-15, 1e-9, -1e-9}) {
        double tie = (1 + (step + 0.5) * std::ldexp(1.0, 1 - digits)) * (1 + nudge);
        values.push_back(std::ldexp(tie, exponent));
        values.push_back(-std::ldexp(tie, exponent));
      }
  return values;
}

TEST(NarrowFloat, F64RoundsOnce) {
  std::vector<double> values = aroundTies(8);
  auto rounded = convert<uint16_t>("f64", "bf16", "%y = arith.truncf %x : f64 to bf16", values);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(sameValue(ofBits(rounded[i]), nearestBf16(values[i]))) << fmt::format("{:.20g}", values[i]);
  values = aroundTies(11);
  rounded = convert<uint16_t>("f64", "f16", "%y = arith.truncf %x : f64 to f16", values);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(sameValue(static_cast<float>(std::bit_cast<_Float16>(rounded[i])), static_cast<float>(static_cast<_Float16>(values[i]))))
        << fmt::format("{:.20g}", values[i]);
}

TEST(NarrowFloat, F32RoundsToTheNearestF16) {
  std::vector<float> values;
  for (uint32_t high = 0; high < 65536; ++high)
    for (uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x8000u})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  auto rounded = convert<uint16_t>("f32", "f16", "%y = arith.truncf %x : f32 to f16", values);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(sameValue(static_cast<float>(std::bit_cast<_Float16>(rounded[i])), static_cast<float>(static_cast<_Float16>(values[i])))) << values[i];
}

TEST(NarrowFloat, ValuesOfOneTypeBecomeTheOther) {
  std::vector<uint16_t> all = everyPattern();
  auto halves = convert<uint16_t>("bf16", "f16", "%w = arith.extf %x : bf16 to f32\n    %y = arith.truncf %w : f32 to f16", all);
  for (size_t i = 0; i < all.size(); ++i)
    ASSERT_TRUE(sameValue(static_cast<float>(std::bit_cast<_Float16>(halves[i])), static_cast<float>(static_cast<_Float16>(ofBits(all[i])))));
}

TEST(NarrowFloat, TransposesMoveEveryPattern) {
  std::vector<uint16_t> all = everyPattern();
  for (const char *type : {"bf16", "f16"}) {
    constexpr int64_t rows = 317, columns = 41; // neither a multiple of the lanes
    std::string text = fmt::format(R"(#m = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
func.func @f(%a: tensor<{1}x{0}x{2}>) -> tensor<{0}x{1}x{2}> {{
  %e = tensor.empty() : tensor<{0}x{1}x{2}>
  %r = linalg.generic {{indexing_maps = [#t, #m], iterator_types = ["parallel", "parallel"]}} ins(%a : tensor<{1}x{0}x{2}>) outs(%e : tensor<{0}x{1}x{2}>) {{
  ^bb0(%x: {2}, %o: {2}):
    linalg.yield %x : {2}
  }} -> tensor<{0}x{1}x{2}>
  return %r : tensor<{0}x{1}x{2}>
}})", rows, columns, type);
    std::string bytes = run(text, all.data(), rows * columns * 2, rows * columns * 2, rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        uint16_t moved;
        std::memcpy(&moved, bytes.data() + (i * columns + j) * 2, 2);
        ASSERT_EQ(moved, all[static_cast<size_t>(j * rows + i)]) << type;
      }
  }
}

} // namespace
} // namespace msc::test
