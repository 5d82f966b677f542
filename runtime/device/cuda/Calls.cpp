// Calls of kernels by name: look-ups, and sums and extrema by number; AttentionCalls.cpp and RowAttentionCalls.cpp have attention,
// WindowCalls.cpp has convolutions and pooling, LineCalls.cpp what goes along a dimension.
#include "runtime/device/cuda/Calls.h"

#include "runtime/device/cuda/AttentionCalls.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/LineCalls.h"
#include "runtime/device/cuda/RowAttentionCalls.h"
#include "runtime/device/cuda/WindowCalls.h"
#include "runtime/plan/calls/Lookup.h"

#include <limits>

namespace msc::device::cuda {
namespace {

using Values = std::vector<uint64_t>;

LookupDescriptor describe(const CallSpec &spec, const CallTensor &indices) {
  Lookup lookup = lookupOf(spec);
  return {.count = lookup.count,
          .inner = lookup.inner,
          .begin = lookup.rows.begin,
          .end = lookup.rows.end,
          .size = lookup.size,
          .offset = lookup.offset,
          .wide = indices.type == plan::I64,
          .mayMiss = spec.kernel == "EmbeddingLookup",
          .outer = lookup.outer};
}

/// out[o, n, :] = table[o, indices[n] - offset, :].
Prepared lookUp(Shared &shared, const CallSpec &spec) {
  const CallTensor &indices = spec.operands[1];
  LookupDescriptor shape = describe(spec, indices);
  Result<CUdeviceptr> descriptor = shared.constant(&shape, sizeof(shape));
  if (!descriptor)
    return descriptor.error();
  Result<CUdeviceptr> slot = shared.checkSlot({spec.kernel, addressOf(indices.data), shape.wide != 0, shape.size});
  if (!slot)
    return slot.error();
  const CallTensor &out = spec.results[0];
  return launchOwn(shared, fmt::format("msc_lookup_{}", elementBytes(out.type)),
                   {addressOf(out.data), addressOf(spec.operands[0].data), addressOf(indices.data), *descriptor, *slot},
                   elementCount(out.box));
}

/// What a row has before it takes any: 0, or what every number is at least or at most.
Prepared fillFirst(Shared &shared, const CallSpec &spec) {
  const CallTensor &result = spec.results[0];
  const int64_t count = elementCount(result.box);
  bool isWhole = result.type == plan::I32 || result.type == plan::I64;
  double most = isWhole ? std::numeric_limits<int32_t>::max() : std::numeric_limits<double>::infinity();
  double least = isWhole ? std::numeric_limits<int32_t>::min() : -most;
  bool largest = spec.kernel == "UnsortedSegmentMax", smallest = spec.kernel == "UnsortedSegmentMin";
  if (result.type == plan::I64 && (largest || smallest)) // what f64 does not have
    return launchOwn(shared, "msc_fill_8",
                     {addressOf(result.data), static_cast<uint64_t>(largest ? INT64_MIN : INT64_MAX)}, count);
  return prepareFill(shared, {.target = result.data, .count = count, .type = result.type, .value = largest ? least : smallest ? most : 0});
}

/// results[o, r, :] = the sum, or an extremum, of rows[o, n, :] over all n with indices[n] - offset == r.
Prepared foldRows(Shared &shared, const CallSpec &spec, const char *name) {
  LookupTensors tensors = lookupTensors(spec);
  LookupDescriptor shape = describe(spec, *tensors.indices);
  // A row that many indices number is added up by several blocks; each of them looks at all indices.
  shape.chunk = shape.count >= 16 * (shape.end - shape.begin) ? 256 : 1024;
  const int64_t width = shape.outer * shape.inner, chunks = (width + shape.chunk - 1) / shape.chunk;
  Result<CUdeviceptr> descriptor = shared.constant(&shape, sizeof(shape));
  if (!descriptor)
    return descriptor.error();
  std::vector<Prepared> parts;
  parts.push_back(fillFirst(shared, spec)); // what has no index, as most rows of a table
  if (width * shape.count > 0)
    parts.push_back(launchOwn(
        shared, {kernelsPtx, numberEntry(name, spec.results[0].type), kernelBlock},
        {addressOf(tensors.table->data), addressOf(tensors.rows->data), addressOf(tensors.indices->data), *descriptor}, shape.count * chunks,
        Blocks::OnePerItem));
  return inTurn(shared, std::move(parts));
}

Prepared addUp(Shared &shared, const CallSpec &spec) { return foldRows(shared, spec, "sums"); }
Prepared findLargest(Shared &shared, const CallSpec &spec) { return foldRows(shared, spec, "maxima"); }
Prepared findSmallest(Shared &shared, const CallSpec &spec) { return foldRows(shared, spec, "minima"); }

} // namespace

std::string numberEntry(const char *name, plan::DataType type) {
  static const std::map<plan::DataType, const char *> types{{plan::F32, "f32"}, {plan::F64, "f64"}, {plan::F16, "f16"},
                                                            {plan::BF16, "bf16"}, {plan::I32, "i32"}, {plan::I64, "i64"}};
  return fmt::format("msc_{}_{}", name, types.at(type));
}

Error lacks(const CallSpec &spec) {
  plan::DataType type = spec.results[0].type;
  return {ExitCode::NoResource, fmt::format("the device cuda has no kernel '{}' for {}", spec.kernel, dataTypeName(type)),
          "run on CPUs with --device cpu"};
}

Prepared prepareCall(Shared &shared, const CallSpec &spec) {
  static const std::map<std::string, PrepareCall> kernels = [] {
    std::map<std::string, PrepareCall> table{
        {"Gather", lookUp},
        {"EmbeddingLookup", lookUp},
        {"GatherGrad", addUp},
        {"UnsortedSegmentSum", addUp},
        {"UnsortedSegmentMax", findLargest},
        {"UnsortedSegmentMin", findSmallest},
    };
    addAttentionCalls(table);
    addRowAttentionCalls(table);
    addWindowCalls(table);
    addLineCalls(table);
    return table;
  }();
  auto kernel = kernels.find(spec.kernel);
  if (kernel == kernels.end())
    return Error{ExitCode::NoResource, fmt::format("the device cuda has no kernel '{}'", spec.kernel),
                 "run on CPUs with --device cpu"};
  return kernel->second(shared, spec);
}

} // namespace msc::device::cuda
