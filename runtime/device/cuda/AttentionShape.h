// What all kernels of attention know of a call.
#pragma once

#include "runtime/device/cuda/Operations.h"
#include "runtime/plan/calls/Attention.h"

namespace msc::device::cuda {

/// Operands of a call in front of its mask.
inline size_t operandsBeforeMask(const CallSpec &spec) { return spec.kernel == "ScaledDotProductAttention" ? 3 : 6; }

/// The shape of a checked call, which it writes into a descriptor as well, and where its mask lies; null: it has none.
template <typename Descriptor> Attention describeAttention(const CallSpec &spec, Descriptor &made, CUdeviceptr &mask) {
  std::string why;
  const CallTensor &query = spec.operands[0], &key = spec.operands[1];
  const Attention a = *attentionOf(spec.attributes, query, key, why);
  made.heads = a.heads, made.keyHeads = a.keyHeads, made.size = a.size, made.queries = a.queries, made.keys = a.keys;
  made.firstQuery = a.firstQuery, made.causal = a.causal, made.scale = a.scale;
  mask = 0;
  if (size_t own = operandsBeforeMask(spec); spec.operands.size() > own) {
    const CallTensor &given = spec.operands[own];
    AttentionMask steps = *attentionMaskOf(a, query, key, given);
    made.mask = given.type == plan::BOOL ? 1 : 2;
    made.maskBatch = steps.batch, made.maskHead = steps.head, made.maskQuery = steps.query, made.maskKey = steps.key;
    mask = addressOf(given.data);
  }
  return a;
}

} // namespace msc::device::cuda
