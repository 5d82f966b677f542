// Calls of kernels by name: look-ups and sums by number; AttentionCalls.cpp has attention, WindowCalls.cpp has convolutions and pooling,
// LineCalls.cpp what goes along a dimension.
#include "runtime/device/cuda/Calls.h"

#include "runtime/device/cuda/AttentionCalls.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/LineCalls.h"
#include "runtime/device/cuda/WindowCalls.h"
#include "runtime/plan/calls/Lookup.h"

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

/// sums[o, r, :] = the sum of rows[o, n, :] over all n with indices[n] - offset == r.
Prepared addUp(Shared &shared, const CallSpec &spec) {
  const char *type = nullptr;
  switch (spec.results[0].type) {
  case plan::F32:
    type = "f32";
    break;
  case plan::F64:
    type = "f64";
    break;
  case plan::F16:
    type = "f16";
    break;
  case plan::BF16:
    type = "bf16";
    break;
  case plan::I32:
    type = "i32";
    break;
  case plan::I64:
    type = "i64";
    break;
  default:
    return lacks(spec);
  }
  LookupTensors tensors = lookupTensors(spec);
  LookupDescriptor shape = describe(spec, *tensors.indices);
  // A row that many indices number is added up by several blocks; each of them looks at all indices.
  shape.chunk = shape.count >= 16 * (shape.end - shape.begin) ? 256 : 1024;
  const int64_t width = shape.outer * shape.inner, chunks = (width + shape.chunk - 1) / shape.chunk;
  Result<CUdeviceptr> descriptor = shared.constant(&shape, sizeof(shape));
  if (!descriptor)
    return descriptor.error();
  const CallTensor &sums = *tensors.table;
  std::vector<std::unique_ptr<Operation>> parts;
  auto add = [&](Prepared part) -> Status {
    if (!part)
      return part.error();
    parts.push_back(std::move(*part));
    return {};
  };
  // Zero first: most rows of a table have no index.
  Status status = add(prepareFill(shared, {.target = sums.data, .count = elementCount(sums.box), .type = sums.type}));
  if (status && width * shape.count > 0)
    status = add(launchOwn(
        shared, {kernelsPtx, fmt::format("msc_sums_{}", type), kernelBlock},
        {addressOf(sums.data), addressOf(tensors.rows->data), addressOf(tensors.indices->data), *descriptor}, shape.count * chunks,
        Blocks::OnePerItem));
  if (!status)
    return status.error();
  return std::unique_ptr<Operation>(new Several(shared, std::move(parts)));
}

} // namespace

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
    };
    addAttentionCalls(table);
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
