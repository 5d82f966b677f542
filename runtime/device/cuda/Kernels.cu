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

/// Elements from one row to another, as words of 32 bits.
struct Words {
  const unsigned *from;
  DEVICE_OF unsigned at(int64 i) const { return from[i]; }
};
struct Halves { // from an odd element on
  const unsigned short *from;
  DEVICE_OF unsigned at(int64 i) const { return from[2 * i] | unsigned(from[2 * i + 1]) << 16; }
};
template <int lanes, typename Source> DEVICE void copyWords(unsigned *to, Source source, int64 words, int64 lane) {
  int64 at = lane;
  unsigned value[8];
#pragma unroll 1
  for (; at + 7 * lanes < words; at += 8 * lanes) {
#pragma unroll
    for (int k = 0; k < 8; ++k)
      value[k] = source.at(at + k * lanes);
#pragma unroll
    for (int k = 0; k < 8; ++k)
      to[at + k * lanes] = value[k];
  }
  if (at >= words)
    return;
#pragma unroll
  for (int k = 0; k < 7; ++k)
    value[k] = source.at(at + k * lanes < words ? at + k * lanes : words - 1);
#pragma unroll
  for (int k = 0; k < 7; ++k)
    if (at + k * lanes < words)
      to[at + k * lanes] = value[k];
}

/// `columns` elements, and zeros up to `pitch`.
template <int lanes> DEVICE void copyRow(unsigned *to, const unsigned *from, int64 columns, int64 pitch, int64 lane) {
  copyWords<lanes>(to, Words{from}, columns, lane);
  for (int64 at = columns + lane; at < pitch; at += lanes)
    to[at] = 0;
}
template <int lanes> DEVICE void copyRow(unsigned short *to, const unsigned short *from, int64 columns, int64 pitch, int64 lane) {
  int64 head = int64(uint64(to) / 2 % 2), words = columns > head ? (columns - head) / 2 : 0; // words lie aligned in the target
  if (head && lane == 0)
    to[0] = columns > 0 ? from[0] : 0;
  if ((uint64(from) / 2 + uint64(head)) % 2 == 0)
    copyWords<lanes>((unsigned *)(to + head), Words{(const unsigned *)(from + head)}, words, lane);
  else
    copyWords<lanes>((unsigned *)(to + head), Halves{from + head}, words, lane);
  for (int64 at = head + 2 * words + lane; at < pitch; at += lanes)
    to[at] = at < columns ? from[at] : 0;
}

/// target[r, c] = source[r, c] for `rows` rows of `columns` elements, all others of the target zero: `total` rows of `targetPitch`.
/// `lanes` threads take a row: 32 or 256.
template <typename Element>
DEVICE void repitch(Element *target, const Element *source, int64 rows, int64 columns, int64 targetPitch, int64 sourcePitch,
                    int64 lanes, int64 total) {
  int64 shift = lanes == 256 ? 8 : 5;
#pragma unroll 1
  for (int64 row = firstOf() >> shift; row < total; row += strideOf() >> shift) {
    Element *to = target + row * targetPitch;
    const Element *from = source + row * sourcePitch;
    int64 held = row < rows ? columns : 0, lane = firstOf() & (lanes - 1);
    if (lanes == 256)
      copyRow<256>(to, from, held, targetPitch, lane);
    else
      copyRow<32>(to, from, held, targetPitch, lane);
  }
}

KERNEL msc_repitch_2(unsigned short *target, const unsigned short *source, int64 rows, int64 columns, int64 targetPitch,
                     int64 sourcePitch, int64 lanes, int64 total) {
  repitch(target, source, rows, columns, targetPitch, sourcePitch, lanes, total);
}
KERNEL msc_repitch_4(unsigned *target, const unsigned *source, int64 rows, int64 columns, int64 targetPitch, int64 sourcePitch,
                     int64 lanes, int64 total) {
  repitch(target, source, rows, columns, targetPitch, sourcePitch, lanes, total);
}

/// As LookupDescriptor in Kernels.h.
struct Lookup {
  int64 count, inner, begin, end, size, offset, wide, mayMiss, outer, chunk;
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

SHARED unsigned hits[32];   // of a stretch of 1024 indices, a bit for each
SHARED int hitsBefore[33];   // each of these words
SHARED int numbering[2048];  // which indices number the row of a block, in ascending order
SHARED int foundBefore;
SHARED unsigned withHits; // a bit for each of the first 31 stretches, one for all others

/// Whether no index before the nth numbers `row`: by the whole block.
DEVICE bool isFirst(const void *indices, const Lookup *lookup, int64 row, int64 n) {
  volatile int *found = &foundBefore;
  int64 thread = __nvvm_read_ptx_sreg_tid_x();
  __syncthreads();
  if (thread == 0)
    *found = 0;
  __syncthreads();
  for (int64 start = thread; start < n && !*found; start += 2048) {
    bool hit = false;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      int64 at = start + 256 * k;
      hit |= rowOf(lookup, indices, at < n ? at : n - 1) == row; // the last one may be looked at twice
    }
    if (hit)
      *found = 1;
  }
  __syncthreads();
  return !*found;
}

/// The bit of a stretch in `withHits`.
DEVICE unsigned bitOf(int64 stretch) { return 1u << (stretch < 31 ? stretch : 31); }

/// Which stretches from the nth index on have one that numbers `row`.
DEVICE unsigned stretchesOf(const void *indices, const Lookup *lookup, int64 row, int64 n) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), last = lookup->count - 1;
  unsigned mask = 0;
  __syncthreads();
  if (thread == 0)
    withHits = 0;
  __syncthreads();
#pragma unroll 1
  for (int64 start = n + thread; start <= last; start += 2048) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      int64 at = start + 256 * k < last ? start + 256 * k : last;
      mask |= rowOf(lookup, indices, at) == row ? bitOf((at - n) / 1024) : 0;
    }
  }
  if (mask)
    __atomic_fetch_or(&withHits, mask, __ATOMIC_RELAXED);
  __syncthreads();
  return withHits;
}

/// Appends which of the 1024 indices from `start` on number `row` to `kept` that are listed. How many are listed then.
DEVICE int list(const void *indices, const Lookup *lookup, int64 row, int64 start, int kept) {
  int thread = int(__nvvm_read_ptx_sreg_tid_x()), lane = thread % 32, warp = thread / 32;
  __syncthreads();
  if (thread < 32)
    hits[thread] = 0;
  __syncthreads();
  bool hit[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    int64 at = start + 256 * k + thread, last = lookup->count - 1;
    hit[k] = rowOf(lookup, indices, at < last ? at : last) == row && at <= last;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (hit[k])
      __atomic_fetch_or(&hits[8 * k + warp], 1u << lane, __ATOMIC_RELAXED);
  __syncthreads();
  if (thread <= 32) {
    int sum = 0;
#pragma unroll
    for (int word = 0; word < 32; ++word)
      sum += word < thread ? __builtin_popcount(hits[word]) : 0;
    hitsBefore[thread] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (hit[k]) {
      int word = 8 * k + warp;
      numbering[kept + hitsBefore[word] + __builtin_popcount(hits[word] & ((1u << lane) - 1))] = int(start) + 256 * k + thread;
    }
  return kept + hitsBefore[32];
}

/// How rows become one: f16 and bf16 are rounded after every sum, as on CPUs.
struct Adding {
  template <typename Element> static DEVICE_OF Element first(Element) { return Element(); }
  template <typename Element> static DEVICE_OF void take(Element &sofar, Element more) {
    assign(sofar, numberOf(sofar) + numberOf(more));
  }
};
/// The largest, or the smallest; NaN if one is. Where nothing was taken, what was there stays.
template <bool Largest> struct Extremum {
  template <typename Element> static DEVICE_OF Element first(Element there) { return there; }
  template <typename Element> static DEVICE_OF void take(Element &sofar, Element more) {
    auto a = numberOf(sofar), b = numberOf(more);
    if (b != b || (Largest ? b > a : b < a))
      sofar = more;
  }
};

/// Takes `listed` rows into the sums of a thread, `atOnce` of them under way.
template <typename Fold, typename Element, int columns, int atOnce>
DEVICE void takeListed(Element (&sum)[columns], const Element *const (&from)[columns], int64 inner, int listed) {
  __syncthreads();
  int at = 0;
#pragma unroll 1
  for (; at + atOnce <= listed; at += atOnce) {
    Element value[atOnce][columns];
#pragma unroll
    for (int k = 0; k < atOnce; ++k) {
      int64 row = numbering[at + k] * inner;
#pragma unroll
      for (int c = 0; c < columns; ++c)
        value[k][c] = from[c][row];
    }
#pragma unroll
    for (int k = 0; k < atOnce; ++k)
#pragma unroll
      for (int c = 0; c < columns; ++c)
        Fold::take(sum[c], value[k][c]);
  }
#pragma unroll 1
  for (; at < listed; ++at) {
    int64 row = numbering[at] * inner;
#pragma unroll
    for (int c = 0; c < columns; ++c)
      Fold::take(sum[c], from[c][row]);
  }
}

/// 256 * columns elements, from `first` on, of all that the nth index and later ones bring to `row`. Elements are counted through
/// the outer rows.
template <typename Fold, int columns, int atOnce, typename Element>
DEVICE void foldChunk(Element *sums, const Element *rows, const void *indices, const Lookup *lookup, int64 row, int64 n, int64 first) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), inner = lookup->inner, width = lookup->outer * inner, held = lookup->end - lookup->begin;
  Element sum[columns];
  const Element *from[columns];
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    int64 at = first + 256 * c + thread, element = at < width ? at : width - 1;
    sum[c] = Fold::first(sums[(element / inner * held + row - lookup->begin) * inner + element % inner]);
    from[c] = rows + element / inner * lookup->count * inner + element % inner;
  }
  unsigned mask = stretchesOf(indices, lookup, row, n);
  int kept = 0;
#pragma unroll 1
  for (int64 start = n; start < lookup->count; start += 1024) {
    if (mask & bitOf((start - n) / 1024))
      kept = list(indices, lookup, row, start, kept);
    if (kept <= 1024 && start + 1024 < lookup->count)
      continue;
    takeListed<Fold, Element, columns, atOnce>(sum, from, inner, kept);
    kept = 0;
  }
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    int64 at = first + 256 * c + thread;
    if (at < width)
      sums[(at / inner * held + row - lookup->begin) * inner + at % inner] = sum[c];
  }
}

/// sums[o, r, i] takes rows[o, n, i] for all n that number r, in their order; a sum starts from 0, whatever is there. A block takes an
/// index and a chunk of elements, and does nothing unless the index is the first one of its row: then it adds up what all later
/// ones bring.
template <typename Fold, typename Element>
DEVICE void fold(Element *sums, const Element *rows, const void *indices, const Lookup *lookup, int64 total) {
  int64 chunk = lookup->chunk, chunks = (lookup->outer * lookup->inner + chunk - 1) / chunk;
#pragma unroll 1
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < total; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 n = item / chunks, first = (item - n * chunks) * chunk, row = rowOf(lookup, indices, n);
    if (row < lookup->begin || row >= lookup->end || !isFirst(indices, lookup, row, n))
      continue;
    if (chunk == 256)
      foldChunk<Fold, 1, 32>(sums, rows, indices, lookup, row, n, first);
    else
      foldChunk<Fold, 4, 8>(sums, rows, indices, lookup, row, n, first);
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

#include "WindowKernels.inc"
#include "LineKernels.inc"
#include "TurnKernels.inc"
