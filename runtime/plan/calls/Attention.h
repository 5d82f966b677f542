// What an attention is on one rank, as the checker and the kernels see it.
#pragma once

#include "runtime/plan/calls/Call.h"

#include <optional>

namespace msc {

/// Sizes are this rank's. Heads of `size` elements lie side by side.
struct Attention {
  int64_t batch = 0, heads = 0, keyHeads = 0, size = 0;
  int64_t queries = 0, keys = 0;
  int64_t firstQuery = 0; ///< number of the first query in its sequence
  bool causal = false;
  double scale = 1;
};

/// A mask on one rank, seen as (B, heads, S, T): elements from one index to the next, 0 along what it repeats.
struct AttentionMask {
  int64_t batch = 0, head = 0, query = 0, key = 0;
};

/// Empty if the mask does not go with the tensors of an attention.
std::optional<AttentionMask> attentionMaskOf(const Attention &attention, const CallTensor &query, const CallTensor &key,
                                             const CallTensor &mask);

/// From queries (B, S, heads * D), keys (B, T, g * D) and the attributes heads, causal, scale. On failure empty, and `why`
/// says what does not fit.
std::optional<Attention> attentionOf(const CallAttributes &attributes, const CallTensor &query, const CallTensor &key,
                                     std::string &why);

} // namespace msc
