#include "runtime/data/Draw.h"
#include "runtime/data/Philox.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace msc;

namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32_10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, RowsDifferByNameAndSeed) {
  std::set<Words> seen;
  for (uint64_t seed : {1, 2})
    for (const char *name : {"w", "w2", ""})
      for (uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40})
        seen.insert(RandomRow(seed, name).words(index));
  EXPECT_EQ(seen.size(), 18u);
}

plan::Initializer initializer(const std::string &kind, double a = 0, double b = 0) {
  plan::Initializer result;
  result.set_kind(kind);
  result.set_a(a);
  result.set_b(b);
  return result;
}

struct Moments {
  double mean = 0, deviation = 0, least = 1e300, most = -1e300;
};

Moments momentsOf(const plan::Initializer &what, const std::vector<int64_t> &shape) {
  auto function = initializerFunction(what, shape, 1, "w", true);
  EXPECT_TRUE(function);
  constexpr int count = 200000;
  Moments moments;
  double squares = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double value = (*function)(i);
    moments.mean += value / count;
    squares += value * value / count;
    moments.least = std::min(moments.least, value);
    moments.most = std::max(moments.most, value);
  }
  moments.deviation = std::sqrt(squares - moments.mean * moments.mean);
  return moments;
}

TEST(Initializers, HaveTheirMoments) {
  Moments normal = momentsOf(initializer("normal", 0.02, 3), {64, 32});
  EXPECT_NEAR(normal.mean, 3, 2e-4);
  EXPECT_NEAR(normal.deviation, 0.02, 2e-4);
  Moments uniform = momentsOf(initializer("uniform", -1, 3), {64, 32});
  EXPECT_NEAR(uniform.mean, 1, 0.01);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), 0.01);
  EXPECT_GE(uniform.least, -1);
  EXPECT_LT(uniform.most, 3);
  // A normal distribution cut at 2 sigma has 0.8796 of its deviation.
  Moments truncated = momentsOf(initializer("truncated_normal", 0.5), {64, 32});
  EXPECT_NEAR(truncated.deviation, 0.5 * 0.87963, 2e-3);
  EXPECT_GE(truncated.least, -1);
  EXPECT_LE(truncated.most, 1);
  // Incoming connections: dimension 1 times the receptive field.
  EXPECT_NEAR(momentsOf(initializer("he_normal"), {64, 32}).deviation, std::sqrt(2.0 / 32), 2e-3);
  EXPECT_NEAR(momentsOf(initializer("he_normal"), {64, 8, 3, 3}).deviation, std::sqrt(2.0 / 72), 2e-3);
  EXPECT_NEAR(momentsOf(initializer("he_uniform"), {64, 32}).most, std::sqrt(6.0 / 32), 1e-3);
  EXPECT_NEAR(momentsOf(initializer("xavier_uniform"), {64, 32}).most, std::sqrt(6.0 / 96), 1e-3);
  EXPECT_NEAR(momentsOf(initializer("xavier_uniform", 2), {64, 32}).most, 2 * std::sqrt(6.0 / 96), 1e-3);
  EXPECT_EQ(momentsOf(initializer("zeros"), {2}).most, 0);
  EXPECT_EQ(momentsOf(initializer("ones"), {2}).least, 1);
  EXPECT_EQ(momentsOf(initializer("constant", 0.25), {2}).least, 0.25);
}

TEST(Initializers, QuantilesInvertTheDistribution) {
  for (double p : {1e-12, 1e-6, 0.01, 0.1, 0.3, 0.5, 0.7, 0.975, 0.999999}) {
    double x = normalQuantile(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1, 1e-11) << p;
  }
  EXPECT_NEAR(normalQuantile(0.975), 1.959963984540054, 1e-14);
}

TEST(Initializers, UnknownOnesAreRefused) {
  auto function = initializerFunction(initializer("magic"), {2}, 1, "w", true);
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().message, "parameter 'w' has an unknown initializer 'magic'");
}

template <typename T> std::vector<T> filled(plan::DataType type, const std::vector<int64_t> &shape, const Box &box,
                                            const ElementFunction &function) {
  std::vector<T> values(static_cast<size_t>(elementCount(box)));
  fillBox(reinterpret_cast<std::byte *>(values.data()), type, shape, box, 0, function);
  return values;
}

TEST(Initializers, EveryShardingDrawsTheSame) {
  std::vector<int64_t> shape{7, 5, 3};
  auto function = initializerFunction(initializer("normal", 1), shape, 9, "w", true);
  ASSERT_TRUE(function);
  std::vector<float> whole = filled<float>(plan::F32, shape, {{0, 7}, {0, 5}, {0, 3}}, *function);
  for (Sharding sharding : {Sharding{{4}, {{0}, {}, {}}, {}}, Sharding{{2, 3}, {{1}, {0}, {}}, {}},
                            Sharding{{8}, {{}, {}, {0}}, {}}, Sharding{{2, 2, 2}, {{2, 0}, {1}, {}}, {}}})
    for (int64_t rank = 0; rank < sharding.devices(); ++rank) {
      Box box = sharding.localBox(shape, rank);
      std::vector<float> mine = filled<float>(plan::F32, shape, box, *function);
      size_t next = 0;
      for (int64_t i = box[0].begin; i < box[0].end; ++i)
        for (int64_t j = box[1].begin; j < box[1].end; ++j)
          for (int64_t k = box[2].begin; k < box[2].end; ++k)
            ASSERT_EQ(mine[next++], whole[(i * 5 + j) * 3 + k]) << sharding.str();
    }
}

TEST(Draw, ElementTypes) {
  ElementFunction index = [](uint64_t i) { return static_cast<double>(i) + 0.75; };
  Box box{{0, 3}};
  EXPECT_EQ(filled<double>(plan::F64, {3}, box, index), (std::vector<double>{0.75, 1.75, 2.75}));
  EXPECT_EQ(filled<int32_t>(plan::I32, {3}, box, index), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(filled<int64_t>(plan::I64, {3}, box, index), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(filled<uint8_t>(plan::BOOL, {3}, box, index), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(filled<uint16_t>(plan::BF16, {3}, box, index), (std::vector<uint16_t>{0x3f40, 0x3fe0, 0x4030}));
}

TEST(Draw, ColumnsByDistribution) {
  plan::Dataset::Column column;
  column.set_name("label");
  column.set_distribution("integers");
  column.add_values(3);
  column.add_values(6);
  auto integers = columnFunction(column, 1, false);
  std::set<double> seen;
  for (uint64_t i = 0; i < 1000; ++i)
    seen.insert((*integers)(i));
  EXPECT_EQ(seen, (std::set<double>{3, 4, 5}));
  column.set_distribution("uniform");
  column.clear_values();
  auto uniform = columnFunction(column, 1, true);
  for (uint64_t i = 0; i < 100000; ++i)
    ASSERT_LT(static_cast<float>((*uniform)(i)), 1.0f);
}

} // namespace
