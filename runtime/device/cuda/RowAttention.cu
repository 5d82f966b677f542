// Attention, its gradients and that of its mask row by row, for all that Attention.cu has no kernels for. Everything is computed in f64 and
// rounded once.
#include "KernelBasics.inc"
#include "Numbers.inc"

/// As RowAttentionDescriptor in Kernels.h.
struct Attention {
  int64 batch, heads, keyHeads, size, queries, keys, firstQuery, causal, mask, maskBatch, maskHead, maskQuery, maskKey, sumsBatch, sumsQueries;
  double scale;
};

SHARED double weights[256], slopes[256];

template <typename Element> DEVICE void store(Element &target, double value) { assign(target, NumberOf<Element>(value)); }

/// e^x; 0 below -708.
DEVICE double exponential(double x) {
  if (!(x > -708.0))
    return x == x ? 0.0 : x;
  if (x > 709.0)
    return __builtin_inf();
  double n = __builtin_rint(x * 0x1.71547652b82fep0);
  double r = __builtin_fma(n, -0x1.abc9e3b39803fp-56, __builtin_fma(n, -0x1.62e42fefa39efp-1, x));
  double q = 1;
#pragma unroll
  for (int k = 13; k > 0; --k)
    q = __builtin_fma(q * r, 1.0 / k, 1.0);
  return q * __builtin_bit_cast(double, (int64(n) + 1023) << 52);
}

/// The natural logarithm of a normal positive number.
DEVICE double logarithm(double x) {
  int64 bits = __builtin_bit_cast(int64, x), exponent = (bits >> 52) - 1023;
  double m = __builtin_bit_cast(double, (bits & 0xfffffffffffff) | 0x3ff0000000000000);
  if (m > 0x1.6a09e667f3bcdp0)
    m *= 0.5, ++exponent;
  double t = (m - 1) / (m + 1), s = t * t, series = 1.0 / 23;
#pragma unroll
  for (int k = 21; k > 1; k -= 2)
    series = __builtin_fma(series, s, 1.0 / k);
  series = __builtin_fma(series * s, t, t);
  return __builtin_fma(double(exponent), 0x1.62e42fefa39efp-1, __builtin_fma(double(exponent), 0x1.abc9e3b39803fp-56, 2 * series));
}

template <typename Element> DEVICE double dot(const Element *a, const Element *b, int64 size) {
  double sum = 0;
#pragma unroll 1
  for (int64 i = 0; i < size; ++i)
    sum = __builtin_fma(double(numberOf(a[i])), double(numberOf(b[i])), sum);
  return sum;
}

/// NaN is largest.
struct Larger {
  static DEVICE_OF double of(double a, double b) { return a != a || a > b ? a : b; }
};

DEVICE double nothing() { return -__builtin_inf(); } // the score of a key that a query does not attend to

/// A query of a head, and where its row, its logarithm and the keys of its head lie.
struct Query {
  int64 batch, head, row, place, log, keys;
};
DEVICE Query queryAt(const Attention *a, int64 batch, int64 head, int64 row) {
  return {batch, head, row, ((batch * a->queries + row) * a->heads + head) * a->size, (batch * a->heads + head) * a->queries + row,
          (batch * a->keys * a->keyHeads + head * a->keyHeads / a->heads) * a->size};
}
DEVICE Query queryOf(const Attention *a, int64 item) {
  int64 rest = item / a->queries;
  return queryAt(a, rest / a->heads, rest % a->heads, item % a->queries);
}

/// Numbers that are added to the scores are as wide as the logarithms.
template <typename Wide, typename Element>
DEVICE double scoreOf(const Attention *a, const Query &at, const Element *query, const Element *key, const void *mask, int64 column) {
  if (column >= a->keys || (a->causal && column > a->firstQuery + at.row))
    return nothing();
  int64 place = at.batch * a->maskBatch + at.head * a->maskHead + at.row * a->maskQuery + column * a->maskKey;
  if (a->mask == 1 && !((const unsigned char *)mask)[place])
    return nothing();
  double score = dot(query + at.place, key + at.keys + column * a->keyHeads * a->size, a->size) * a->scale;
  return a->mask == 2 ? score + ((const Wide *)mask)[place] : score;
}

/// A block computes one query after the other: 256 keys at a time, one per thread; then as many elements of the result.
template <typename Element, typename Wide>
DEVICE void attend(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask, Element *out,
                   Wide *logs, int64 count) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), narrow = a->keyHeads * a->size;
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    Query at = queryOf(a, item);
    double largest = nothing(), total = 0;
    for (int64 start = 0; start < a->keys; start += 256) {
      double score = scoreOf<Wide>(a, at, query, key, mask, start + thread), most = together<Larger>(score);
      most = Larger::of(largest, most);
      if (most == nothing()) // no key so far, for every thread of the block
        continue;
      double sum = together<Plus>(score == nothing() ? 0 : exponential(score - most));
      total = __builtin_fma(total, exponential(largest - most), sum);
      largest = most;
    }
    for (int64 first = 0; first < a->size; first += 256) {
      int64 element = first + thread;
      double sum = 0;
      for (int64 start = 0; start < a->keys; start += 256) {
        double score = scoreOf<Wide>(a, at, query, key, mask, start + thread);
        __syncthreads();
        weights[thread] = score == nothing() ? 0 : exponential(score - largest);
        __syncthreads();
        int64 valid = a->keys - start < 256 ? a->keys - start : 256;
        if (element < a->size)
#pragma unroll 1
          for (int64 j = 0; j < valid; ++j)
            sum = __builtin_fma(weights[j], double(numberOf(value[at.keys + (start + j) * narrow + element])), sum);
      }
      if (element < a->size)
        store(out[at.place + element], total == 0 ? 0 : sum / total);
    }
    if (thread == 0)
      logs[at.log] = Wide(total > 0 ? largest + logarithm(total) : total == 0 ? nothing() : total);
  }
}

/// The weight of a query and a key, and the gradient of their score; `under` is the product of a query's result and its gradient.
template <typename Element, typename Wide>
DEVICE void slopeOf(const Attention *a, const Query &at, const Element *query, const Element *key, const Element *value, const void *mask,
                    Wide log, const Element *dout, double under, int64 column, double &weight, double &slope) {
  double score = scoreOf<Wide>(a, at, query, key, mask, column);
  weight = slope = 0;
  if (score == nothing() || double(log) == nothing())
    return;
  weight = exponential(score - log);
  slope = weight * (dot(dout + at.place, value + at.keys + column * a->keyHeads * a->size, a->size) - under);
}

/// The gradient of the queries: a block computes one after the other.
template <typename Element, typename Wide>
DEVICE void towardsQueries(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask,
                           const Element *out, const Wide *logs, const Element *dout, Element *dquery, int64 count) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), narrow = a->keyHeads * a->size;
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    Query at = queryOf(a, item);
    double under = dot(dout + at.place, out + at.place, a->size);
    for (int64 first = 0; first < a->size; first += 256) {
      int64 element = first + thread;
      double sum = 0;
      for (int64 start = 0; start < a->keys; start += 256) {
        double weight, slope;
        slopeOf(a, at, query, key, value, mask, logs[at.log], dout, under, start + thread, weight, slope);
        __syncthreads();
        slopes[thread] = slope;
        __syncthreads();
        int64 valid = a->keys - start < 256 ? a->keys - start : 256;
        if (element < a->size)
#pragma unroll 1
          for (int64 j = 0; j < valid; ++j)
            sum = __builtin_fma(slopes[j], double(numberOf(key[at.keys + (start + j) * narrow + element])), sum);
      }
      if (element < a->size)
        store(dquery[at.place + element], sum * a->scale);
    }
  }
}

/// The gradients of keys and values: a block computes one key after the other, over all queries of the heads that share it.
template <typename Element, typename Wide>
DEVICE void towardsKeys(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask,
                        const Element *out, const Wide *logs, const Element *dout, Element *dkey, Element *dvalue, int64 count) {
  int64 thread = __nvvm_read_ptx_sreg_tid_x(), group = a->heads / a->keyHeads;
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 column = item % a->keys, shared = item / a->keys % a->keyHeads, batch = item / a->keys / a->keyHeads;
    int64 to = ((batch * a->keys + column) * a->keyHeads + shared) * a->size;
    for (int64 first = 0; first < a->size; first += 256) {
      int64 element = first + thread;
      double keySum = 0, valueSum = 0;
      for (int64 head = shared * group; head < (shared + 1) * group; ++head)
        for (int64 start = 0; start < a->queries; start += 256) {
          double weight = 0, slope = 0;
          if (start + thread < a->queries) {
            Query at = queryAt(a, batch, head, start + thread);
            double under = dot(dout + at.place, out + at.place, a->size);
            slopeOf(a, at, query, key, value, mask, logs[at.log], dout, under, column, weight, slope);
          }
          __syncthreads();
          weights[thread] = weight;
          slopes[thread] = slope;
          __syncthreads();
          int64 valid = a->queries - start < 256 ? a->queries - start : 256;
          if (element < a->size)
#pragma unroll 1
            for (int64 j = 0; j < valid; ++j) {
              int64 from = queryAt(a, batch, head, start + j).place + element;
              keySum = __builtin_fma(slopes[j], double(numberOf(query[from])), keySum);
              valueSum = __builtin_fma(weights[j], double(numberOf(dout[from])), valueSum);
            }
        }
      if (element < a->size) {
        store(dkey[to + element], keySum * a->scale);
        store(dvalue[to + element], valueSum);
      }
    }
  }
}

/// The gradient of the mask, (batch or 1, heads, queries or 1, keys): a thread adds up what one element after the other is repeated for.
template <typename Element, typename Wide>
DEVICE void towardsMask(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask,
                        const Element *out, const Wide *logs, const Element *dout, Element *dmask, int64 total) {
  int64 rows = a->sumsQueries ? 1 : a->queries;
  for (int64 item = firstOf(); item < total; item += strideOf()) {
    int64 column = item % a->keys, row = item / a->keys % rows, head = item / a->keys / rows % a->heads;
    int64 batch = item / a->keys / rows / a->heads;
    double sum = 0;
#pragma unroll 1
    for (int64 b = a->sumsBatch ? 0 : batch; b < (a->sumsBatch ? a->batch : batch + 1); ++b)
#pragma unroll 1
      for (int64 s = a->sumsQueries ? 0 : row; s < (a->sumsQueries ? a->queries : row + 1); ++s) {
        Query at = queryAt(a, b, head, s);
        double weight, slope;
        slopeOf(a, at, query, key, value, mask, logs[at.log], dout, dot(dout + at.place, out + at.place, a->size), column, weight, slope);
        sum += slope;
      }
    store(dmask[item], sum);
  }
}

#define ATTENTION_KERNELS(TYPE, Element, Wide)                                                                                   \
  KERNEL msc_attention_##TYPE(const Attention *a, const Element *query, const Element *key, const Element *value,                \
                              const void *mask, Element *out, Wide *logs, int64 count) {                                         \
    attend(a, query, key, value, mask, out, logs, count);                                                                        \
  }                                                                                                                              \
  KERNEL msc_attention_queries_##TYPE(const Attention *a, const Element *query, const Element *key, const Element *value,        \
                                      const void *mask, const Element *out, const Wide *logs, const Element *dout,               \
                                      Element *dquery, int64 count) {                                                            \
    towardsQueries(a, query, key, value, mask, out, logs, dout, dquery, count);                                                  \
  }                                                                                                                              \
  KERNEL msc_attention_keys_##TYPE(const Attention *a, const Element *query, const Element *key, const Element *value,           \
                                   const void *mask, const Element *out, const Wide *logs, const Element *dout, Element *dkey,   \
                                   Element *dvalue, int64 count) {                                                               \
    towardsKeys(a, query, key, value, mask, out, logs, dout, dkey, dvalue, count);                                               \
  }
#define MASK_KERNEL(TYPE, Element)                                                                                               \
  KERNEL msc_attention_mask_##TYPE(const Attention *a, const Element *query, const Element *key, const Element *value,           \
                                   const void *mask, const Element *out, const Element *logs, const Element *dout,               \
                                   Element *dmask, int64 total) {                                                                \
    towardsMask(a, query, key, value, mask, out, logs, dout, dmask, total);                                                      \
  }
ATTENTION_KERNELS(f32, float, float)
ATTENTION_KERNELS(f64, double, double)
ATTENTION_KERNELS(f16, Half, float)
ATTENTION_KERNELS(bf16, Brain, float)
MASK_KERNEL(f32, float)
MASK_KERNEL(f64, double)
