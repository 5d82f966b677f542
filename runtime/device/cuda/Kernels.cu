// Kernels of the runtime that no plan holds: fills of 8 bytes, strided copies, look-ups, reductions, windows, sums and choices
// along one dimension. Attention.cu and RowAttention.cu have those of attention.
#include "KernelBasics.inc"
#include "Numbers.inc"

KERNEL msc_fill_8(uint64 *target, uint64 bits, int64 count) {
  for (int64 i = firstOf(); i < count; i += strideOf())
    target[i] = bits;
}

/// As CopyDescriptor in Kernels.h.
struct Descriptor {
  int64 dims, sizes[8], from[8], to[8];
};

template <typename Element>
DEVICE void copyStrided(Element *target, const Element *source, const Descriptor *shape, int64 count) {
  for (int64 i = firstOf(); i < count; i += strideOf()) {
    int64 rest = i, from = 0, to = 0;
    for (int64 dim = shape->dims; dim-- > 0;) {
      int64 size = shape->sizes[dim], at;
      if (rest >> 31) {
        at = rest % size, rest /= size;
      } else { // the usual case, in half the registers
        unsigned quotient = unsigned(rest) / unsigned(size);
        at = rest - int64(quotient) * size, rest = quotient;
      }
      from += at * shape->from[dim];
      to += at * shape->to[dim];
    }
    target[to] = source[from];
  }
}

KERNEL msc_copy_1(unsigned char *target, const unsigned char *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}
KERNEL msc_copy_2(unsigned short *target, const unsigned short *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}
KERNEL msc_copy_4(unsigned *target, const unsigned *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}
KERNEL msc_copy_8(uint64 *target, const uint64 *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}

/// As LookupDescriptor in Kernels.h.
struct Lookup {
  int64 count, inner, begin, end, size, offset, wide, mayMiss, outer;
};

DEVICE int64 rowOf(const Lookup *lookup, const void *indices, int64 n) {
  return (lookup->wide ? ((const int64 *)indices)[n] : int64(((const int *)indices)[n])) - lookup->offset;
}

/// out[o, n, i] = table[o, row of n, i], 0 for rows that other ranks hold, or none. `wrong` gets the first place of an index
/// that numbers nothing.
template <typename Element>
DEVICE void lookUp(Element *out, const Element *table, const void *indices, const Lookup *lookup, uint64 *wrong, int64 total) {
  for (int64 at = firstOf(); at < total; at += strideOf()) {
    int64 i = at % lookup->inner, n = at / lookup->inner % lookup->count, o = at / lookup->inner / lookup->count;
    int64 row = rowOf(lookup, indices, n);
    if (!lookup->mayMiss && (row < 0 || row >= lookup->size))
      __atomic_fetch_min(wrong, uint64(n), __ATOMIC_RELAXED);
    bool mine = row >= lookup->begin && row < lookup->end;
    out[at] = mine ? table[(o * (lookup->end - lookup->begin) + row - lookup->begin) * lookup->inner + i] : Element(0);
  }
}

KERNEL msc_lookup_1(unsigned char *out, const unsigned char *table, const void *indices, const Lookup *lookup, uint64 *wrong,
                    int64 total) {
  lookUp(out, table, indices, lookup, wrong, total);
}
KERNEL msc_lookup_2(unsigned short *out, const unsigned short *table, const void *indices, const Lookup *lookup, uint64 *wrong,
                    int64 total) {
  lookUp(out, table, indices, lookup, wrong, total);
}
KERNEL msc_lookup_4(unsigned *out, const unsigned *table, const void *indices, const Lookup *lookup, uint64 *wrong,
                    int64 total) {
  lookUp(out, table, indices, lookup, wrong, total);
}
KERNEL msc_lookup_8(uint64 *out, const uint64 *table, const void *indices, const Lookup *lookup, uint64 *wrong, int64 total) {
  lookUp(out, table, indices, lookup, wrong, total);
}

SHARED int found[1024]; // of a stretch of indices, which number the row of the block
SHARED int anyFound;

/// Which of the 1024 indices from `start` on number `row`: into `found`. Whether any does, for all threads.
DEVICE bool findIn(const void *indices, const Lookup *lookup, int64 row, int64 start, int64 end) {
  int thread = int(__nvvm_read_ptx_sreg_tid_x());
  __syncthreads();
  if (thread == 0)
    anyFound = 0;
  __syncthreads();
  for (int i = thread; i < 1024; i += 256) {
    int hit = start + i < end && rowOf(lookup, indices, start + i) == row;
    found[i] = hit;
    if (hit)
      anyFound = 1;
  }
  __syncthreads();
  return anyFound != 0;
}

/// How rows become one: f16 and bf16 are rounded after every sum, as on CPUs.
struct Adding {
  template <typename Element> static DEVICE_OF void take(Element &sofar, Element more) {
    assign(sofar, numberOf(sofar) + numberOf(more));
  }
};
/// The largest, or the smallest; NaN if one is.
template <bool Largest> struct Extremum {
  template <typename Element> static DEVICE_OF void take(Element &sofar, Element more) {
    auto a = numberOf(sofar), b = numberOf(more);
    if (b != b || (Largest ? b > a : b < a))
      sofar = more;
  }
};

/// results[o, r, i] takes rows[o, n, i] for all n that number r, in their order; it has its first value before. A block takes an index, and
/// does nothing unless it is the first one of its row: then it takes what all later ones bring.
template <typename Fold, typename Element>
DEVICE void fold(Element *results, const Element *rows, const void *indices, const Lookup *lookup, int64 total) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x();
#pragma unroll 1
  for (int64 n = __nvvm_read_ptx_sreg_ctaid_x(); n < total; n += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 row = rowOf(lookup, indices, n);
    bool first = row >= lookup->begin && row < lookup->end;
#pragma unroll 1
    for (int64 start = 0; first && start < n; start += 1024)
      first = !findIn(indices, lookup, row, start, n);
#pragma unroll 1
    for (int64 start = n; first && start < total; start += 1024) {
      if (!findIn(indices, lookup, row, start, total))
        continue;
#pragma unroll 1
      for (int64 o = 0; o < lookup->outer; ++o) {
        Element *result = results + (o * (lookup->end - lookup->begin) + row - lookup->begin) * lookup->inner;
#pragma unroll 1
        for (int at = 0; at < 1024; ++at)
          if (found[at])
#pragma unroll 1
            for (int64 i = thread; i < lookup->inner; i += 256)
              Fold::take(result[i], rows[(o * total + start + at) * lookup->inner + i]);
      }
    }
  }
}

#define FOLD_KERNEL(NAME, Element, Fold)                                                                                         \
  KERNEL msc_##NAME(Element *results, const Element *rows, const void *indices, const Lookup *lookup, int64 total) {             \
    fold<Fold>(results, rows, indices, lookup, total);                                                                           \
  }
FOLD_KERNEL(sums_f32, float, Adding)
FOLD_KERNEL(sums_f64, double, Adding)
FOLD_KERNEL(sums_i32, unsigned, Adding)
FOLD_KERNEL(sums_i64, uint64, Adding)
FOLD_KERNEL(sums_f16, Half, Adding)
FOLD_KERNEL(sums_bf16, Brain, Adding)
#define EXTREMUM_KERNELS(TYPE, Element)                                                                                          \
  FOLD_KERNEL(maxima_##TYPE, Element, Extremum<true>)                                                                            \
  FOLD_KERNEL(minima_##TYPE, Element, Extremum<false>)
EXTREMUM_KERNELS(f32, float)
EXTREMUM_KERNELS(f64, double)
EXTREMUM_KERNELS(i32, int)
EXTREMUM_KERNELS(i64, int64)
EXTREMUM_KERNELS(f16, Half)
EXTREMUM_KERNELS(bf16, Brain)

/// As ReduceKind counts them.
struct Sum {
  template <typename T> static DEVICE_OF T of(T a, T b) { return a + b; }
  static DEVICE_OF int of(int a, int b) { return int(unsigned(a) + unsigned(b)); }
  static DEVICE_OF int64 of(int64 a, int64 b) { return int64(uint64(a) + uint64(b)); }
};
struct Prod {
  template <typename T> static DEVICE_OF T of(T a, T b) { return a * b; }
  static DEVICE_OF int of(int a, int b) { return int(unsigned(a) * unsigned(b)); }
  static DEVICE_OF int64 of(int64 a, int64 b) { return int64(uint64(a) * uint64(b)); }
};
// NaN wins, from either side; equal values keep the left one.
struct Min {
  template <typename T> static DEVICE_OF T of(T a, T b) { return a != a ? a : (b < a || b != b) ? b : a; }
};
struct Max {
  template <typename T> static DEVICE_OF T of(T a, T b) { return a != a ? a : (b > a || b != b) ? b : a; }
};

template <typename T, typename Op> DEVICE void reduceAs(const int64 *shape, int64 count) {
  int64 members = shape[0], targets = shape[1], first = shape[3];
  const int64 *sources = shape + 4, *results = sources + members;
  for (int64 i = firstOf(); i < count; i += strideOf()) {
    T value = ((const T *)sources[0])[first + i];
    for (int64 m = 1; m < members; ++m)
      value = Op::of(value, ((const T *)sources[m])[first + i]);
    for (int64 m = 0; m < targets; ++m)
      ((T *)results[m])[first + i] = value;
  }
}

/// One piece of the memory of all ranks of a GPU, added up in their order. `shape`: number of sources, number of targets, kind,
/// first element, the sources, the targets. Where a rank writes, no other one reads.
template <typename T, typename Add, typename Multiply> DEVICE void reduce(const int64 *shape, int64 count) {
  switch (shape[2]) {
  case 0: return reduceAs<T, Add>(shape, count);
  case 1: return reduceAs<T, Multiply>(shape, count);
  case 2: return reduceAs<T, Min>(shape, count);
  default: return reduceAs<T, Max>(shape, count);
  }
}

KERNEL msc_reduce_f32(const int64 *shape, int64 count) { reduce<float, Sum, Prod>(shape, count); }
KERNEL msc_reduce_f64(const int64 *shape, int64 count) { reduce<double, Sum, Prod>(shape, count); }
KERNEL msc_reduce_i32(const int64 *shape, int64 count) { reduce<int, Sum, Prod>(shape, count); }
KERNEL msc_reduce_i64(const int64 *shape, int64 count) { reduce<int64, Sum, Prod>(shape, count); }
KERNEL msc_reduce_bool(const int64 *shape, int64 count) { reduce<unsigned char, Max, Min>(shape, count); }

SHARED float exchanged[256];

/// The sum, or the largest, of one number of every thread, in a fixed tree.
DEVICE float together(float value, bool largest) {
  unsigned thread = __nvvm_read_ptx_sreg_tid_x();
  __syncthreads();
  exchanged[thread] = value;
  __syncthreads();
  for (unsigned width = 128; width > 0; width /= 2) {
    if (thread < width) {
      float a = exchanged[thread], b = exchanged[thread + width];
      exchanged[thread] = largest ? (a > b ? a : b) : a + b;
    }
    __syncthreads();
  }
  return exchanged[0];
}

#include "WindowKernels.inc"
#include "LineKernels.inc"
