#include "runtime/comm/Reduce.h"
#include "runtime/comm/ReduceKernels.h"
#include "runtime/comm/Region.h"

#include <algorithm>
#include <cstring>

namespace msc::comm {

/// Bytes of one source that are in work at a time: a few of them fit the first-level cache.
constexpr int64_t kBlockBytes = 4096;

static const ReduceKernels &kernels() {
#if defined(__x86_64__)
  static const ReduceKernels &chosen = __builtin_cpu_supports("avx2") ? reduceKernelsV3 : reduceKernelsBase;
  return chosen;
#else
  return reduceKernelsBase;
#endif
}

/// result = sources[0] op sources[1] op ... over `count` elements; `at(s)` gives the dense elements of source s.
template <typename At>
static void reduceBlock(void *result, int sources, int64_t count, ElementType type, ReduceKind kind, const At &at) {
  const ReduceKernels &k = kernels();
  int t = static_cast<int>(type), op = static_cast<int>(kind);
  if (sources == 1) {
    memcpy(result, at(0), count * elementSize(type));
    return;
  }
  // Four terms per pass while four are left: fewer trips through the accumulator.
  int done = 0;
  if (sources >= 4) {
    k.combine4(result, at(0), at(1), at(2), at(3), count, t, op);
    done = 4;
  } else {
    k.combine(result, at(0), at(1), count, t, op);
    done = 2;
  }
  for (; done + 3 <= sources; done += 3)
    k.combine4(result, result, at(done), at(done + 1), at(done + 2), count, t, op);
  for (; done < sources; ++done)
    k.combine(result, result, at(done), count, t, op);
}

void reduceOrdered(std::span<const void *const> sources, std::span<void *const> targets, int64_t begin, int64_t end,
                   ElementType type, ReduceKind kind, bool stream) {
  alignas(64) char sum[kBlockBytes];
  int64_t size = static_cast<int64_t>(elementSize(type)), block = kBlockBytes / size;
  for (int64_t i = begin; i < end; i += block) {
    int64_t count = std::min(block, end - i);
    reduceBlock(sum, static_cast<int>(sources.size()), count, type, kind,
                [&](int s) { return static_cast<const char *>(sources[s]) + i * size; });
    for (void *target : targets)
      copyBytes(static_cast<char *>(target) + i * size, sum, count * size, stream);
  }
}

void reduceRegions(std::span<const void *const> sources, const Region &region, int64_t begin, int64_t end,
                   void *target, ElementType type, ReduceKind kind, bool stream) {
  alignas(64) char sum[kBlockBytes];
  alignas(64) char scratch[4][kBlockBytes];
  int64_t size = static_cast<int64_t>(elementSize(type)), block = kBlockBytes / size;
  for (int64_t i = begin; i < end; i += block) {
    int64_t count = std::min(block, end - i);
    // At most four sources are looked at in one pass, so four scratch blocks do; the order of passes is fixed.
    reduceBlock(sum, static_cast<int>(sources.size()), count, type, kind,
                [&](int s) { return viewRegion(sources[s], region, i, i + count, size, scratch[s % 4]); });
    copyBytes(static_cast<char *>(target) + (i - begin) * size, sum, count * size, stream);
  }
}

} // namespace msc::comm
