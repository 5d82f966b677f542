// Attention row by row as launches of our own kernels.
#include "runtime/device/cuda/RowAttentionCalls.h"

#include "runtime/device/cuda/AttentionShape.h"
#include "runtime/device/cuda/Kernels.h"

namespace msc::device::cuda {
namespace {

using Values = std::vector<uint64_t>;

/// A call, and what all its kernels take first: the descriptor, and the operands in their order, but for the mask, which stands fourth.
struct RowCall {
  Attention shape;
  RowAttentionDescriptor made;
  Values values;
  plan::DataType type = plan::F32;

  static Result<RowCall> of(Shared &shared, const CallSpec &spec) {
    RowCall call;
    const size_t own = operandsBeforeMask(spec);
    CUdeviceptr mask = 0;
    call.type = spec.operands[0].type;
    call.shape = describeAttention(spec, call.made, mask);
    call.made.batch = call.shape.batch;
    if (spec.kernel == "ScaledDotProductAttentionMaskGrad") {
      call.made.sumsBatch = spec.results[0].shape[0] == 1;
      call.made.sumsQueries = spec.results[0].shape[2] == 1;
    }
    Result<CUdeviceptr> descriptor = shared.constant(&call.made, sizeof(call.made));
    if (!descriptor)
      return descriptor.error();
    call.values.push_back(*descriptor);
    for (size_t i = 0; i < own; ++i) {
      if (i == 3)
        call.values.push_back(mask);
      call.values.push_back(addressOf(spec.operands[i].data));
    }
    if (own == 3)
      call.values.push_back(mask);
    return call;
  }

  Prepared launch(Shared &shared, const char *name, std::initializer_list<const CallTensor *> results, int64_t count, Blocks blocks) const {
    Values all = values;
    for (const CallTensor *result : results)
      all.push_back(addressOf(result->data));
    return launchOwn(shared, {rowAttentionPtx, numberEntry(name, type), kernelBlock}, std::move(all), count, blocks);
  }
};

/// The checker takes no masks of a narrow type.
Prepared towardsMask(Shared &shared, const CallSpec &spec) {
  Result<RowCall> call = RowCall::of(shared, spec);
  if (!call)
    return call.error();
  return call->launch(shared, "attention_mask", {&spec.results[0]}, elementCount(spec.results[0].box), Blocks::Fill);
}

} // namespace

bool attendsByRows(const CallSpec &spec) {
  const CallTensor &query = spec.operands[0];
  return query.type == plan::F64 || query.shape[2] / spec.attributes.integer("heads", 1) > 256;
}

Prepared attendByRows(Shared &shared, const CallSpec &spec) {
  Result<RowCall> call = RowCall::of(shared, spec);
  if (!call)
    return call.error();
  const Attention &a = call->shape;
  return call->launch(shared, "attention", {&spec.results[0], &spec.results[1]}, a.batch * a.heads * a.queries, Blocks::OnePerItem);
}

Prepared attendBackByRows(Shared &shared, const CallSpec &spec) {
  Result<RowCall> call = RowCall::of(shared, spec);
  if (!call)
    return call.error();
  const Attention &a = call->shape;
  std::vector<Prepared> parts;
  parts.push_back(call->launch(shared, "attention_queries", {&spec.results[0]}, a.batch * a.heads * a.queries, Blocks::OnePerItem));
  parts.push_back(call->launch(shared, "attention_keys", {&spec.results[1], &spec.results[2]}, a.batch * a.keyHeads * a.keys,
                               Blocks::OnePerItem));
  return inTurn(shared, std::move(parts));
}

void addRowAttentionCalls(std::map<std::string, PrepareCall> &table) {
  table["ScaledDotProductAttentionMaskGrad"] = towardsMask;
}

} // namespace msc::device::cuda
