// Calls through the CUDA backend on the recording driver, with emulated kernels, beside the same calls on a CPU: every type, ties, NaN and
// indices that number nothing. Nothing here has run on a GPU.
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/plan/calls/Pooling.h"
#include "test/e2e/CudaTraining.h"

#include <cmath>
#include <cstring>

using namespace msc;
using namespace msc::e2e;

namespace {

using Ints = std::vector<int64_t>;
constexpr plan::DataType floats[] = {plan::F32, plan::F64, plan::F16, plan::BF16};
constexpr plan::DataType numbers[] = {plan::F32, plan::F64, plan::F16, plan::BF16, plan::I32, plan::I64};

size_t bytesOf(const CallTensor &tensor) {
  return static_cast<size_t>(elementCount(tensor.box)) * elementBytes(tensor.type);
}
CallTensor tensorOf(plan::DataType type, const Ints &shape) {
  CallTensor tensor{type, shape, {}, nullptr};
  for (int64_t size : shape)
    tensor.box.push_back({0, size});
  return tensor;
}

/// A call with its operands and results in one piece of memory, behind each other; operands have values.
struct PlacedCall {
  CallSpec spec;
  std::vector<std::byte> memory;
  size_t results = 0; ///< where they begin

  explicit PlacedCall(CallSpec given) : spec(std::move(given)) {
    auto place = [&](CallTensor &tensor) {
      tensor.data = reinterpret_cast<std::byte *>(memory.size());
      memory.resize((memory.size() + bytesOf(tensor) + 15) / 16 * 16);
    };
    for (CallTensor &tensor : spec.operands)
      place(tensor);
    results = memory.size();
    for (CallTensor &tensor : spec.results)
      place(tensor);
    std::fill(memory.begin() + static_cast<long>(results), memory.end(), std::byte{0x5a});
  }
  /// Element i of an operand becomes value(i).
  void fill(size_t operand, const std::function<double(int64_t)> &value) {
    const CallTensor &tensor = spec.operands[operand];
    auto set = [&]<typename Element>(Element) {
      auto *data = reinterpret_cast<Element *>(memory.data() + reinterpret_cast<size_t>(tensor.data));
      for (int64_t i = 0; i < elementCount(tensor.box); ++i)
        if constexpr (std::is_integral_v<Element>)
          data[i] = static_cast<Element>(value(i));
        else
          data[i] = static_cast<Element>(static_cast<device::calls::ComputeType<Element>>(value(i)));
    };
    if (tensor.type == plan::BOOL)
      set(uint8_t());
    else
      device::calls::withNumber(tensor.type, set);
  }
  CallSpec at(std::byte *base) const {
    CallSpec placed = spec;
    for (auto *tensors : {&placed.operands, &placed.results})
      for (CallTensor &tensor : *tensors)
        tensor.data = base + reinterpret_cast<size_t>(tensor.data);
    return placed;
  }
  std::vector<double> resultIn(const std::vector<std::byte> &ran, size_t result) const {
    std::vector<double> values;
    const CallTensor &tensor = spec.results[result];
    device::calls::withNumber(tensor.type, [&]<typename Element>(Element) {
      auto *data = reinterpret_cast<const Element *>(ran.data() + reinterpret_cast<size_t>(tensor.data));
      for (int64_t i = 0; i < elementCount(tensor.box); ++i)
        if constexpr (std::is_integral_v<Element>)
          values.push_back(static_cast<double>(data[i]));
        else
          values.push_back(static_cast<double>(static_cast<device::calls::ComputeType<Element>>(data[i])));
    });
    return values;
  }
};

class CudaCalls : public CudaTraining {
protected:
  static std::vector<std::byte> onCpu(const PlacedCall &call) {
    std::vector<std::byte> memory = call.memory;
    auto cpu = device::createCpuDevice(*device::KernelLibrary::load(plan::Plan()), {1, {}});
    auto operation = cpu->prepareCall(call.at(memory.data()));
    EXPECT_TRUE(operation.isOk()) << (operation ? "" : operation.error().message);
    if (operation)
      EXPECT_TRUE(cpu->finishPreparation().isOk() && (*operation)->run().isOk());
    return memory;
  }
  /// Runs it once alone and twice as part of a graph.
  static std::vector<std::byte> onGpu(const PlacedCall &call) {
    test::RecordingDriver driver;
    return runOperation(driver, call.memory, [&](device::Device &device, std::byte *arena) { return device.prepareCall(call.at(arena)); }, 3);
  }
  /// Equal bits, but for those of NaN.
  static void expectBitsOfCpus(const PlacedCall &call) {
    auto got = onGpu(call), expected = onCpu(call);
    for (size_t result = 0; result < call.spec.results.size(); ++result) {
      const CallTensor &tensor = call.spec.results[result];
      auto a = call.resultIn(got, result), b = call.resultIn(expected, result);
      for (size_t i = 0; i < a.size(); ++i) {
        size_t at = reinterpret_cast<size_t>(tensor.data) + i * elementBytes(tensor.type);
        bool isSame = std::memcmp(&got[at], &expected[at], elementBytes(tensor.type)) == 0 || (std::isnan(a[i]) && std::isnan(b[i]));
        ASSERT_TRUE(isSame) << "element " << i << " of result " << result << ": " << a[i] << ", on CPUs " << b[i];
      }
    }
  }
  static void expectNearTo(const std::vector<double> &got, const std::vector<double> &expected, double most) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != expected[i]) {
        ASSERT_NEAR(got[i], expected[i], most * (1 + std::fabs(expected[i]))) << "element " << i;
      }
  }
};

/// Small numbers with many ties; NaN in some places.
std::function<double(int64_t)> tiedNumbers(bool withNan) {
  return [=](int64_t i) { return withNan && i % 29 == 11 ? NAN : static_cast<double>(i * 7919 % 13 - 6) / 4; };
}

// Whole tables and parts of them, rows without indices, indices that number nothing, or rows of others.
TEST_F(CudaCalls, RowsByNumber) {
  for (const char *kernel : {"UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin"})
    for (plan::DataType type : numbers)
      for (bool isPart : {false, true}) {
        SCOPED_TRACE(fmt::format("{} of {}, part: {}", kernel, dataTypeName(type), isPart));
        CallTensor result = tensorOf(type, {9, 5});
        if (isPart)
          result.box[0] = {2, 6};
        PlacedCall call({kernel, {tensorOf(type, {40, 5}), tensorOf(isPart ? plan::I64 : plan::I32, {40})}, {result}, {}, 1});
        bool isWhole = type == plan::I32 || type == plan::I64;
        call.fill(0, [=](int64_t i) { return isWhole ? static_cast<double>(i * 7919 % 41 - 20) * 1e8 : tiedNumbers(true)(i); });
        call.fill(1, [](int64_t i) { return static_cast<double>(i * i * 7 % 12 - 2); });
        expectBitsOfCpus(call);
      }
}

TEST_F(CudaCalls, SumsOfGathers) {
  for (plan::DataType type : numbers) {
    SCOPED_TRACE(dataTypeName(type));
    PlacedCall rows({"GatherGrad", {tensorOf(plan::I32, {30}), tensorOf(type, {2, 30, 3})}, {tensorOf(type, {2, 7, 3})}, {}, 1});
    rows.spec.attributes.set("axis", {1});
    PlacedCall along({"GatherDGrad", {tensorOf(plan::I64, {2, 30, 3}), tensorOf(type, {2, 30, 3})}, {tensorOf(type, {2, 7, 3})}, {}, 1});
    along.spec.attributes.set("dim", {-2});
    for (PlacedCall *call : {&rows, &along}) {
      call->fill(0, [&](int64_t i) { return static_cast<double>(i * i % 9 % 7 - (call == &along && i % 3 == 0 ? 7 : 0)); });
      call->fill(1, [&](int64_t i) { return type == plan::I32 ? static_cast<double>(i) : static_cast<double>(i * 7919 % 101) / 7; });
      expectBitsOfCpus(*call);
    }
  }
}

/// A pool over images; `rows`: those of the result, or of the gradient, that this rank has. Empty: all.
struct PoolCase {
  Ints x, kernel, strides;
  const char *mode = "valid";
  Ints pad = {};
  Range rows = {};
  bool countsPadding = false;
};

const std::vector<PoolCase> pools{
    {{2, 3, 9, 11}, {3}, {2}, "same"},
    {{1, 2, 13, 300}, {3, 2}, {2, 1}, "pad", {1, 0, 0, 1}, {}, true},
    {{2, 2, 12, 7}, {2}, {2}, "valid", {}, {1, 4}},
    {{1, 2, 12, 40}, {3}, {2}, "same", {}, {2, 5}},
    {{1, 3, 5, 37}, {4}, {1}, "same"},
    {{1, 1, 5, 6}, {1}, {3}, "valid"},                     // elements under no window
    {{1, 1, 4, 4}, {1}, {1}, "pad", {2, 2, 2, 2}, {}, true}, // windows without elements
};

// To the bits of CPUs: ties go to the first element, NaN is the largest, sums are in the order of windows.
TEST_F(CudaCalls, Pools) {
  for (size_t i = 0; i < pools.size(); ++i)
    for (plan::DataType type : floats)
      for (const char *name : {"MaxPool", "AvgPool"}) {
        SCOPED_TRACE(fmt::format("{} {} of {}", name, i, dataTypeName(type)));
        const PoolCase &c = pools[i];
        CallAttributes attributes;
        attributes.set("kernel_size", c.kernel);
        attributes.set("strides", c.strides);
        attributes.setText("pad_mode", c.mode);
        attributes.set("count_include_pad", {c.countsPadding});
        if (!c.pad.empty())
          attributes.set("pad", c.pad);
        std::string why;
        CallSpec shape{name, {}, {}, attributes, 1};
        auto sides = *poolingSides(shape, c.x[2], c.x[3], 0, 0, why);
        CallTensor x = tensorOf(type, c.x), y = tensorOf(type, {c.x[0], c.x[1], sides[0].small(), sides[1].small()});
        CallTensor part = y;
        if (c.rows.size() > 0)
          part.box[2] = c.rows;
        PlacedCall forward({name, {x}, {part}, attributes, 1});
        forward.fill(0, tiedNumbers(true));
        expectBitsOfCpus(forward);
        CallTensor dx = x;
        if (c.rows.size() > 0)
          dx.box[2] = c.rows;
        bool isMax = std::string(name) == "MaxPool";
        PlacedCall back({std::string(name) + "Grad", isMax ? std::vector{x, y} : std::vector{y}, {dx}, attributes, 1});
        back.fill(0, tiedNumbers(isMax));
        if (isMax)
          back.fill(1, [](int64_t at) { return static_cast<double>(at * 31 % 101) / 7; });
        expectBitsOfCpus(back);
      }
}

/// What an attention takes: the type, its mask (null: none), and how often the mask is repeated.
struct AttentionCase {
  Ints query, key, mask;
  int64_t heads = 1;
  bool causal = false, hides = false; ///< hides: the mask is of bools
};

const std::vector<AttentionCase> attentions{
    {{2, 5, 12}, {2, 7, 6}, {}, 4, true},
    {{1, 2, 8}, {1, 260, 8}, {1, 1, 2, 260}, 2},
    {{2, 5, 6}, {2, 4, 6}, {5, 4}, 2},
    {{2, 5, 6}, {2, 4, 6}, {1, 1, 1, 4}, 2},
    {{1, 3, 6}, {1, 4, 6}, {1, 2, 3, 4}, 2, false, true},
    {{1, 3, 270}, {1, 4, 270}, {3, 4}, 1},
};

class CudaAttention : public CudaCalls {
protected:
  /// Forward, back, and to the mask, in this type and on a CPU in f64.
  void compareAttention(const AttentionCase &c, plan::DataType type) {
    auto build = [&](const char *kernel, plan::DataType of, std::vector<size_t> results) {
      plan::DataType wide = of == plan::F64 ? plan::F64 : plan::F32;
      CallTensor query = tensorOf(of, c.query), key = tensorOf(of, c.key);
      CallTensor logs = tensorOf(wide, {c.query[0], c.heads, c.query[1]});
      CallSpec spec{kernel, {query, key, key}, {}, {}, 1};
      bool forward = results.empty();
      if (!forward)
        spec.operands.insert(spec.operands.end(), {query, logs, query});
      if (!c.mask.empty())
        spec.operands.push_back(tensorOf(c.hides ? plan::BOOL : wide, c.mask));
      if (forward)
        spec.results = {query, logs};
      else if (results[0] == 0)
        spec.results = {query, key, key};
      else {
        Ints shape{c.mask.size() == 4 ? c.mask[0] : 1, c.heads, c.mask[c.mask.size() - 2], c.key[1]};
        spec.results = {tensorOf(of, shape)};
      }
      spec.attributes.set("heads", {c.heads});
      spec.attributes.set("causal", {c.causal});
      return PlacedCall(spec);
    };
    auto value = [](int64_t seed) { // that f16 and bf16 have
      return [=](int64_t i) { return static_cast<double>((i * 7919 + seed * 31) % 33 - 16) / 16; };
    };
    auto fillAll = [&](PlacedCall &call, size_t own) {
      for (size_t i = 0; i < std::min<size_t>(own, 3); ++i)
        call.fill(i, value(static_cast<int64_t>(i)));
      if (own == 6)
        call.fill(5, value(5));
      if (call.spec.operands.size() > own)
        call.fill(own, c.hides ? std::function<double(int64_t)>([](int64_t i) { return i % 3 != 0 && i / 4 % 3 != 1; }) : value(9));
    };
    const double most = type == plan::F64 ? 1e-13 : type == plan::F32 ? 1e-6 : type == plan::F16 ? 2e-3 : 2e-2;
    PlacedCall exact = build("ScaledDotProductAttention", plan::F64, {}), own = build("ScaledDotProductAttention", type, {});
    fillAll(exact, 3), fillAll(own, 3);
    auto expected = onCpu(exact), got = onGpu(own);
    for (size_t result : {0, 1})
      expectNearTo(own.resultIn(got, result), exact.resultIn(expected, result), most);
    for (size_t first : {0, 1}) {
      if (first == 1 && (c.mask.empty() || c.hides || elementBytes(type) == 2))
        continue;
      const char *kernel = first == 0 ? "ScaledDotProductAttentionGrad" : "ScaledDotProductAttentionMaskGrad";
      PlacedCall exactBack = build(kernel, plan::F64, {first}), back = build(kernel, type, {first});
      fillAll(exactBack, 6), fillAll(back, 6);
      auto out = exact.resultIn(expected, 0), logs = exact.resultIn(expected, 1);
      for (PlacedCall *call : {&exactBack, &back}) {
        call->fill(3, [&](int64_t i) { return out[static_cast<size_t>(i)]; });
        call->fill(4, [&](int64_t i) { return logs[static_cast<size_t>(i)]; });
      }
      auto expectedBack = onCpu(exactBack), gotBack = onGpu(back);
      for (size_t result = 0; result < back.spec.results.size(); ++result)
        expectNearTo(back.resultIn(gotBack, result), exactBack.resultIn(expectedBack, result), 8 * most);
    }
  }
};

TEST_F(CudaAttention, NearToThatOfDoublePrecision) {
  for (size_t i = 0; i < attentions.size(); ++i)
    for (plan::DataType type : floats) {
      bool isTiled = type != plan::F64 && i != 5; // f16 and bf16 are tested with the tiles
      if (type != plan::F64 && (i == 1 || (isTiled && elementBytes(type) == 2)))
        continue;
      SCOPED_TRACE(fmt::format("case {} in {}", i, dataTypeName(type)));
      compareAttention(attentions[i], type);
    }
}

} // namespace
