// Every set of attention kernels of the CUDA backend, emulated, against sums in double precision.
#include "runtime/device/cuda/Kernels.h"
#include "test/Campaign.h"
#include "test/e2e/Random.h"
#include "test/passes/codegen/GpuEmulator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

using namespace msc;
using device::cuda::AttentionDescriptor;
using device::cuda::AttentionKernels;

namespace {

/// Numbers of one type, as f64 and as a kernel has them.
struct Tensor {
  std::vector<double> values;
  std::vector<std::byte> bytes;
};

double rounded(const std::string &type, double value) {
  if (type == "f32")
    return static_cast<float>(value);
  int bits = type == "f16" ? 11 : 8, exponent = 0;
  double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

uint16_t narrowBits(const std::string &type, double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == "bf16")
    return static_cast<uint16_t>(bits >> 16);
  if (value == 0)
    return 0;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

Tensor draw(const std::string &type, int64_t count, e2e::Random &random) {
  Tensor made;
  for (int64_t i = 0; i < count; ++i) {
    double value = rounded(type, random.real(-1, 1));
    if (std::abs(value) < 1e-3) // no subnormal numbers of f16
      value = 0.125;
    made.values.push_back(value);
    auto *from = reinterpret_cast<const std::byte *>(&value);
    float wide = static_cast<float>(value);
    uint16_t narrow = narrowBits(type, value);
    from = type == "f32" ? reinterpret_cast<const std::byte *>(&wide) : reinterpret_cast<const std::byte *>(&narrow);
    made.bytes.insert(made.bytes.end(), from, from + (type == "f32" ? 4 : 2));
  }
  return made;
}

std::vector<double> read(const std::string &type, const std::vector<std::byte> &bytes) {
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += type == "f32" ? 4 : 2) {
    uint16_t bits = 0;
    float wide = 0;
    std::memcpy(&wide, &bytes[at], type == "f32" ? 4 : 0);
    std::memcpy(&bits, &bytes[at], 2);
    if (type == "bf16")
      wide = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    if (type == "f16")
      wide = (bits & 0x8000 ? -1.0f : 1.0f) * ((bits >> 10 & 31) == 0 ? std::ldexp(static_cast<float>(bits & 1023), -24)
                                                                      : std::ldexp(1024.0f + (bits & 1023), (bits >> 10 & 31) - 25));
    values.push_back(wide);
  }
  return values;
}

/// An attention with its gradients, in double precision.
struct Reference {
  const AttentionDescriptor &a;
  int64_t batch;
  const std::vector<double> &query, &key, &value, &dout;
  std::vector<double> mask; ///< what is added to scores, one per item, head, query and key; empty: nothing
  std::vector<double> out, logs, dquery, dkey, dvalue;

  size_t ofQuery(int64_t b, int64_t h, int64_t s) const { return static_cast<size_t>(((b * a.queries + s) * a.heads + h) * a.size); }
  size_t ofKey(int64_t b, int64_t h, int64_t t) const {
    return static_cast<size_t>(((b * a.keys + t) * a.keyHeads + h * a.keyHeads / a.heads) * a.size);
  }

  void compute() {
    out.resize(query.size()), dquery.resize(query.size()), dkey.resize(key.size()), dvalue.resize(key.size());
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < a.heads; ++h)
        for (int64_t s = 0; s < a.queries; ++s)
          row(b, h, s);
  }
  void row(int64_t b, int64_t h, int64_t s) {
    std::vector<double> weights(static_cast<size_t>(a.keys));
    double total = 0, most = -INFINITY;
    size_t q = ofQuery(b, h, s), size = static_cast<size_t>(a.size);
    for (int64_t t = 0; t < a.keys; ++t) {
      double score = 0;
      for (size_t i = 0; i < size; ++i)
        score += query[q + i] * key[ofKey(b, h, t) + i];
      score *= a.scale;
      if (!mask.empty())
        score += mask[static_cast<size_t>(((b * a.heads + h) * a.queries + s) * a.keys + t)];
      weights[static_cast<size_t>(t)] = a.causal && t > a.firstQuery + s ? -INFINITY : score;
      most = std::max(most, weights[static_cast<size_t>(t)]);
    }
    for (double &weight : weights)
      total += weight = std::isinf(most) ? 0 : std::exp(weight - most);
    logs.push_back(total > 0 ? most + std::log(total) : -INFINITY);
    double under = 0;
    for (int64_t t = 0; t < a.keys; ++t)
      for (size_t i = 0; i < size; ++i)
        out[q + i] += weights[static_cast<size_t>(t)] / std::max(total, 1e-300) * value[ofKey(b, h, t) + i];
    for (size_t i = 0; i < size; ++i)
      under += out[q + i] * dout[q + i];
    for (int64_t t = 0; t < a.keys && total > 0; ++t) {
      double weight = weights[static_cast<size_t>(t)] / total, slope = -under;
      size_t k = ofKey(b, h, t);
      for (size_t i = 0; i < size; ++i)
        slope += dout[q + i] * value[k + i];
      for (size_t i = 0; i < size; ++i) {
        dvalue[k + i] += weight * dout[q + i];
        dkey[k + i] += a.scale * weight * slope * query[q + i];
        dquery[q + i] += a.scale * weight * slope * key[k + i];
      }
    }
  }
};

double errorOf(const std::vector<double> &got, const std::vector<double> &expected) {
  double difference = 0, size = 1e-30;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i]) && got[i] == expected[i])
      continue;
    difference += (got[i] - expected[i]) * (got[i] - expected[i]), size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

class AttentionKernelsOf : public testing::TestWithParam<size_t> {};

TEST_P(AttentionKernelsOf, GiveTheSumsOfDoublePrecision) {
  const AttentionKernels &set = device::cuda::attentionKernels[GetParam()];
  std::stringstream ir;
  ir << std::ifstream(fmt::format("{}/attention_{}_{}_{}.ll", MSC_KERNELS_IR, set.type, set.depth, set.sides[0])).rdbuf();
  test::GpuEmulator gpu(ir.str());
  const std::string type = set.type;
  const size_t bytes = type == "f32" ? 4 : 2;
  const double most = type == "f32" ? 2e-6 : type == "f16" ? 1.5e-3 : 1.2e-2; // of the rounding of weights and results
  e2e::Random random(GetParam() + 1);
  constexpr int kinds = 5;
  for (int kind = 0; kind < kinds; ++kind) {
    if (type == "f16" && !test::isLongRun() && kind != static_cast<int>(GetParam()) % kinds)
      continue; // short runs emulate all kinds for bf16, which is the same source but for the type
    const int64_t side = set.sides[0], batch = 1 + kind % 2;
    AttentionDescriptor a{.heads = kind == 1 ? 4 : 2,
                          .keyHeads = kind == 1 ? 2 : kind == 2 ? 1 : 2,
                          .size = kind == 0 ? set.depth : kind == 1 ? set.depth / 2 + 8 : kind == 2 ? set.depth - 3 : 16,
                          .queries = kind == 0 ? side + side / 4 : kind % 3 == 1 ? 7 : side,
                          .keys = kind == 0 ? 2 * side : kind == 1 ? side + 1 : kind == 4 ? 3 * set.across - 1 : 5,
                          .firstQuery = kind == 0 ? side / 2 : 0,
                          .causal = kind == 0 || kind == 1,
                          .mask = kind == 2 ? 1 : kind > 2 ? 2 : 0};
    a.scale = 1 / std::sqrt(static_cast<double>(a.size));
    const int64_t queries = batch * a.queries * a.heads * a.size, keys = batch * a.keys * a.keyHeads * a.size;
    Tensor query = draw(type, queries, random), key = draw(type, keys, random), value = draw(type, keys, random),
           dout = draw(type, queries, random);
    for (int64_t i = 0; kind == 4 && i < queries; ++i) // logarithms of f32 do not tell how many keys share the lowest score
      if (i / (a.heads * a.size) % a.queries == 3) {
        dout.values[static_cast<size_t>(i)] = 0;
        std::fill_n(dout.bytes.begin() + i * static_cast<int64_t>(bytes), bytes, std::byte{0});
      }
    Reference reference{a, batch, query.values, key.values, value.values, dout.values, {}, {}, {}, {}, {}, {}};
    std::vector<uint8_t> flags;
    std::vector<float> added;
    for (int64_t i = 0; a.mask && i < batch * a.heads * a.queries * a.keys; ++i) {
      flags.push_back(random.real(0, 1) < 0.6 && i / a.keys % a.queries != 3), added.push_back(static_cast<float>(random.real(-2, 2)));
      if (kind == 4) // as padding is masked: all that a query sees, or what it meets first
        if (int64_t row = i / a.keys % a.queries; row == 3 || (row == 2 && i % a.keys <= set.across))
          added.back() = std::numeric_limits<float>::lowest();
      reference.mask.push_back(a.mask == 2 ? added.back() : flags.back() ? 0 : -INFINITY);
    }
    if (a.mask)
      a.maskKey = 1, a.maskQuery = a.keys, a.maskHead = a.queries * a.keys, a.maskBatch = a.heads * a.queries * a.keys;
    reference.compute();

    std::vector<std::byte> out(query.bytes.size()), dquery(out), dkey(key.bytes.size()), dvalue(dkey);
    std::vector<float> logs(static_cast<size_t>(batch * a.heads * a.queries));
    void *mask = a.mask == 1 ? static_cast<void *>(flags.data()) : a.mask == 2 ? static_cast<void *>(added.data()) : nullptr;
    auto tiles = [&](AttentionKernels::Which which, int64_t rows, int64_t heads) {
      return batch * heads * ((rows + set.sides[which] - 1) / set.sides[which]);
    };
    using Order = test::GpuEmulator::Order;
    const std::string what = fmt::format("{} {} {} kind {}", set.type, set.depth, set.sides[0], kind);
    EXPECT_EQ(gpu.launch("msc_attention", set.threads(), 3,
                         {&a, query.bytes.data(), key.bytes.data(), value.bytes.data(), mask, out.data(), logs.data()},
                         tiles(AttentionKernels::Forward, a.queries, a.heads), Order::Forward),
              "");
    EXPECT_LT(errorOf(read(type, out), reference.out), most) << what;
    EXPECT_LT(errorOf({logs.begin(), logs.end()}, reference.logs), 1e-6) << what;
    std::vector<void *> forQueries{&a, query.bytes.data(), key.bytes.data(), value.bytes.data(), mask}, forKeys = forQueries;
    std::vector<float> unders(logs.size());
    for (void *more : {static_cast<void *>(out.data()), static_cast<void *>(logs.data()), static_cast<void *>(dout.bytes.data()),
                       static_cast<void *>(dquery.data()), static_cast<void *>(unders.data())})
      forQueries.push_back(more);
    for (void *more : {static_cast<void *>(logs.data()), static_cast<void *>(dout.bytes.data()), static_cast<void *>(unders.data()),
                       static_cast<void *>(dkey.data()), static_cast<void *>(dvalue.data())})
      forKeys.push_back(more);
    EXPECT_EQ(gpu.launch("msc_attention_queries", set.threads(), 2, forQueries,
                         tiles(AttentionKernels::OfQueries, a.queries, a.heads), Order::Backward), "");
    EXPECT_EQ(gpu.launch("msc_attention_keys", set.threads(), 5, forKeys,
                         tiles(AttentionKernels::OfKeys, a.keys, a.keyHeads), Order::Backward), "");
    EXPECT_LT(errorOf(read(type, dquery), reference.dquery), 2 * most) << what;
    EXPECT_LT(errorOf(read(type, dkey), reference.dkey), 2 * most) << what;
    EXPECT_LT(errorOf(read(type, dvalue), reference.dvalue), 2 * most) << what;
    EXPECT_EQ(out.size(), query.values.size() * bytes);
  }
}

// GPUs whose blocks have 99 KiB of shared memory attend on tensor cores, too.
TEST(AttentionKernels, FitIntoSmallBlocks) {
  for (const char *type : {"f16", "bf16"})
    for (int64_t depth : {64, 128})
      EXPECT_TRUE(std::any_of(device::cuda::attentionKernels.begin(), device::cuda::attentionKernels.end(), [&](const AttentionKernels &set) {
        return std::string_view(set.type) == type && set.depth == depth && set.numberBytes == 2 && set.sharedBytes(set.Forward) <= 99 << 10;
      })) << type << " " << depth;
}

INSTANTIATE_TEST_SUITE_P(All, AttentionKernelsOf, testing::Range<size_t>(0, 12), [](const auto &info) {
  const AttentionKernels &set = device::cuda::attentionKernels[info.param];
  return fmt::format("{}_{}_{}", set.type, set.depth, set.sides[0]);
});

} // namespace
