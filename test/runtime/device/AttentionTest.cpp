// Attention over more than one tile, on a part of the queries: against sums in f64, and the same bits from every
// instruction set and any number of threads.
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/calls/AttentionTiles.h"
#include "runtime/device/cpu/calls/Elements.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace msc;
using namespace msc::device;
using device::calls::attentionScratch;
using device::calls::AttentionHead;
using device::calls::AttentionTiles;
using device::calls::BFloat16;
using device::calls::kAttentionTile;
namespace v3 = device::calls::v3;
namespace v4 = device::calls::v4;

namespace {

/// Sizes of one attention; the rank holds the queries from `first` to `last`.
struct Shape {
  int64_t batch = 2, heads = 4, shared = 2, size = 20, first = 0, last = 150, all = 150, keys = 130;
  bool causal = true;
  int64_t queries() const { return last - first; }
};

template <typename T> std::vector<T> drawn(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1.5, 1.5);
  std::vector<T> values(static_cast<size_t>(count));
  for (T &value : values)
    value = static_cast<T>(static_cast<float>(uniform(random)));
  return values;
}

double numberOf(double element) { return element; }
double numberOf(BFloat16 element) { return static_cast<float>(element); }

/// All tensors of one attention and its gradient.
template <typename T> struct Tensors {
  using Wide = device::calls::ComputeType<T>;
  Shape shape;
  std::vector<T> query, key, value, output, dout, dquery, dkey, dvalue;
  std::vector<Wide> logs;

  explicit Tensors(const Shape &shape) : shape(shape) {
    int64_t wide = shape.batch * shape.queries() * shape.heads * shape.size, narrow = shape.batch * shape.keys * shape.shared * shape.size;
    query = drawn<T>(wide, 1), key = drawn<T>(narrow, 2), value = drawn<T>(narrow, 3), dout = drawn<T>(wide, 4);
    output.resize(query.size()), dquery.resize(query.size()), dkey.resize(key.size()), dvalue.resize(key.size());
    logs.resize(static_cast<size_t>(shape.batch * shape.heads * shape.queries()));
  }

  template <typename Element> static CallTensor tensor(std::vector<Element> &data, std::vector<int64_t> global, Box box) {
    return {sizeof(Element) == 8 ? plan::F64 : sizeof(Element) == 4 ? plan::F32 : plan::BF16, std::move(global), std::move(box), reinterpret_cast<std::byte *>(data.data())};
  }
  CallTensor queries(std::vector<T> &data) const {
    int64_t width = shape.heads * shape.size;
    return tensor(data, {shape.batch, shape.all, width}, {{0, shape.batch}, {shape.first, shape.last}, {0, width}});
  }
  CallTensor keys(std::vector<T> &data) const {
    int64_t width = shape.shared * shape.size;
    return tensor(data, {shape.batch, shape.keys, width}, {{0, shape.batch}, {0, shape.keys}, {0, width}});
  }
  CallTensor statistics() {
    return tensor(logs, {shape.batch, shape.heads, shape.all}, {{0, shape.batch}, {0, shape.heads}, {shape.first, shape.last}});
  }

  void run(int threads) {
    CallSpec forward{"ScaledDotProductAttention", {queries(query), keys(key), keys(value)}, {queries(output), statistics()}};
    CallSpec backward{"ScaledDotProductAttentionGrad",
                      {queries(query), keys(key), keys(value), queries(output), statistics(), queries(dout)},
                      {queries(dquery), keys(dkey), keys(dvalue)}};
    std::unique_ptr<Device> device = createCpuDevice(*KernelLibrary::load(plan::Plan()), {threads, {}});
    std::vector<std::unique_ptr<Operation>> operations;
    for (CallSpec *spec : {&forward, &backward}) {
      spec->attributes.set("heads", {shape.heads});
      spec->attributes.set("causal", {shape.causal});
      spec->tasks = 7;
      auto operation = device->prepareCall(*spec);
      ASSERT_TRUE(operation) << operation.error().message;
      operations.push_back(std::move(*operation));
    }
    ASSERT_TRUE(device->finishPreparation());
    for (auto &operation : operations)
      ASSERT_TRUE(operation->run());
  }
};

/// The definition, in f64.
template <typename T> void expectRight(const Tensors<T> &x, double tolerance) {
  const Shape &s = x.shape;
  std::vector<double> dkey(x.key.size()), dvalue(x.value.size());
  double scale = 1 / std::sqrt(static_cast<double>(s.size));
  auto at = [&](int64_t b, int64_t i, int64_t h, int64_t rows, int64_t heads) { return ((b * rows + i) * heads + h) * s.size; };
  auto near = [&](double found, double wanted, const char *what) {
    ASSERT_NEAR(found, wanted, tolerance * std::max(1.0, std::fabs(wanted))) << what;
  };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries(); ++i) {
        int64_t g = h * s.shared / s.heads, q = at(b, i, h, s.queries(), s.heads);
        int64_t valid = s.causal ? std::min(s.keys, s.first + i + 1) : s.keys;
        std::vector<double> weights(static_cast<size_t>(valid)), slopes(weights.size());
        double sum = 0, own = 0;
        for (int64_t j = 0; j < valid; ++j) {
          int64_t k = at(b, j, g, s.keys, s.shared);
          for (int64_t d = 0; d < s.size; ++d) {
            weights[j] += scale * numberOf(x.query[q + d]) * numberOf(x.key[k + d]);
            slopes[j] += numberOf(x.dout[q + d]) * numberOf(x.value[k + d]);
          }
          sum += weights[j] = std::exp(weights[j]);
        }
        near(x.logs[(b * s.heads + h) * s.queries() + i], std::log(sum), "logsumexp");
        for (int64_t j = 0; j < valid; ++j)
          own += weights[j] / sum * slopes[j];
        for (int64_t d = 0; d < s.size; ++d) {
          double output = 0, dquery = 0;
          for (int64_t j = 0; j < valid; ++j) {
            int64_t k = at(b, j, g, s.keys, s.shared);
            double weight = weights[j] / sum, slope = scale * weight * (slopes[j] - own);
            output += weight * numberOf(x.value[k + d]);
            dquery += slope * numberOf(x.key[k + d]);
            dkey[k + d] += slope * numberOf(x.query[q + d]);
            dvalue[k + d] += weight * numberOf(x.dout[q + d]);
          }
          near(numberOf(x.output[q + d]), output, "output");
          near(numberOf(x.dquery[q + d]), dquery, "dquery");
        }
        if (testing::Test::HasFatalFailure())
          return;
      }
  for (size_t i = 0; i < dkey.size(); ++i) {
    near(numberOf(x.dkey[i]), dkey[i], "dkey");
    near(numberOf(x.dvalue[i]), dvalue[i], "dvalue");
    if (testing::Test::HasFatalFailure())
      return;
  }
}

template <typename T> void check(const Shape &shape, double tolerance) {
  Tensors<T> one(shape), three(shape);
  one.run(1);
  three.run(3);
  expectRight(one, tolerance);
  auto same = [](const auto &a, const auto &b) { return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0; };
  EXPECT_TRUE(same(one.output, three.output) && same(one.logs, three.logs));
  EXPECT_TRUE(same(one.dquery, three.dquery) && same(one.dkey, three.dkey) && same(one.dvalue, three.dvalue));
}

TEST(Attention, IsRightOverTilesAndParts) {
  for (bool causal : {false, true}) {
    check<float>({.causal = causal}, 2e-5);
    check<double>({.causal = causal}, 1e-12);
    check<double>({.heads = 3, .shared = 1, .size = 33, .first = 70, .last = 141, .causal = causal}, 1e-12);
    check<float>({.batch = 1, .heads = 2, .shared = 2, .size = 64, .first = 3, .last = 67, .keys = 64, .causal = causal}, 2e-5);
  }
}

/// Sums are of f32; weights and their gradients are rounded where tiles multiply.
TEST(Attention, OfBFloat16IsRightOverTilesAndParts) {
  for (bool causal : {false, true}) {
    check<BFloat16>({.causal = causal}, 0.02);
    check<BFloat16>({.heads = 3, .shared = 1, .size = 33, .first = 70, .last = 141, .causal = causal}, 0.02);
    check<BFloat16>({.batch = 1, .heads = 2, .shared = 2, .size = 64, .first = 3, .last = 67, .keys = 64, .causal = causal}, 0.02);
    check<BFloat16>({.batch = 1, .heads = 1, .shared = 1, .size = 1, .last = 1, .all = 1, .keys = 1, .causal = causal}, 0.02);
    check<BFloat16>({.batch = 1, .heads = 2, .shared = 1, .size = 129, .last = 65, .all = 65, .keys = 33, .causal = causal}, 0.02);
  }
}

template <typename T, typename Element> void runTiles(Tensors<T> &x, const AttentionTiles<float, Element> &tiles) {
  const Shape &s = x.shape;
  auto at = [](std::vector<T> &data) { return reinterpret_cast<Element *>(data.data()); };
  AttentionHead<float, Element> head{at(x.query), at(x.key), at(x.value), s.size, s.size, s.queries(), s.keys, s.size, 0, true, 0.2f};
  head.output = at(x.output), head.logsumexp = x.logs.data(), head.dout = at(x.dout);
  head.dquery = at(x.dquery), head.dkey = at(x.dkey), head.dvalue = at(x.dvalue);
  std::vector<float> scratch(static_cast<size_t>(attentionScratch(s.size)) + 16);
  for (int64_t first = 0; first < s.queries(); first += kAttentionTile)
    tiles.forward(head, first, std::min(kAttentionTile, s.queries() - first), scratch.data());
  for (int64_t first = 0; first < s.queries(); first += kAttentionTile)
    tiles.queries(head, first, std::min(kAttentionTile, s.queries() - first), scratch.data());
  for (int64_t first = 0; first < s.keys; first += kAttentionTile)
    tiles.keys(&head, 1, first, std::min(kAttentionTile, s.keys - first), scratch.data());
}

template <typename T, typename Tiles> void expectSameBits(const Tiles &oldTiles, const Tiles &newTiles) {
  Tensors<T> old({.batch = 1, .heads = 1, .shared = 1, .size = 40}), wide = old;
  runTiles(old, oldTiles);
  runTiles(wide, newTiles);
  auto differ = [](const auto &a, const auto &b) { return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])); };
  EXPECT_EQ(differ(old.output, wide.output), 0);
  EXPECT_EQ(differ(old.logs, wide.logs), 0);
  EXPECT_EQ(differ(old.dquery, wide.dquery), 0);
  EXPECT_EQ(differ(old.dkey, wide.dkey), 0);
  EXPECT_EQ(differ(old.dvalue, wide.dvalue), 0);
}

TEST(Attention, GivesTheSameBitsOnEveryInstructionSet) {
  if (!__builtin_cpu_supports("x86-64-v4"))
    GTEST_SKIP() << "below x86-64-v4 a CPU has one of the two instruction sets, and nothing to compare it with";
  expectSameBits<float>(v3::floatTiles(), v4::floatTiles());
  expectSameBits<BFloat16>(v3::narrowTiles(), v4::narrowTiles());
}

TEST(Attention, RefusesWhatDoesNotFit) {
  Tensors<float> x({});
  auto spec = [&] {
    CallSpec made{"ScaledDotProductAttention", {x.queries(x.query), x.keys(x.key), x.keys(x.value)}, {x.queries(x.output), x.statistics()}};
    made.attributes.set("heads", {4});
    return made;
  };
  EXPECT_TRUE(checkCall(spec()));
  auto refused = [](const CallSpec &spec) { return checkCall(spec).error().message; };
  CallSpec wrong = spec();
  wrong.attributes.set("heads", {3});
  EXPECT_EQ(refused(wrong), "ScaledDotProductAttention: 'heads' does not divide the width of the queries");
  wrong = spec();
  wrong.operands[1].box[1].end = 100;
  EXPECT_EQ(refused(wrong), "ScaledDotProductAttention: the sequence of keys is whole on every rank");
  wrong = spec();
  wrong.operands[0].box[2] = {0, 40};
  EXPECT_EQ(refused(wrong), "ScaledDotProductAttention: heads that belong together are not on one rank");
  wrong = spec();
  wrong.operands[2].type = plan::BF16;
  EXPECT_EQ(refused(wrong), "ScaledDotProductAttention takes tensors of one float type, and logarithms of f32 or f64");
  wrong.operands[0].type = wrong.operands[1].type = wrong.results[0].type = plan::BF16;
  EXPECT_TRUE(checkCall(wrong));
  wrong.results[1].type = plan::BF16;
  EXPECT_EQ(refused(wrong), "ScaledDotProductAttention takes tensors of one float type, and logarithms of f32 or f64");
  wrong = spec();
  wrong.results[1].shape[1] = 5;
  EXPECT_EQ(refused(wrong), "ScaledDotProductAttention: its results differ in shape");
}

} // namespace
