// What every communicator must do; run on threads, and under mpirun on processes.
#include "runtime/comm/Operation.h"
#include "test/runtime/comm/Harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace msc;
using namespace msc::comm;
using namespace msc::comm::test;

namespace {

constexpr double kScales[16] = {1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 1e2, 1e3, 1e4, 1e5, 1e6};

/// Element i of rank r: all magnitudes and signs, so that another order of additions gives other bits; or small whole numbers.
template <typename T> T valueOf(int64_t rank, int64_t i) {
  uint64_t x = (static_cast<uint64_t>(rank) << 40) ^ static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15ull;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 32;
  if constexpr (std::is_same_v<T, uint8_t>)
    return x & 1;
  else if constexpr (std::is_floating_point_v<T>)
    return devices() && devices()->addsInAnyOrder() ? static_cast<T>(x % 15) - 7 // products of eight are exact, too
                                                    : static_cast<T>((static_cast<double>(x % 2000001) - 1000000) * kScales[x >> 60]);
  else
    return static_cast<T>(x);
}

template <typename T> T combine(T a, T b, ReduceKind kind) {
  using U = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  if constexpr (std::is_same_v<T, uint8_t>)
    return kind == ReduceKind::Sum || kind == ReduceKind::Max ? a | b : a & b;
  switch (kind) {
  case ReduceKind::Sum: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  case ReduceKind::Prod: return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  case ReduceKind::Min: return a != a ? a : b != b ? b : b < a ? b : a;
  case ReduceKind::Max: return a != a ? a : b != b ? b : b > a ? b : a;
  }
  return a;
}

template <typename T> std::vector<T> dataOf(int64_t rank, int64_t count) {
  std::vector<T> data(count);
  for (int64_t i = 0; i < count; ++i)
    data[i] = valueOf<T>(rank, i);
  return data;
}

template <typename T> std::vector<T> reduced(const std::vector<int64_t> &ranks, int64_t count, ReduceKind kind) {
  std::vector<T> sum = dataOf<T>(ranks[0], count);
  for (size_t r = 1; r < ranks.size(); ++r)
    for (int64_t i = 0; i < count; ++i)
      sum[i] = combine(sum[i], valueOf<T>(ranks[r], i), kind);
  return sum;
}

template <typename T> bool sameBits(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() && (a.empty() || memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T> constexpr ElementType typeOf() {
  if constexpr (std::is_same_v<T, float>)
    return ElementType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return ElementType::F64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return ElementType::I32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return ElementType::I64;
  else
    return ElementType::Bool;
}

constexpr ReduceKind kKinds[] = {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Min, ReduceKind::Max};
/// Around the inline limit, the block and piece boundaries, and beyond the staging of processes.
constexpr int64_t kCounts[] = {0, 1, 2, 7, 8, 127, 256, 257, 1023, 4099, 70001};

template <typename T> void checkAllReduce(Group &group, int64_t count, ReduceKind kind, bool inPlace) {
  if (isTooLarge(count))
    return;
  int64_t own = group.members()[group.rank()];
  std::vector<T> source = dataOf<T>(own, count), target(count);
  void *to = inPlace ? source.data() : target.data();
  Status done = group.allReduce(source.data(), to, count, typeOf<T>(), kind, kLabel);
  ASSERT_TRUE(done.isOk()) << done.error().message;
  EXPECT_TRUE(sameBits(inPlace ? source : target, reduced<T>(group.members(), count, kind)))
      << "count " << count << " " << reduceKindName(kind) << " in place " << inPlace;
  if (!inPlace) {
    EXPECT_TRUE(sameBits(source, dataOf<T>(own, count))) << "the source was changed";
  }
}

class Conformance : public testing::TestWithParam<int64_t> {
protected:
  void run(const std::function<void(World &, Group &)> &body) { onRanks(GetParam(), body); }
};

template <typename T> void checkType(Group &group) {
  for (int64_t count : kCounts)
    for (ReduceKind kind : kKinds)
      for (bool inPlace : {false, true})
        checkAllReduce<T>(group, count, kind, inPlace);
}

} // namespace

TEST_P(Conformance, AllReduceAddsInRankOrderInTheElementType) {
  run([](World &, Group &group) {
    checkType<float>(group);
    checkType<double>(group);
    checkType<int32_t>(group);
    checkType<int64_t>(group);
    checkType<uint8_t>(group);
  });
}

TEST_P(Conformance, AllReduceOfLargeBuffers) {
  run([](World &, Group &group) {
    checkAllReduce<float>(group, (int64_t{9} << 18) + 5, ReduceKind::Sum, false);
    checkAllReduce<float>(group, (int64_t{9} << 18) + 5, ReduceKind::Max, true);
    checkAllReduce<double>(group, (int64_t{1} << 20) + 3, ReduceKind::Sum, true);
  });
}

TEST_P(Conformance, NaNWinsInMinAndMaxFromEveryRank) {
  run([](World &, Group &group) {
    for (int64_t count : {int64_t{16}, int64_t{3000}})
      for (ReduceKind kind : {ReduceKind::Min, ReduceKind::Max}) {
        std::vector<float> data(count, static_cast<float>(group.rank()));
        data[group.rank()] = std::numeric_limits<float>::quiet_NaN();
        ASSERT_TRUE(group.allReduce(data.data(), data.data(), count, ElementType::F32, kind, kLabel).isOk());
        for (int64_t i = 0; i < count; ++i) {
          if (i < group.size())
            EXPECT_TRUE(std::isnan(data[i])) << i;
          else
            EXPECT_EQ(data[i], kind == ReduceKind::Min ? 0.0f : static_cast<float>(group.size() - 1));
        }
      }
  });
}

TEST_P(Conformance, SubGroupsWorkSideBySideAndInTurn) {
  run([](World &world, Group &all) {
    int64_t n = all.size(), own = world.rank();
    std::vector<int64_t> parity, half;
    for (int64_t r = 0; r < n; ++r) {
      if (r % 2 == own % 2)
        parity.push_back(r);
      if ((r < n / 2) == (own < n / 2))
        half.push_back(r);
    }
    Result<Group *> a = world.group(parity), b = world.group(half);
    ASSERT_TRUE(a.isOk() && b.isOk());
    EXPECT_EQ(*a, *world.group(parity)) << "the same list gives the same group";
    for (int round = 0; round < 20; ++round)
      for (int64_t count : {3, 5000}) {
        checkAllReduce<float>(**a, count + round, ReduceKind::Sum, false);
        checkAllReduce<float>(**b, count + round, ReduceKind::Sum, true);
        checkAllReduce<double>(all, count, ReduceKind::Sum, false);
      }
  });
}

TEST_P(Conformance, GroupsThatCannotBeAreRefused) {
  run([](World &world, Group &all) {
    EXPECT_FALSE(world.group({world.size()}).isOk());
    EXPECT_FALSE(world.group({world.rank(), world.rank()}).isOk());
    EXPECT_FALSE(world.group({}).isOk());
    if (all.size() > 1) {
      EXPECT_FALSE(world.group({(world.rank() + 1) % all.size()}).isOk()) << "it does not hold the rank that asks";
    }
  });
}

// Plans add it up in f32. Ranks without a piece of the result refuse, too: one element has one owner.
TEST_P(Conformance, HalfPrecisionIsNotReduced) {
  run([](World &, Group &group) {
    uint16_t x = 1, y = 0;
    Status done = group.allReduce(&x, &y, 1, ElementType::F16, ReduceKind::Sum, kLabel);
    ASSERT_FALSE(done.isOk());
    EXPECT_EQ(done.error().code, ExitCode::Usage);
    EXPECT_NE(done.error().message.find("reduces f16 values"), std::string::npos) << done.error().message;
  });
}

TEST_P(Conformance, AllReduceOfManyTensorsGivesTheBitsOfOneAfterTheOther) {
  run([](World &, Group &group) {
    int64_t own = group.members()[group.rank()];
    for (const std::vector<int64_t> &counts : std::vector<std::vector<int64_t>>{
             {1}, {3, 0, 5}, {257, 1, 70001, 7}, {1 << 20, 3, 1 << 21}, std::vector<int64_t>(100, 13)}) {
      if (isTooLarge(*std::max_element(counts.begin(), counts.end())))
        continue;
      std::vector<std::vector<float>> sources, targets;
      std::vector<ReducePart> parts;
      for (size_t i = 0; i < counts.size(); ++i) {
        sources.push_back(dataOf<float>(own, counts[i]));
        targets.emplace_back(counts[i]);
      }
      for (size_t i = 0; i < counts.size(); ++i) // every other one in place
        parts.push_back({sources[i].data(), i % 2 ? sources[i].data() : targets[i].data(), counts[i]});
      Status done = group.allReduceMany(parts, ElementType::F32, ReduceKind::Sum, kLabel);
      ASSERT_TRUE(done.isOk()) << done.error().message;
      for (size_t i = 0; i < counts.size(); ++i)
        EXPECT_TRUE(sameBits(i % 2 ? sources[i] : targets[i], reduced<float>(group.members(), counts[i], ReduceKind::Sum)))
            << "tensor " << i << " of " << counts.size();
    }
  });
}

TEST_P(Conformance, ReduceScatterOfManyTensorsGivesTheBitsOfOneAfterTheOther) {
  run([](World &, Group &group) {
    int64_t own = group.members()[group.rank()];
    std::vector<int64_t> counts{5, 1000, 3, 70001};
    std::vector<std::vector<float>> sources, targets;
    std::vector<std::vector<Region>> pieces;
    for (int64_t count : counts) {
      sources.push_back(dataOf<float>(own, count));
      pieces.emplace_back();
      for (int m = 0; m < group.size(); ++m) {
        Range part = pieceOf(count, m, group.size());
        pieces.back().push_back({part.begin, {part.size()}, {1}});
      }
      targets.emplace_back(pieces.back()[group.rank()].count());
    }
    std::vector<ScatterPart> parts;
    for (size_t i = 0; i < counts.size(); ++i)
      parts.push_back({sources[i].data(), targets[i].data(), pieces[i]});
    Status done = group.reduceScatterMany(parts, ElementType::F32, ReduceKind::Sum, kLabel);
    ASSERT_TRUE(done.isOk()) << done.error().message;
    for (size_t i = 0; i < counts.size(); ++i) {
      std::vector<float> sum = reduced<float>(group.members(), counts[i], ReduceKind::Sum);
      const Region &piece = pieces[i][group.rank()];
      EXPECT_TRUE(sameBits(targets[i], {sum.begin() + piece.offset, sum.begin() + piece.offset + piece.count()})) << i;
    }
  });
}

TEST_P(Conformance, ReduceScatterGivesTheBitsOfAllReduce) {
  run([](World &, Group &group) {
    // Columns of a matrix, uneven, so that pieces are strided; some are empty when there are more members than columns.
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{5, 3}, {64, 37}, {300, 257}, {1, 6}, {7, 2000}}) {
      int64_t own = group.members()[group.rank()];
      std::vector<float> source = dataOf<float>(own, rows * columns);
      std::vector<float> sum = reduced<float>(group.members(), rows * columns, ReduceKind::Sum);
      std::vector<Region> pieces;
      for (int m = 0; m < group.size(); ++m) {
        Range part = pieceOf(columns, m, group.size());
        pieces.push_back({part.begin, {rows, part.size()}, {columns, 1}});
      }
      const Region &piece = pieces[group.rank()];
      std::vector<float> target(piece.count()), expected;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < piece.sizes[1]; ++c)
          expected.push_back(sum[r * columns + piece.offset + c]);
      Status done = group.reduceScatter(source.data(), target.data(), pieces, ElementType::F32, ReduceKind::Sum, kLabel);
      ASSERT_TRUE(done.isOk()) << done.error().message;
      EXPECT_TRUE(sameBits(target, expected)) << rows << " x " << columns;
    }
  });
}

namespace {

/// From rows to columns of a rows x columns matrix: an AlltoAll with strided regions on both sides.
ExchangePlan transposition(int me, int members, int64_t rows, int64_t columns) {
  ExchangePlan plan;
  Range ownRows = pieceOf(rows, me, members), ownColumns = pieceOf(columns, me, members);
  for (int m = 0; m < members; ++m) {
    Range peerRows = pieceOf(rows, m, members), peerColumns = pieceOf(columns, m, members);
    Region inPeer{ownColumns.begin, {peerRows.size(), ownColumns.size()}, {columns, 1}};
    Region inOwn{peerRows.begin * ownColumns.size(), {peerRows.size(), ownColumns.size()}, {ownColumns.size(), 1}};
    plan.receives.push_back({m, inPeer, inOwn});
    plan.sends.push_back({m,
                          {peerColumns.begin, {ownRows.size(), peerColumns.size()}, {columns, 1}},
                          {ownRows.begin * peerColumns.size(), {ownRows.size(), peerColumns.size()}, {peerColumns.size(), 1}}});
  }
  return plan;
}

} // namespace

TEST_P(Conformance, ExchangeMovesStridedRegions) {
  run([](World &, Group &group) {
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{3, 5}, {64, 64}, {129, 513}, {2, 1}, {1500, 999}}) {
      if (isTooLarge(rows * columns))
        continue;
      ExchangePlan plan = transposition(group.rank(), group.size(), rows, columns);
      Range ownRows = pieceOf(rows, group.rank(), group.size()), ownColumns = pieceOf(columns, group.rank(), group.size());
      std::vector<float> source(ownRows.size() * columns), target(rows * ownColumns.size(), -1);
      for (size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<float>(ownRows.begin * columns + static_cast<int64_t>(i));
      Status done = group.exchange(source.data(), target.data(), plan, kLabel);
      ASSERT_TRUE(done.isOk()) << done.error().message;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < ownColumns.size(); ++c)
          ASSERT_EQ(target[r * ownColumns.size() + c], static_cast<float>(r * columns + ownColumns.begin + c));
    }
  });
}

TEST_P(Conformance, ExchangeInARingOfEveryElementSize) {
  run([](World &, Group &group) {
    for (ElementType type : {ElementType::Bool, ElementType::BF16, ElementType::I32, ElementType::F64}) {
      size_t size = elementSize(type);
      int n = group.size(), next = (group.rank() + 1) % n, previous = (group.rank() + n - 1) % n;
      // Every second element goes round: strides other than 1 on the sending side.
      Region sent{1, {500}, {2}}, kept{0, {500}, {1}};
      ExchangePlan plan{{{previous, sent, kept}}, {{next, sent, kept}}, type};
      std::vector<uint8_t> source(1002 * size), target(500 * size);
      for (size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<uint8_t>(i * 7 + group.rank());
      Status done = group.exchange(source.data(), target.data(), plan, kLabel);
      ASSERT_TRUE(done.isOk()) << done.error().message;
      for (size_t i = 0; i < 500; ++i)
        for (size_t b = 0; b < size; ++b)
          ASSERT_EQ(target[i * size + b], static_cast<uint8_t>(((2 * i + 1) * size + b) * 7 + previous)) << i;
    }
  });
}

TEST_P(Conformance, BroadcastReachesAllFromEveryRoot) {
  run([](World &, Group &group) {
    for (int root = 0; root < group.size(); ++root)
      for (size_t bytes : {size_t{0}, size_t{1}, size_t{1024}, size_t{1025}, size_t{3000017}}) {
        std::vector<uint8_t> data(bytes), expected(bytes);
        for (size_t i = 0; i < bytes; ++i) {
          expected[i] = static_cast<uint8_t>(i * 31 + root);
          data[i] = group.rank() == root ? expected[i] : 0;
        }
        Status done = group.broadcast(data.data(), bytes, root, kLabel);
        ASSERT_TRUE(done.isOk()) << done.error().message;
        ASSERT_TRUE(data == expected) << bytes << " from " << root;
      }
  });
}

TEST_P(Conformance, ManySmallOperationsStayInStep) {
  run([](World &, Group &group) {
    for (int i = 0; i < 500; ++i) {
      int64_t value = i * 10 + group.rank(), n = group.size();
      ASSERT_TRUE(group.allReduce(&value, &value, 1, ElementType::I64, ReduceKind::Sum, kLabel).isOk());
      ASSERT_EQ(value, n * i * 10 + n * (n - 1) / 2);
      if (i % 5 == 0) {
        ASSERT_TRUE(group.barrier(kLabel).isOk());
      }
    }
  });
}

TEST_P(Conformance, WorldKnowsItsRanks) {
  run([](World &world, Group &group) {
    EXPECT_EQ(world.rank(), group.rank());
    EXPECT_GE(world.size(), GetParam());
    EXPECT_LT(world.localRank(), world.localSize());
    EXPECT_FALSE(world.firstFailure().has_value());
    EXPECT_STREQ(world.transport(), mpiWorld() ? "mpi" : "threads");
  });
}

// Asked for when the tests are registered, behind the beginning of `devices`.
INSTANTIATE_TEST_SUITE_P(Ranks, Conformance, testing::ValuesIn(rankCounts()));
