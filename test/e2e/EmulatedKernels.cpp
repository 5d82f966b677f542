#include "test/e2e/EmulatedKernels.h"

#include "runtime/device/cuda/Kernels.h"
#include "test/passes/codegen/GpuEmulator.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace msc::e2e {
using test::Access;
using test::KernelCall;

static std::string run(test::GpuEmulator &gpu, const KernelCall &call) {
  std::vector<void *> pointers;
  for (size_t i = 0; i + 1 < call.arguments.size(); ++i)
    pointers.push_back(reinterpret_cast<void *>(call.arguments[i]));
  return gpu.launch(call.entry, call.block, call.grid, pointers, static_cast<int64_t>(call.arguments.back()),
                    test::GpuEmulator::Order::Backward);
}

void addPlanKernels(test::RecordingDriver &driver, PlanLaunches launches, const std::string &ir) {
  auto gpu = std::make_shared<test::GpuEmulator>(ir);
  auto known = std::make_shared<const PlanLaunches>(std::move(launches));
  test::RecordedModule module;
  for (const auto &[entry, kernel] : known->kernels)
    module.entries.push_back(entry);
  module.argumentCount = [known](const std::string &entry) { return known->kernels.at(entry).arguments; };
  module.accesses = [known, &driver](const KernelCall &call) { return known->accesses(call, driver.allocationOf(call.arguments[0])); };
  module.run = [gpu](const KernelCall &call) { return run(*gpu, call); };
  driver.addModule([known](const std::string &text) { return text == known->ptx; }, module);
}

namespace {

struct RuntimeKernel {
  size_t arguments;
  std::vector<Access> (*accesses)(const KernelCall &);
};

template <typename Descriptor> const Descriptor &at(uint64_t address) {
  return *reinterpret_cast<const Descriptor *>(address);
}
Access reads(uint64_t begin, int64_t bytes) {
  return {begin, begin + static_cast<uint64_t>(bytes), false};
}
Access writes(uint64_t begin, int64_t bytes) {
  return {begin, begin + static_cast<uint64_t>(bytes), true};
}

int64_t numberBytes(const KernelCall &call) { return call.entry.ends_with("64") ? 8 : call.entry.ends_with("32") ? 4 : 2; }

std::vector<Access> ofFill(const KernelCall &call) {
  return {writes(call.arguments[0], 8 * static_cast<int64_t>(call.arguments[2]))};
}

std::vector<Access> ofCopy(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  uint64_t bytes = call.entry.back() - '0';
  const auto &shape = at<device::cuda::CopyDescriptor>(a[2]);
  // From the first element to the last one, whichever way strides run.
  auto span = [&](uint64_t start, const int64_t *strides, bool writes) {
    int64_t low = 0, high = 0;
    for (int64_t dim = 0; dim < shape.dims; ++dim)
      (strides[dim] < 0 ? low : high) += (shape.sizes[dim] - 1) * strides[dim];
    return Access{start + static_cast<uint64_t>(low) * bytes, start + static_cast<uint64_t>(high + 1) * bytes, writes};
  };
  return {span(a[0], shape.to, true), span(a[1], shape.from, false), reads(a[2], sizeof(shape))};
}

std::vector<Access> ofRepitch(const KernelCall &call) {
  auto value = [&](size_t i) { return static_cast<int64_t>(call.arguments[i]); };
  int64_t bytes = call.entry.back() - '0', rows = value(2), columns = value(3);
  return {writes(call.arguments[0], value(7) * value(4) * bytes),
          reads(call.arguments[1], ((rows - 1) * value(5) + columns) * bytes)};
}

/// Tiles count rows of what is written behind planes with more channels than there are, and of what is read back with those that count.
std::vector<Access> ofTurn(const KernelCall &call) {
  auto value = [&](size_t i) { return static_cast<int64_t>(call.arguments[i]); };
  const bool isBack = call.entry == "msc_turn_first_2";
  int64_t rows = value(2), columns = value(3), held = value(4), counted = isBack ? rows : held;
  int64_t images = value(8) / (((counted + value(5) - 1) / value(5)) * ((columns + value(6) - 1) / value(6)));
  int64_t plane = isBack ? rows : columns, plain = images * rows * columns * 2, turned = images * plane * held * 2;
  return {writes(call.arguments[0], isBack ? plain : turned), reads(call.arguments[1], isBack ? turned : plain)};
}

/// Of rows that indices number, or of elements that have an index each ("along").
std::vector<Access> ofLookup(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &shape = at<device::cuda::LookupDescriptor>(a[3]);
  auto total = static_cast<int64_t>(a[5]);
  int64_t bytes = call.entry.back() - '0', outer = total / (shape.count * shape.inner);
  int64_t indices = call.entry.starts_with("msc_look_along") ? total : shape.count;
  return {writes(a[0], total * bytes), reads(a[1], outer * (shape.end - shape.begin) * shape.inner * bytes),
          reads(a[2], indices * (shape.wide ? 8 : 4)), reads(a[3], sizeof(shape)), writes(a[4], 8)};
}

std::vector<Access> ofSums(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &shape = at<device::cuda::LookupDescriptor>(a[3]);
  auto total = static_cast<int64_t>(a[4]); // of elements
  bool along = call.entry.starts_with("msc_sums_along");
  int64_t bytes = numberBytes(call), line = (shape.end - shape.begin) * shape.inner;
  int64_t outer = along ? total / line : shape.outer;
  int64_t rows = outer * shape.count * shape.inner, indices = along ? rows : shape.count;
  return {writes(a[0], outer * line * bytes), reads(a[1], rows * bytes), reads(a[2], indices * (shape.wide ? 8 : 4)),
          reads(a[3], sizeof(shape))};
}

std::vector<Access> ofReduction(const KernelCall &call) {
  const auto *shape = reinterpret_cast<const int64_t *>(call.arguments[0]);
  int64_t places = shape[0] + shape[1], bytes = call.entry.ends_with("64") ? 8 : call.entry.ends_with("32") ? 4 : 1;
  std::vector<Access> list{reads(call.arguments[0], (4 + places) * 8)};
  for (int64_t i = 0; i < places; ++i) {
    uint64_t begin = static_cast<uint64_t>(shape[4 + i] + shape[3] * bytes);
    auto length = static_cast<int64_t>(call.arguments[1]) * bytes;
    list.push_back(i < shape[0] ? reads(begin, length) : writes(begin, length));
  }
  return list;
}

/// Of all three kernels: queries, keys, values, then what is like queries, logarithms, or like keys.
std::vector<Access> ofAttention(const device::cuda::AttentionKernels &kernels, const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &shape = at<device::cuda::AttentionDescriptor>(a[0]);
  bool ofKeys = call.entry == "msc_attention_keys", forward = call.entry == "msc_attention";
  int64_t bytes = std::string_view(kernels.type) == "f32" ? 4 : 2;
  int64_t side = kernels.sides[forward ? kernels.Forward : ofKeys ? kernels.OfKeys : kernels.OfQueries];
  int64_t tiles = ((ofKeys ? shape.keys : shape.queries) + side - 1) / side;
  int64_t batch = static_cast<int64_t>(a.back()) / (tiles * (ofKeys ? shape.keyHeads : shape.heads));
  int64_t queries = batch * shape.queries * shape.heads * shape.size * bytes,
          keys = batch * shape.keys * shape.keyHeads * shape.size * bytes;
  int64_t logs = batch * shape.heads * shape.queries * 4;
  std::vector<Access> list{reads(a[0], sizeof(shape)), reads(a[1], queries), reads(a[2], keys), reads(a[3], keys)};
  if (a[4]) {
    int64_t last = (batch - 1) * shape.maskBatch + (shape.heads - 1) * shape.maskHead + (shape.queries - 1) * shape.maskQuery +
                   (shape.keys - 1) * shape.maskKey;
    list.push_back(reads(a[4], (last + 1) * (shape.mask == 1 ? 1 : 4)));
  }
  if (forward)
    list.insert(list.end(), {writes(a[5], queries), writes(a[6], logs)});
  else if (ofKeys)
    list.insert(list.end(), {reads(a[5], logs), reads(a[6], queries), reads(a[7], logs), writes(a[8], keys), writes(a[9], keys)});
  else
    list.insert(list.end(), {reads(a[5], queries), reads(a[6], logs), reads(a[7], queries), writes(a[8], queries), writes(a[9], logs)});
  return list;
}

/// Of the kernels that go row by row: queries, keys, values, the mask, then output, logarithms and its gradient, then the results.
std::vector<Access> ofRowAttention(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &d = at<device::cuda::RowAttentionDescriptor>(a[0]);
  int64_t bytes = numberBytes(call), wide = std::max<int64_t>(bytes, 4);
  int64_t queries = d.batch * d.queries * d.heads * d.size * bytes, keys = d.batch * d.keys * d.keyHeads * d.size * bytes;
  int64_t logs = d.batch * d.heads * d.queries * wide;
  std::vector<Access> list{reads(a[0], sizeof(d)), reads(a[1], queries), reads(a[2], keys), reads(a[3], keys)};
  if (a[4]) {
    int64_t last = (d.batch - 1) * d.maskBatch + (d.heads - 1) * d.maskHead + (d.queries - 1) * d.maskQuery + (d.keys - 1) * d.maskKey;
    list.push_back(reads(a[4], (last + 1) * (d.mask == 1 ? 1 : wide)));
  }
  auto is = [&](const char *name) { return call.entry.starts_with(std::string("msc_attention_") + name); };
  bool backward = is("queries_") || is("keys_") || is("mask_");
  if (!backward)
    list.insert(list.end(), {writes(a[5], queries), writes(a[6], logs)});
  else
    list.insert(list.end(), {reads(a[5], queries), reads(a[6], logs), reads(a[7], queries)});
  if (is("queries_"))
    list.push_back(writes(a[8], queries));
  if (is("keys_"))
    list.insert(list.end(), {writes(a[8], keys), writes(a[9], keys)});
  if (is("mask_"))
    list.push_back(writes(a[8], static_cast<int64_t>(a[9]) * bytes));
  return list;
}

/// The descriptor, the result, both operands: x, w and y in the order that the direction has.
std::vector<Access> ofConvolution(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &d = at<device::cuda::ConvolutionDescriptor>(a[0]);
  int64_t bytes = numberBytes(call), x = d.images * d.inputs * d.heldX[0] * d.heldX[1] * bytes;
  int64_t y = d.images * d.outputs * d.heldY[0] * d.heldY[1] * bytes;
  int64_t w = d.outputs * d.inputsPerGroup * d.kernel[0] * d.kernel[1] * bytes;
  bool input = call.entry.starts_with("msc_convolution_input"), filter = call.entry.starts_with("msc_convolution_filter");
  return {reads(a[0], sizeof(d)), writes(a[1], filter ? w : input ? x : y), reads(a[2], filter || input ? y : x),
          reads(a[3], filter ? x : w)};
}

/// The descriptor, the result, and what it is made of; the places of the largest elements stand between.
std::vector<Access> ofPooling(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &d = at<device::cuda::PoolingDescriptor>(a[0]);
  int64_t bytes = numberBytes(call), large = d.planes * d.largeRows * d.largeColumns * bytes;
  int64_t small = d.planes * d.smallRows * d.smallColumns * bytes, own = d.planes * d.ownRows * d.ownColumns * bytes;
  int64_t places = d.planes * d.rows * d.columns * 4;
  int64_t words = 4 * (d.rows + d.columns) + 2 * (d.ownRows + d.ownColumns);
  std::vector<Access> list{reads(a[0], static_cast<int64_t>(sizeof(d)) + 4 * words)};
  if (call.entry.starts_with("msc_pool_places_"))
    list.insert(list.end(), {writes(a[1], places), reads(a[2], large)});
  else if (call.entry.starts_with("msc_pool_max_input_"))
    list.insert(list.end(), {writes(a[1], own), reads(a[2], places), reads(a[3], small)});
  else if (call.entry.starts_with("msc_pool_average_input_"))
    list.insert(list.end(), {writes(a[1], own), reads(a[2], small)});
  else
    list.insert(list.end(), {writes(a[1], small), reads(a[2], large)});
  return list;
}

/// The descriptor, what is written, what is read.
std::vector<Access> ofScan(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &d = at<device::cuda::ScanDescriptor>(a[0]);
  int64_t bytes = static_cast<int64_t>(a[3]) * d.length * numberBytes(call);
  return {reads(a[0], static_cast<int64_t>(sizeof(d)) + 16 * d.parts), writes(a[1], bytes), reads(a[2], bytes)};
}

std::vector<Access> ofLargest(const KernelCall &call) {
  const std::vector<uint64_t> &a = call.arguments;
  const auto &d = at<device::cuda::LargestDescriptor>(a[0]);
  auto pieces = static_cast<int64_t>(a[5]);
  int64_t elements = pieces / d.ownPieces * d.length;
  std::vector<Access> list{reads(a[0], sizeof(d)), writes(a[1], pieces * d.k * numberBytes(call)), writes(a[2], pieces * d.k * 4),
                           reads(a[3], elements * numberBytes(call))};
  if (a[4])
    list.push_back(reads(a[4], elements * 4));
  return list;
}

const std::map<std::string, RuntimeKernel> &runtimeKernels() {
  static const std::map<std::string, RuntimeKernel> kernels = [] {
    std::map<std::string, RuntimeKernel> made{{"msc_fill_8", {3, ofFill}}};
    for (const char *bytes : {"1", "2", "4", "8"}) {
      made[std::string("msc_copy_") + bytes] = {4, ofCopy};
      made[std::string("msc_lookup_") + bytes] = {6, ofLookup};
      made[std::string("msc_look_along_") + bytes] = {6, ofLookup};
    }
    for (const char *way : {"last", "first"})
      made[fmt::format("msc_turn_{}_2", way)] = {9, ofTurn};
    for (const char *bytes : {"2", "4"})
      made[std::string("msc_repitch_") + bytes] = {8, ofRepitch};
    for (const char *type : {"f32", "f64", "f16", "bf16", "i32", "i64"}) {
      for (const char *kernel : {"sums_", "sums_along_", "maxima_", "minima_"})
        made[fmt::format("msc_{}{}", kernel, type)] = {5, ofSums};
      made[std::string("msc_scan_") + type] = {4, ofScan};
      made[std::string("msc_largest_") + type] = {6, ofLargest};
    }
    for (const char *type : {"f32", "f64", "i32", "i64", "bool"})
      made[std::string("msc_reduce_") + type] = {2, ofReduction};
    for (const char *type : {"f32", "f64", "f16", "bf16"}) {
      for (const char *kernel : {"convolution_", "convolution_input_", "convolution_filter_"})
        made[fmt::format("msc_{}{}", kernel, type)] = {5, ofConvolution};
      for (const char *kernel : {"pool_max_", "pool_average_", "pool_places_", "pool_average_input_"})
        made[fmt::format("msc_{}{}", kernel, type)] = {4, ofPooling};
      made[fmt::format("msc_pool_max_input_{}", type)] = {5, ofPooling};
    }
    return made;
  }();
  return kernels;
}

/// Emulates the IR of a file from the first run of a kernel on, for all drivers.
std::function<std::string(const KernelCall &)> emulated(const std::string &path) {
  return [path](const KernelCall &call) {
    static std::map<std::string, std::unique_ptr<test::GpuEmulator>> known;
    std::unique_ptr<test::GpuEmulator> &gpu = known[path];
    if (!gpu) {
      std::stringstream ir;
      ir << std::ifstream(path).rdbuf();
      gpu = std::make_unique<test::GpuEmulator>(ir.str());
    }
    return run(*gpu, call);
  };
}

} // namespace

void addRuntimeKernels(test::RecordingDriver &driver, const std::string &folder) {
  test::RecordedModule module;
  for (const auto &[entry, kernel] : runtimeKernels())
    module.entries.push_back(entry);
  module.argumentCount = [](const std::string &entry) { return runtimeKernels().at(entry).arguments; };
  module.accesses = [](const KernelCall &call) { return runtimeKernels().at(call.entry).accesses(call); };
  module.run = emulated(folder + "/kernels.ll");
  driver.addModule([](const std::string &text) { return text == device::cuda::kernelsPtx; }, module);
  static const std::map<std::string, size_t> rows = [] {
    std::map<std::string, size_t> made;
    for (const char *type : {"f32", "f64", "f16", "bf16"})
      for (auto [kernel, count] : {std::pair("", 8), std::pair("queries_", 10), std::pair("keys_", 11)})
        made[fmt::format("msc_attention_{}{}", kernel, type)] = static_cast<size_t>(count);
    for (const char *type : {"f32", "f64"})
      made[fmt::format("msc_attention_mask_{}", type)] = 10;
    return made;
  }();
  test::RecordedModule byRows;
  for (const auto &[entry, count] : rows)
    byRows.entries.push_back(entry);
  byRows.argumentCount = [](const std::string &entry) { return rows.at(entry); };
  byRows.accesses = ofRowAttention;
  byRows.run = emulated(folder + "/rowAttention.ll");
  driver.addModule([](const std::string &text) { return text == device::cuda::rowAttentionPtx; }, byRows);
  static const std::map<std::string, size_t> attention{
      {"msc_attention", 8}, {"msc_attention_queries", 11}, {"msc_attention_keys", 11}};
  for (const device::cuda::AttentionKernels &kernels : device::cuda::attentionKernels) {
    test::RecordedModule set;
    for (const auto &[entry, arguments] : attention)
      set.entries.push_back(entry);
    set.argumentCount = [](const std::string &entry) { return attention.at(entry); };
    set.accesses = [&kernels](const KernelCall &call) { return ofAttention(kernels, call); };
    set.run = emulated(fmt::format("{}/attention_{}_{}_{}.ll", folder, kernels.type, kernels.depth, kernels.sides[0]));
    driver.addModule([&kernels](const std::string &text) { return text == kernels.ptx; }, set);
  }
}

} // namespace msc::e2e
