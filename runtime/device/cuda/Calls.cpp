// Calls of kernels by name: look-ups, sums by number, attention; WindowCalls.cpp has convolutions and pooling,
// LineCalls.cpp what goes along a dimension.
#include "runtime/device/cuda/Calls.h"

#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/LineCalls.h"
#include "runtime/device/cuda/WindowCalls.h"
#include "runtime/plan/calls/Attention.h"
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
          .mayMiss = spec.kernel == "EmbeddingLookup"};
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
  Result<CUdeviceptr> descriptor = shared.constant(&shape, sizeof(shape));
  if (!descriptor)
    return descriptor.error();
  return launchOwn(
      shared, fmt::format("msc_sums_{}", type),
      {addressOf(tensors.table->data), addressOf(tensors.rows->data), addressOf(tensors.indices->data), *descriptor},
      elementCount(tensors.table->box));
}

/// What the kernels of an attention know of a call; `own` operands stand in front of the mask.
struct AttentionCall {
  Attention shape;
  CUdeviceptr descriptor = 0;
  CUdeviceptr mask = 0; ///< null: none

  static Result<AttentionCall> of(Shared &shared, const CallSpec &spec, size_t own) {
    AttentionCall call;
    std::string why;
    call.shape = *attentionOf(spec.attributes, spec.operands[0], spec.operands[1], why);
    const Attention &a = call.shape;
    if (a.size > kernelBlock || spec.results[0].type != plan::F32)
      return lacks(spec);
    AttentionDescriptor made{.heads = a.heads,
                             .keyHeads = a.keyHeads,
                             .size = a.size,
                             .queries = a.queries,
                             .keys = a.keys,
                             .firstQuery = a.firstQuery,
                             .causal = a.causal,
                             .scale = a.scale};
    if (spec.operands.size() > own) {
      const CallTensor &mask = spec.operands[own];
      AttentionMask steps = *attentionMaskOf(a, spec.operands[0], spec.operands[1], mask);
      made.mask = mask.type == plan::BOOL ? 1 : 2;
      made.maskBatch = steps.batch, made.maskHead = steps.head, made.maskQuery = steps.query, made.maskKey = steps.key;
      call.mask = addressOf(mask.data);
    }
    Result<CUdeviceptr> descriptor = shared.constant(&made, sizeof(made));
    if (!descriptor)
      return descriptor.error();
    call.descriptor = *descriptor;
    return call;
  }
};

Values addressesOf(const CallSpec &spec, const AttentionCall &call) {
  return {call.descriptor, addressOf(spec.operands[0].data), addressOf(spec.operands[1].data), addressOf(spec.operands[2].data),
          call.mask};
}

Prepared attend(Shared &shared, const CallSpec &spec) {
  Result<AttentionCall> call = AttentionCall::of(shared, spec, 3);
  if (!call)
    return call.error();
  Values values = addressesOf(spec, *call);
  values.insert(values.end(), {addressOf(spec.results[0].data), addressOf(spec.results[1].data)});
  const Attention &a = call->shape;
  return launchOwn(shared, "msc_attention", std::move(values), a.batch * a.heads * a.queries, Blocks::OnePerItem);
}

Prepared attendBack(Shared &shared, const CallSpec &spec) {
  Result<AttentionCall> call = AttentionCall::of(shared, spec, 6);
  if (!call)
    return call.error();
  Values values = addressesOf(spec, *call);
  for (size_t i = 3; i < 6; ++i) // output, logarithms, its gradient
    values.push_back(addressOf(spec.operands[i].data));
  Values forKeys = values;
  values.push_back(addressOf(spec.results[0].data));
  forKeys.insert(forKeys.end(), {addressOf(spec.results[1].data), addressOf(spec.results[2].data)});
  const Attention &a = call->shape;
  std::vector<std::unique_ptr<Operation>> parts;
  int64_t queries = a.batch * a.heads * a.queries, keys = a.batch * a.keyHeads * a.keys;
  for (auto *part : {&values, &forKeys}) {
    bool ofKeys = part == &forKeys;
    if ((ofKeys ? keys : queries) == 0)
      continue;
    Prepared made = launchOwn(shared, ofKeys ? "msc_attention_keys" : "msc_attention_queries", std::move(*part),
                              ofKeys ? keys : queries, Blocks::OnePerItem);
    if (!made)
      return made;
    parts.push_back(std::move(*made));
  }
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
        {"ScaledDotProductAttention", attend},
        {"ScaledDotProductAttentionGrad", attendBack},
    };
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
