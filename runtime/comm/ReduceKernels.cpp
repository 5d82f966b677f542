// Compiled with MSC_KERNELS naming the table and the matching -march; no library templates in here, since the linker
// would keep one copy of them for all instruction sets.
#include "runtime/comm/ReduceKernels.h"

// The result may be one of the operands, element for element: no dependence between lanes.
#if defined(__clang__)
#define MSC_LANES_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MSC_LANES_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace {

struct Sum {
  static float of(float a, float b) { return a + b; }
  static double of(double a, double b) { return a + b; }
  static int32_t of(int32_t a, int32_t b) { return static_cast<int32_t>(uint32_t(a) + uint32_t(b)); }
  static int64_t of(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); }
  static uint8_t of(uint8_t a, uint8_t b) { return a | b; }
};
struct Prod {
  static float of(float a, float b) { return a * b; }
  static double of(double a, double b) { return a * b; }
  static int32_t of(int32_t a, int32_t b) { return static_cast<int32_t>(uint32_t(a) * uint32_t(b)); }
  static int64_t of(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }
  static uint8_t of(uint8_t a, uint8_t b) { return a & b; }
};
// NaN wins, from either side; equal values keep the left one.
struct Min {
  template <typename T> static T of(T a, T b) { return a != a ? a : ((b < a) | (b != b)) ? b : a; }
};
struct Max {
  template <typename T> static T of(T a, T b) { return a != a ? a : ((b > a) | (b != b)) ? b : a; }
};

template <typename T, typename Op>
void combineAs(void *result, const void *left, const void *right, int64_t count) {
  auto *r = static_cast<T *>(result);
  auto *a = static_cast<const T *>(left);
  auto *b = static_cast<const T *>(right);
  MSC_LANES_INDEPENDENT
  for (int64_t i = 0; i < count; ++i)
    r[i] = Op::of(a[i], b[i]);
}

template <typename T, typename Op>
void combine4As(void *result, const void *va, const void *vb, const void *vc, const void *vd, int64_t count) {
  auto *r = static_cast<T *>(result);
  auto *a = static_cast<const T *>(va);
  auto *b = static_cast<const T *>(vb);
  auto *c = static_cast<const T *>(vc);
  auto *d = static_cast<const T *>(vd);
  MSC_LANES_INDEPENDENT
  for (int64_t i = 0; i < count; ++i)
    r[i] = Op::of(Op::of(Op::of(a[i], b[i]), c[i]), d[i]);
}

/// Calls `run` with an element type and an operation for the numbers of ElementType and ReduceKind.
template <typename T, typename Run> void chooseKind(int kind, Run run) {
  switch (kind) {
  case 0: return run(T{}, Sum{});
  case 1: return run(T{}, Prod{});
  case 2: return run(T{}, Min{});
  default: return run(T{}, Max{});
  }
}
template <typename Run> void choose(int type, int kind, Run run) {
  switch (type) {
  case 0: return chooseKind<float>(kind, run);
  case 1: return chooseKind<double>(kind, run);
  case 2: return chooseKind<int32_t>(kind, run);
  case 3: return chooseKind<int64_t>(kind, run);
  default: return chooseKind<uint8_t>(kind, run);
  }
}

void combine(void *result, const void *left, const void *right, int64_t count, int type, int kind) {
  choose(type, kind, [&]<typename T, typename Op>(T, Op) { combineAs<T, Op>(result, left, right, count); });
}
void combine4(void *result, const void *a, const void *b, const void *c, const void *d, int64_t count, int type,
              int kind) {
  choose(type, kind, [&]<typename T, typename Op>(T, Op) { combine4As<T, Op>(result, a, b, c, d, count); });
}

} // namespace

const msc::comm::ReduceKernels msc::comm::MSC_KERNELS = {combine, combine4};
