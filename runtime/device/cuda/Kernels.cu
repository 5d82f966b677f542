// Kernels of the runtime that no plan holds: fills of 8 bytes, strided copies, look-ups, reductions, attention, windows,
// sums and choices along one dimension.
// Compiled by clang without a toolkit's headers. Any grid gives the same bits. All arguments have 64 bits.
using int64 = long long;
using uint64 = unsigned long long;

#define KERNEL extern "C" __attribute__((global)) void __attribute__((launch_bounds(256)))
#define DEVICE static inline __attribute__((device))
#define DEVICE_OF inline __attribute__((device)) // a member

DEVICE int64 firstOf() {
  return int64(__nvvm_read_ptx_sreg_ctaid_x()) * 256 + __nvvm_read_ptx_sreg_tid_x();
}
DEVICE int64 strideOf() {
  return int64(__nvvm_read_ptx_sreg_nctaid_x()) * 256;
}

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
  int64 count, inner, begin, end, size, offset, wide, mayMiss;
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

/// sums[o, r, i] = the sum of rows[o, n, i] over all n that number r, in their order.
template <typename Element>
DEVICE void addUp(Element *sums, const Element *rows, const void *indices, const Lookup *lookup, int64 total) {
  for (int64 at = firstOf(); at < total; at += strideOf()) {
    int64 held = lookup->end - lookup->begin;
    int64 i = at % lookup->inner, row = at / lookup->inner % held + lookup->begin, o = at / lookup->inner / held;
    Element sum = 0;
    for (int64 n = 0; n < lookup->count; ++n)
      if (rowOf(lookup, indices, n) == row)
        sum += rows[(o * lookup->count + n) * lookup->inner + i];
    sums[at] = sum;
  }
}

KERNEL msc_sums_f32(float *sums, const float *rows, const void *indices, const Lookup *lookup, int64 total) {
  addUp(sums, rows, indices, lookup, total);
}
KERNEL msc_sums_f64(double *sums, const double *rows, const void *indices, const Lookup *lookup, int64 total) {
  addUp(sums, rows, indices, lookup, total);
}
KERNEL msc_sums_i32(unsigned *sums, const unsigned *rows, const void *indices, const Lookup *lookup, int64 total) {
  addUp(sums, rows, indices, lookup, total);
}
KERNEL msc_sums_i64(uint64 *sums, const uint64 *rows, const void *indices, const Lookup *lookup, int64 total) {
  addUp(sums, rows, indices, lookup, total);
}

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

/// As AttentionDescriptor in Kernels.h.
struct Attention {
  int64 heads, keyHeads, size, queries, keys, firstQuery, causal, mask, maskBatch, maskHead, maskQuery, maskKey;
  double scale;
};

#define SHARED static __attribute__((device, shared))
SHARED float exchanged[256], weights[256], slopes[256];

DEVICE float infinity() {
  return __builtin_inff();
}

/// e^x for x up to 0, within 2 ulp; 0 below -87.
DEVICE float exponential(float x) {
  if (!(x > -87.0f))
    return x == x ? 0.0f : x;
  float n = __builtin_rintf(x * 0x1.715476p0f);
  float r = __builtin_fmaf(n, 2.12194440e-4f, __builtin_fmaf(n, -0.693359375f, x));
  float q = 0x1.6dba24p-10f;
  q = __builtin_fmaf(q, r, 0x1.123bc6p-7f);
  q = __builtin_fmaf(q, r, 0x1.555456p-5f);
  q = __builtin_fmaf(q, r, 0x1.55548ep-3f);
  q = __builtin_fmaf(q, r, 0.5f);
  q = __builtin_fmaf(r * r, q, r) + 1.0f;
  return q * __builtin_bit_cast(float, (int(n) + 127) << 23);
}

/// The natural logarithm of a normal positive number.
DEVICE float logarithm(float x) {
  int bits = __builtin_bit_cast(int, x), exponent = (bits >> 23) - 127;
  float m = __builtin_bit_cast(float, (bits & 0x7fffff) | 0x3f800000);
  if (m > 1.41421356f)
    m *= 0.5f, ++exponent;
  float t = (m - 1) / (m + 1), s = t * t, series = 0.11111111f;
  series = __builtin_fmaf(series, s, 0.14285715f);
  series = __builtin_fmaf(series, s, 0.2f);
  series = __builtin_fmaf(series, s, 0.33333334f);
  series = __builtin_fmaf(series * s, t, t);
  return __builtin_fmaf(float(exponent), 0.69314718f, 2 * series);
}

DEVICE float dot(const float *a, const float *b, int64 size) {
  float sum = 0;
  for (int64 i = 0; i < size; ++i)
    sum = __builtin_fmaf(a[i], b[i], sum);
  return sum;
}

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

/// The score of a query (row `row`) and a key; -inf where the query does not attend to it.
DEVICE float scoreOf(const Attention *a, const float *query, const float *key, const void *mask, int64 batch, int64 head,
                     int64 row, int64 column) {
  if (column >= a->keys || (a->causal && column > a->firstQuery + row))
    return -infinity();
  int64 place = batch * a->maskBatch + head * a->maskHead + row * a->maskQuery + column * a->maskKey;
  if (a->mask == 1 && !((const unsigned char *)mask)[place])
    return -infinity();
  float score = dot(query, key, a->size) * float(a->scale);
  return a->mask == 2 ? score + ((const float *)mask)[place] : score;
}

/// A block computes one query of one head after the other: 256 keys at a time, one per thread.
KERNEL msc_attention(const Attention *a, const float *query, const float *key, const float *value, const void *mask, float *out,
                     float *logs, int64 count) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), wide = a->heads * a->size, narrow = a->keyHeads * a->size;
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 row = item % a->queries, head = item / a->queries % a->heads, batch = item / a->queries / a->heads;
    const float *q = query + (batch * a->queries + row) * wide + head * a->size;
    int64 first = batch * a->keys * narrow + head * a->keyHeads / a->heads * a->size;
    float largest = -infinity(), total = 0, sum = 0;
    for (int64 start = 0; start < a->keys; start += 256) {
      int64 column = start + thread;
      float score = scoreOf(a, q, key + first + (column < a->keys ? column : 0) * narrow, mask, batch, head, row, column);
      float most = together(score, true);
      most = most > largest ? most : largest;
      if (most == -infinity()) // no key so far, for every thread of the block
        continue;
      float weight = score == -infinity() ? 0 : exponential(score - most), factor = exponential(largest - most);
      weights[thread] = weight;
      total = __builtin_fmaf(total, factor, together(weight, false));
      sum *= factor;
      int64 valid = a->keys - start < 256 ? a->keys - start : 256;
      if (thread < a->size)
        for (int64 j = 0; j < valid; ++j)
          sum = __builtin_fmaf(weights[j], value[first + (start + j) * narrow + thread], sum);
      largest = most;
      __syncthreads();
    }
    if (thread < a->size)
      out[(batch * a->queries + row) * wide + head * a->size + thread] = total > 0 ? sum / total : 0;
    if (thread == 0)
      logs[item] = total > 0 ? largest + logarithm(total) : -infinity();
  }
}

/// The gradient of a score, and the weight, of a query and a key.
DEVICE void slopeOf(float score, float log, const float *dout, const float *out, const float *value, int64 size, float &weight,
                    float &slope) {
  weight = score == -infinity() || log == -infinity() ? 0 : exponential(score - log);
  slope = weight * (dot(dout, value, size) - dot(dout, out, size));
}

/// The gradient of the queries: a block computes one after the other.
KERNEL msc_attention_queries(const Attention *a, const float *query, const float *key, const float *value, const void *mask,
                             const float *out, const float *logs, const float *dout, float *dquery, int64 count) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), wide = a->heads * a->size, narrow = a->keyHeads * a->size;
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 row = item % a->queries, head = item / a->queries % a->heads, batch = item / a->queries / a->heads;
    int64 place = (batch * a->queries + row) * wide + head * a->size;
    int64 first = batch * a->keys * narrow + head * a->keyHeads / a->heads * a->size;
    float sum = 0;
    for (int64 start = 0; start < a->keys; start += 256) {
      int64 column = start + thread, at = first + (column < a->keys ? column : 0) * narrow;
      float weight, slope, score = scoreOf(a, query + place, key + at, mask, batch, head, row, column);
      slopeOf(score, logs[item], dout + place, out + place, value + at, a->size, weight, slope);
      __syncthreads();
      slopes[thread] = slope;
      __syncthreads();
      int64 valid = a->keys - start < 256 ? a->keys - start : 256;
      if (thread < a->size)
        for (int64 j = 0; j < valid; ++j)
          sum = __builtin_fmaf(slopes[j], key[first + (start + j) * narrow + thread], sum);
    }
    if (thread < a->size)
      dquery[place + thread] = sum * float(a->scale);
  }
}

/// The gradients of keys and values: a block computes one key after the other, over all queries of the heads that share it.
KERNEL msc_attention_keys(const Attention *a, const float *query, const float *key, const float *value, const void *mask,
                          const float *out, const float *logs, const float *dout, float *dkey, float *dvalue, int64 count) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), wide = a->heads * a->size, narrow = a->keyHeads * a->size;
  int64 group = a->heads / a->keyHeads;
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 column = item % a->keys, shared = item / a->keys % a->keyHeads, batch = item / a->keys / a->keyHeads;
    int64 at = (batch * a->keys + column) * narrow + shared * a->size;
    float keySum = 0, valueSum = 0;
    for (int64 head = shared * group; head < (shared + 1) * group; ++head)
      for (int64 start = 0; start < a->queries; start += 256) {
        int64 row = start + thread < a->queries ? start + thread : 0;
        int64 place = (batch * a->queries + row) * wide + head * a->size;
        float weight, slope, score = scoreOf(a, query + place, key + at, mask, batch, head, row, column);
        slopeOf(score, logs[(batch * a->heads + head) * a->queries + row], dout + place, out + place, value + at, a->size,
                weight, slope);
        __syncthreads();
        weights[thread] = weight;
        slopes[thread] = slope;
        __syncthreads();
        int64 valid = a->queries - start < 256 ? a->queries - start : 256;
        if (thread < a->size)
          for (int64 j = 0; j < valid; ++j) {
            int64 from = (batch * a->queries + start + j) * wide + head * a->size + thread;
            keySum = __builtin_fmaf(slopes[j], query[from], keySum);
            valueSum = __builtin_fmaf(weights[j], dout[from], valueSum);
          }
      }
    if (thread < a->size) {
      dkey[at + thread] = keySum * float(a->scale);
      dvalue[at + thread] = valueSum;
    }
  }
}

#include "Numbers.inc"
#include "WindowKernels.inc"
#include "LineKernels.inc"
