// The inner loops of the ordered reductions, compiled once per instruction set (ReduceKernels.cpp). Additions and
// comparisons only, no contraction: every set gives the same bits.
#pragma once

#include <cstdint>

namespace msc::comm {

/// sum[i] = sum[i] op a[i], or (first) sum[i] = a[i] op b[i]; counts in elements. `type` and `kind` are the values of
/// ElementType and ReduceKind.
struct ReduceKernels {
  void (*combine)(void *result, const void *left, const void *right, int64_t count, int type, int kind);
  void (*combine4)(void *result, const void *a, const void *b, const void *c, const void *d, int64_t count, int type,
                   int kind);
};

extern const ReduceKernels reduceKernelsBase;
#if defined(__x86_64__)
extern const ReduceKernels reduceKernelsV3;
#endif

} // namespace msc::comm
