// Attention and its gradient, in tiles that blocks keep in shared memory: the queries of a block against some keys at a time, or its
// keys against some queries, of whose scores no more exist at once. "FlashAttention-2" (Dao, 2023) says why that is exact. Gradients
// of queries and those of keys and values are kernels of their own, so that every sum has one owner and an order that sizes alone decide.
//
// Products of f32 run on the ordinary lanes (Lanes), those of f16 and bf16 on tensor cores (Tensor), which add in f32. Both say
// which elements of a tile a thread owns; all else is written once. A block owns `side` rows and brings `across` rows of the other
// side at a time, of which it computes with `step` at once.
#include "KernelBasics.inc"

#include "Numbers.inc"

#define INLINE static inline __attribute__((device, always_inline))
#define INLINE_OF inline __attribute__((device, always_inline)) // a member

/// A loop over what a thread has in registers.
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)

/// As AttentionDescriptor in Kernels.h.
struct Attention {
  int64 heads, keyHeads, size, queries, keys, firstQuery, causal, mask, maskBatch, maskHead, maskQuery, maskKey;
  double scale;
};

extern __attribute__((device, shared, aligned(16))) unsigned char tiles[]; // as many bytes as the launch says

typedef unsigned Words __attribute__((ext_vector_type(4)));
typedef float Four __attribute__((ext_vector_type(4)));

DEVICE int threadOf() { return int(__nvvm_read_ptx_sreg_tid_x()); }

INLINE int clamp(int64 value, int most) { return value < 0 ? 0 : value > most ? most : int(value); }

DEVICE float across(float value, int mask) {
  return __builtin_bit_cast(float, __nvvm_shfl_sync_bfly_i32(0xffffffff, __builtin_bit_cast(int, value), mask, 31));
}

/// e^x for x up to 0, within 2 ulp; 0 below -87.
DEVICE float exponential(float x) {
  float near = x < -87.0f ? -87.0f : x;
  float n = __builtin_rintf(near * 0x1.715476p0f);
  float r = __builtin_fmaf(n, 2.12194440e-4f, __builtin_fmaf(n, -0.693359375f, near));
  float q = 0x1.6dba24p-10f;
  q = __builtin_fmaf(q, r, 0x1.123bc6p-7f);
  q = __builtin_fmaf(q, r, 0x1.555456p-5f);
  q = __builtin_fmaf(q, r, 0x1.55548ep-3f);
  q = __builtin_fmaf(q, r, 0.5f);
  q = __builtin_fmaf(r * r, q, r) + 1.0f;
  float power = q * __builtin_bit_cast(float, (int(n) + 127) << 23);
  return x < -87.0f ? 0.0f : power;
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

/// What a warp wrote for itself is there.
INLINE void meetInWarp() { __nvvm_bar_warp_sync(0xffffffff); }

/// T x T scores and T x D sums by 256 threads on ordinary lanes. A thread has neighbouring rows, and of scores every 16th column.
/// `blocks`: of a multiprocessor, at least.
template <int T, int D, int Blocks> struct Lanes {
  using Number = float;
  static constexpr int side = T, across = T, step = T, depth = D, threads = 256, rows = T / 16, columns = T / 16, widths = D / 16;
  static constexpr int pitch = D + 4, weightPitch = T + 4, lanesOfRow = 16, blocks = Blocks; // pitches that spread rows over the banks
  static constexpr int weightsHeld = T * weightPitch; ///< numbers in shared memory
  static INLINE_OF int row(int i) { return threadOf() / 16 * rows + i; }
  static INLINE_OF int column(int j) { return threadOf() % 16 + 16 * j; }
  static INLINE_OF int width(int j) { return threadOf() % 16 * 4 + 64 * (j / 4) + j % 4; }

  /// e^(score * factor - base), which is at most 1.
  static INLINE_OF float weight(float score, float factor, float base) { return exponential(__builtin_fmaf(score, factor, -base)); }

  /// out[i][j] = row(i) of a times column(j) of b.
  static INLINE_OF void multiply(float (&out)[rows][columns], const float *a, const float *b) {
    EACH(i, rows)
      EACH(j, columns)
        out[i][j] = 0;
#pragma unroll 2
    for (int k = 0; k < D; k += 4) {
      Four left[rows], right[columns];
      EACH(i, rows)
        left[i] = *(const Four *)(a + row(i) * pitch + k);
      EACH(j, columns)
        right[j] = *(const Four *)(b + column(j) * pitch + k);
      EACH(i, rows)
        EACH(j, columns)
          EACH(e, 4)
            out[i][j] = __builtin_fmaf(left[i][e], right[j][e], out[i][j]);
    }
  }

  /// sum[i][j] += row(i) of the values, which go through `weights`, times column width(j) of b.
  static INLINE_OF void accumulate(float (&sum)[rows][widths], const float (&values)[rows][columns], float *weights, const float *b) {
    meetInWarp();
    EACH(i, rows)
      EACH(j, columns)
        weights[row(i) * weightPitch + column(j)] = values[i][j];
    meetInWarp();
#pragma unroll 2
    for (int k = 0; k < T; k += 4) {
      Four left[rows];
      EACH(i, rows)
        left[i] = *(const Four *)(weights + row(i) * weightPitch + k);
      EACH(e, 4)
        EACH(chunk, widths / 4) {
          Four right = *(const Four *)(b + (k + e) * pitch + width(4 * chunk));
          EACH(i, rows)
            EACH(f, 4)
              sum[i][4 * chunk + f] = __builtin_fmaf(left[i][e], right[f], sum[i][4 * chunk + f]);
        }
    }
  }
};

#ifndef MSC_EMULATED
/// Whatever depends on this number is computed behind here: else loops keep it in registers for masks that most have not.
#define KEEP_HERE(number) asm volatile("" : "+l"(number))
#else
#define KEEP_HERE(number) (void)0
#endif

// Copies of 16 bytes into shared memory that go on while a thread computes, in groups.
#ifndef MSC_EMULATED
INLINE unsigned sharedAddress(const void *data) { return unsigned(uint64((const __attribute__((address_space(3))) void *)data)); }
/// Zero unless `isThere`.
INLINE void startCopy(void *target, const void *source, bool isThere) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(sharedAddress(target)), "l"((const __attribute__((address_space(1))) void *)source), "r"(isThere ? 16 : 0)
               : "memory");
}
/// All copies that this thread has started.
INLINE void awaitCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
INLINE void startCopy(void *target, const void *source, bool isThere) {
  *(Words *)target = isThere ? *(const Words *)source : Words(0);
}
INLINE void awaitCopies() {}
#endif

// What PTX has for tensor cores. In emulation (MSC_EMULATED) threads of a warp exchange their parts through memory.
#ifndef MSC_EMULATED
/// Four 8 x 8 matrices of 16-bit numbers, lane l names row l % 8 of matrix l / 8; it gets the elements 2 (l % 4) and the next of row l / 4
/// of each.
template <typename Number> INLINE void loadMatrices(unsigned (&out)[4], const Number *row) {
  unsigned address = sharedAddress(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}
/// The same of the transposed matrices.
template <typename Number> INLINE void loadTransposed(unsigned (&out)[4], const Number *row) {
  unsigned address = sharedAddress(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}
#define MSC_MULTIPLY(Number, TYPE)                                                                                             \
  INLINE void multiplyMatrices(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0, unsigned b1,   \
                               const Number *) {                                                                               \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "   \
                 "{%0, %1, %2, %3};"                                                                                           \
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                              \
  }
MSC_MULTIPLY(Brain, "bf16")
MSC_MULTIPLY(Half, "f16")
/// Two numbers, rounded to nearest, ties to even.
INLINE unsigned packed(float low, float high, const Brain *) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
INLINE unsigned packed(float low, float high, const Half *) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
/// 2^x within 2^-16 where it is at least 2^-24: for weights that are rounded to 11 bits.
INLINE float roughPower(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
#else
INLINE float roughPower(float x) { return exponential(x * 0.69314718f); }
SHARED uint64 places[256];
SHARED unsigned fragments[256][6];

template <typename Number> INLINE Number *warpsRows(Number *row, int matrix, int of) {
  __nvvm_bar_warp_sync(0xffffffff);
  places[threadOf()] = uint64(row);
  __nvvm_bar_warp_sync(0xffffffff);
  return (Number *)places[threadOf() / 32 * 32 + 8 * matrix + of];
}
INLINE unsigned packed(unsigned short low, unsigned short high) { return low | unsigned(high) << 16; }
template <typename Number> INLINE unsigned packed(float low, float high, const Number *) {
  Number pair[2];
  assign(pair[0], low), assign(pair[1], high);
  return packed(pair[0].bits, pair[1].bits);
}
template <typename Number> INLINE void loadMatrices(unsigned (&out)[4], const Number *row) {
  int lane = threadOf() % 32;
  EACH(m, 4) {
    const Number *from = warpsRows(row, m, lane / 4) + lane % 4 * 2;
    out[m] = packed(from[0].bits, from[1].bits);
  }
}
template <typename Number> INLINE void loadTransposed(unsigned (&out)[4], const Number *row) {
  int lane = threadOf() % 32;
  EACH(m, 4) {
    const Number *first = warpsRows(row, m, lane % 4 * 2), *second = warpsRows(row, m, lane % 4 * 2 + 1);
    out[m] = packed(first[lane / 4].bits, second[lane / 4].bits);
  }
}
template <typename Number> DEVICE float partOf(int lane, int word, int high) {
  return numberOf(Number{static_cast<unsigned short>(fragments[threadOf() / 32 * 32 + lane][word] >> 16 * high)});
}
template <typename Number>
INLINE void multiplyMatrices(float &c0, float &c1, float &c2, float &c3, const unsigned (&a)[4], unsigned b0, unsigned b1,
                             const Number *) {
  __nvvm_bar_warp_sync(0xffffffff);
  EACH(i, 4)
    fragments[threadOf()][i] = a[i];
  fragments[threadOf()][4] = b0, fragments[threadOf()][5] = b1;
  __nvvm_bar_warp_sync(0xffffffff);
  int lane = threadOf() % 32, group = lane / 4, pair = lane % 4 * 2;
  float *sums[4] = {&c0, &c1, &c2, &c3};
  for (int k = 0; k < 16; ++k)
    EACH(c, 4)
      *sums[c] += partOf<Number>(group * 4 + k % 8 / 2, k / 8 * 2 + c / 2, k % 2) *
                  partOf<Number>((pair + c % 2) * 4 + k % 8 / 2, 4 + k / 8, k % 2);
}
#endif

/// The same by four warps on tensor cores, each with `M` times 16 rows against `Step` columns: of every 8 columns a thread has two, in
/// two rows of each 16. A warp that has more rows reads less of the other side from shared memory per product. Scores become
/// operands of the next product where they are, in registers.
template <typename Element, int D, int M, int Step> struct Tensor {
  using Number = Element;
  static constexpr int side = 64 * M, across = 64, step = Step, depth = D, threads = 128, rows = 2 * M, columns = Step / 4, widths = D / 4;
  static constexpr int pitch = D + 8, lanesOfRow = 4, blocks = 2, weightsHeld = 0;
  static INLINE_OF int lane() { return threadOf() % 32; }
  static INLINE_OF int row(int i) { return threadOf() / 32 * 16 * M + i / 2 * 16 + lane() / 4 + i % 2 * 8; }
  static INLINE_OF int column(int j) { return j / 2 * 8 + lane() % 4 * 2 + j % 2; }
  static INLINE_OF int width(int j) { return column(j); }

  static INLINE_OF float weight(float score, float factor, float base) {
    return roughPower(__builtin_fmaf(score, factor, -base) * 0x1.715476p0f); // log2 e: the difference first, masks may add the lowest number
  }

  static INLINE_OF void multiply(float (&out)[rows][columns], const Number *a, const Number *b) {
    EACH(i, rows)
      EACH(j, columns)
        out[i][j] = 0;
    EACH(k, D / 16) {
      unsigned left[M][4];
      EACH(m, M)
        loadMatrices(left[m], a + ((threadOf() / 32 * M + m) * 16 + lane() % 16) * pitch + 16 * k + lane() / 16 * 8);
      EACH(j, columns / 4) {
        unsigned right[4];
        loadMatrices(right, b + (16 * j + lane() % 8 + lane() / 16 * 8) * pitch + 16 * k + lane() / 8 % 2 * 8);
        EACH(m, M)
          addBoth(out, m, 4 * j, left[m], right);
      }
    }
  }

  static INLINE_OF void accumulate(float (&sum)[rows][widths], const float (&values)[rows][columns], Number *, const Number *b) {
    const Number *type = nullptr;
    EACH(k, step / 16) {
      unsigned left[M][4];
      EACH(m, M)
        EACH(part, 4) {
          const float *pair = &values[2 * m + part % 2][4 * k + part / 2 * 2];
          left[m][part] = packed(pair[0], pair[1], type);
        }
      EACH(j, widths / 4) {
        unsigned right[4];
        loadTransposed(right, b + (16 * k + lane() % 16) * pitch + 16 * j + lane() / 16 * 8);
        EACH(m, M)
          addBoth(sum, m, 4 * j, left[m], right);
      }
    }
  }

private:
  /// 16 rows and 16 columns, from element j of the thread on.
  template <int N> static INLINE_OF void addBoth(float (&sum)[rows][N], int m, int j, const unsigned (&left)[4], const unsigned (&right)[4]) {
    const Number *type = nullptr;
    float(&upper)[N] = sum[2 * m], (&lower)[N] = sum[2 * m + 1];
    multiplyMatrices(upper[j], upper[j + 1], lower[j], lower[j + 1], left, right[0], right[1], type);
    multiplyMatrices(upper[j + 2], upper[j + 3], lower[j + 2], lower[j + 3], left, right[2], right[3], type);
  }
};

/// 16 bytes of elements, or zeros, into a tile.
template <typename Number> INLINE void bring(Number *target, const Number *source, bool isThere) { startCopy(target, source, isThere); }
INLINE void bring(float *target, const float *source, bool isThere) { startCopy(target, source, isThere); }
template <typename Element> INLINE void bring(float *target, const Element *source, bool isThere) {
  Words words = isThere ? *(const Words *)source : Words(0);
  EACH(i, 4) {
    target[2 * i] = numberOf(Element{static_cast<unsigned short>(words[i])});
    target[2 * i + 1] = numberOf(Element{static_cast<unsigned short>(words[i] >> 16)});
  }
}

/// Starts to bring up to `Rows` rows of `size` elements into a tile; zero behind them. Memory and heads begin at multiples of 16 bytes
/// where `size` elements are such a multiple.
template <typename P, int Rows, typename Element>
INLINE void load(typename P::Number *tile, const Element *from, int64 stride, int64 valid, int64 size) {
  constexpr int group = 16 / sizeof(Element), groups = P::depth / group, apart = P::threads / groups;
  static_assert(P::threads % groups == 0 && Rows % apart == 0, "a thread has one column");
  int rows = clamp(valid, Rows), columns = int(size);
  if (columns % group == 0) {
    int first = threadOf() / groups, column = threadOf() % groups * group;
    if (column >= columns)
      rows = 0;
    const Element *source = from + first * stride + column;
    stride *= apart;
#pragma unroll 4
    for (int n = 0; n < Rows / apart; ++n, source += stride) {
      int row = first + n * apart;
      bring(tile + row * P::pitch + column, row < rows ? source : from, row < rows);
    }
    return;
  }
#pragma unroll 1
  for (int at = threadOf(); at < Rows * P::depth; at += P::threads) {
    int row = at / P::depth, column = at % P::depth;
    Element none = {};
    assign(tile[row * P::pitch + column], numberOf(row < rows && column < columns ? from[row * stride + column] : none));
  }
}
/// What was brought is there for all threads of the block, and nobody reads what comes next.
INLINE void meet() {
  awaitCopies();
  __syncthreads();
}

/// The sum, or the largest, over the lanes that have a row together.
template <typename P> INLINE float sumOfRow(float value) {
  for (int mask = 1; mask < P::lanesOfRow; mask *= 2)
    value += across(value, mask);
  return value;
}
template <typename P> INLINE float largestOfRow(float value) {
  for (int mask = 1; mask < P::lanesOfRow; mask *= 2) {
    float other = across(value, mask);
    value = other > value ? other : value;
  }
  return value;
}

/// A head of an item of the batch.
struct Head {
  int64 batch, head, wide, narrow; ///< elements from one query, and from one key, to the next
  DEVICE_OF Head(const Attention *a, int64 batch, int64 head)
      : batch(batch), head(head), wide(a->heads * a->size), narrow(a->keyHeads * a->size) {}
  DEVICE_OF int64 query(const Attention *a, int64 row) const { return (batch * a->queries + row) * wide + head * a->size; }
  DEVICE_OF int64 key(const Attention *a, int64 row) const {
    return (batch * a->keys + row) * narrow + head / (a->heads / a->keyHeads) * a->size;
  }
  DEVICE_OF int64 log(const Attention *a, int64 row) const { return (batch * a->heads + head) * a->queries + row; }
};

/// By what products of queries and keys are scaled when they become weights; 1 where they are scaled before: a mask is added to what is
/// scaled, and the largest must stay so.
INLINE float factorOf(const Attention *a) {
  float scale = float(a->scale);
  return a->mask == 2 || !(scale > 0) ? 1 : scale;
}

/// Products of a tile become scores: -inf where the query does not attend to the key. Rows are queries, or keys.
template <typename P, bool RowsAreKeys>
INLINE void score(const Attention *a, const Head &head, const void *mask, float (&scores)[P::rows][P::columns], int64 firstQuery,
                  int64 firstKey) {
  if (float scale = float(a->scale); factorOf(a) != scale)
    EACH(i, P::rows)
      EACH(j, P::columns)
        scores[i][j] *= scale;
  // Rows that are not there meet zeros, and nothing is stored for them.
  int64 lastColumn = RowsAreKeys ? a->queries - firstQuery : a->keys - firstKey;
  int64 ahead = a->firstQuery + firstQuery - firstKey; // of the first query, in keys
  if (lastColumn < P::step || (a->causal && ahead < (RowsAreKeys ? P::side : P::step) - 1))
    EACH(i, P::rows) {
      int low = a->causal && RowsAreKeys ? clamp(P::row(i) - ahead, P::step) : 0, high = clamp(lastColumn, P::step);
      if (a->causal && !RowsAreKeys)
        high = clamp(lastColumn < P::row(i) + ahead + 1 ? lastColumn : P::row(i) + ahead + 1, P::step);
      EACH(j, P::columns)
        scores[i][j] = P::column(j) >= low && P::column(j) < high ? scores[i][j] : -infinity();
    }
  if (a->mask == 0)
    return;
  int64 first = head.batch * a->maskBatch + head.head * a->maskHead + firstQuery * a->maskQuery + firstKey * a->maskKey;
  int64 byRow = RowsAreKeys ? a->maskKey : a->maskQuery, byColumn = RowsAreKeys ? a->maskQuery : a->maskKey;
  int rows = clamp(RowsAreKeys ? a->keys - firstKey : a->queries - firstQuery, P::side);
  KEEP_HERE(byRow);
  KEEP_HERE(byColumn);
  EACH(i, P::rows)
    EACH(j, P::columns) {
      int64 place = first + P::row(i) * byRow + P::column(j) * byColumn;
      if (P::row(i) >= rows || scores[i][j] == -infinity())
        continue;
      if (a->mask == 2)
        scores[i][j] += ((const float *)mask)[place];
      else if (!((const unsigned char *)mask)[place])
        scores[i][j] = -infinity();
    }
}

/// Shared memory: tiles of own rows, two pairs of tiles of the other side, weights, and numbers of queries.
template <typename P> INLINE typename P::Number *ownTile(int number) { return (typename P::Number *)tiles + number * P::side * P::pitch; }
template <typename P, int Owns> INLINE typename P::Number *otherTile(int number) {
  return ownTile<P>(Owns) + number * P::across * P::pitch;
}

/// sum[i][j] times factor, as rows of `size` elements.
template <typename P, typename Element>
INLINE void storeRows(Element *out, int64 stride, int64 valid, int64 size, const float (&sum)[P::rows][P::widths],
                      const float (&factor)[P::rows]) {
  EACH(i, P::rows)
    EACH(j, P::widths)
      if (P::row(i) < valid && P::width(j) < size)
        assign(out[P::row(i) * stride + P::width(j)], sum[i][j] * factor[i]);
}

/// The keys that queries of a tile see: [0, end).
template <typename P> INLINE int64 lastKey(const Attention *a, int64 first) {
  int64 end = a->firstQuery + first + P::side;
  return a->causal && end < a->keys ? end : a->keys;
}

/// A tile of keys and one of values, of which the next pair comes while this one is used.
template <typename P, int Owns, typename Element>
INLINE void loadPair(int pair, const Attention *a, const Head &head, const Element *key, const Element *value, int64 start) {
  load<P, P::across>(otherTile<P, Owns>(pair), key + head.key(a, start), head.narrow, a->keys - start, a->size);
  load<P, P::across>(otherTile<P, Owns>(pair + 1), value + head.key(a, start), head.narrow, a->keys - start, a->size);
}

/// Blocks compute `side` queries of one head at a time, the ones that see most keys first.
template <typename P, typename Element>
INLINE void attend(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask, Element *out,
                   float *logs, int64 count) {
  typename P::Number *queries = ownTile<P>(0), *weights = otherTile<P, 1>(4);
  int64 parts = (a->queries + P::side - 1) / P::side, heads = count / parts;
  const float factor = factorOf(a);
#pragma unroll 1
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 first = (parts - 1 - item / heads) * P::side, end = lastKey<P>(a, first);
    Head head(a, item % heads / a->heads, item % heads % a->heads);
    load<P, P::side>(queries, query + head.query(a, first), head.wide, a->queries - first, a->size);
    loadPair<P, 1>(0, a, head, key, value, 0);
    float largest[P::rows], total[P::rows], sum[P::rows][P::widths]; // `total`: of the columns of this thread
    EACH(i, P::rows) {
      largest[i] = -infinity(), total[i] = 0;
      EACH(j, P::widths)
        sum[i][j] = 0;
    }
    meet();
    int pair = 0;
#pragma unroll 1
    for (int64 start = 0; start < end; start += P::across, pair = 2 - pair) {
      if (start + P::across < end)
        loadPair<P, 1>(2 - pair, a, head, key, value, start + P::across);
#pragma unroll 1
      for (int part = 0; part < P::across; part += P::step) {
        float scores[P::rows][P::columns];
        P::multiply(scores, queries, otherTile<P, 1>(pair) + part * P::pitch);
        score<P, false>(a, head, mask, scores, first, start + part);
        EACH(i, P::rows) {
          float most = largest[i];
          EACH(j, P::columns)
            most = scores[i][j] > most ? scores[i][j] : most;
          most = largestOfRow<P>(most);
          float base = most == -infinity() ? 0 : most * factor, shrink = P::weight(largest[i], factor, base), added = 0;
          EACH(j, P::columns) {
            scores[i][j] = P::weight(scores[i][j], factor, base);
            added += scores[i][j];
          }
          total[i] = __builtin_fmaf(total[i], shrink, added);
          EACH(j, P::widths)
            sum[i][j] *= shrink;
          largest[i] = most;
        }
        P::accumulate(sum, scores, weights, otherTile<P, 1>(pair + 1) + part * P::pitch);
      }
      meet();
    }
    float share[P::rows];
    EACH(i, P::rows) {
      float all = sumOfRow<P>(total[i]);
      share[i] = all > 0 ? 1 / all : all == 0 ? 0 : all;
      if (P::column(0) == 0 && first + P::row(i) < a->queries)
        logs[head.log(a, first + P::row(i))] = all == 0 ? -infinity() : __builtin_fmaf(largest[i], factor, logarithm(all));
    }
    storeRows<P>(out + head.query(a, first), head.wide, a->queries - first, a->size, sum, share);
  }
}

/// What weights are relative to; where no key is seen all scores are -inf, and weights 0.
INLINE float baseOf(float log) { return log == -infinity() ? 0 : log; }

/// The sum of products of a row of the gradients, in a tile, and of outputs, over the lanes of that row.
template <typename P, typename Element>
INLINE float underRow(const typename P::Number *slopes, const Element *out, int row, int64 size) {
  constexpr int group = 16 / sizeof(Element);
  float sum = 0;
  if (size % group == 0) { // 16 bytes at a time
#pragma unroll 4
    for (int j = threadOf() % P::lanesOfRow * group; j < int(size); j += P::lanesOfRow * group) {
      alignas(16) Element some[group];
      *(Words *)some = *(const Words *)(out + j);
      EACH(e, group)
        sum = __builtin_fmaf(numberOf(slopes[row * P::pitch + j + e]), numberOf(some[e]), sum);
    }
    return sumOfRow<P>(sum);
  }
#pragma unroll 8
  for (int j = threadOf() % P::lanesOfRow; j < int(size); j += P::lanesOfRow)
    sum = __builtin_fmaf(numberOf(slopes[row * P::pitch + j]), numberOf(out[j]), sum);
  return sumOfRow<P>(sum);
}

/// The gradient of queries: blocks as above. `unders` gets, for each, the sum over all keys of weights times gradients of weights.
template <typename P, typename Element>
INLINE void attendQueries(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask,
                          const Element *out, const float *logs, const Element *dout, Element *dquery, float *unders, int64 count) {
  typename P::Number *queries = ownTile<P>(0), *slopes = ownTile<P>(1), *weights = otherTile<P, 2>(4);
  int64 parts = (a->queries + P::side - 1) / P::side, heads = count / parts;
  const float factor = factorOf(a);
#pragma unroll 1
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 first = (parts - 1 - item / heads) * P::side, valid = a->queries - first, end = lastKey<P>(a, first);
    Head head(a, item % heads / a->heads, item % heads % a->heads);
    load<P, P::side>(queries, query + head.query(a, first), head.wide, valid, a->size);
    load<P, P::side>(slopes, dout + head.query(a, first), head.wide, valid, a->size);
    loadPair<P, 2>(0, a, head, key, value, 0);
    meet();
    float base[P::rows], under[P::rows], scale[P::rows], sum[P::rows][P::widths];
    EACH(i, P::rows) {
      int64 row = P::row(i) < valid ? P::row(i) : 0, place = head.log(a, first + row);
      base[i] = baseOf(logs[place]), scale[i] = float(a->scale);
      under[i] = underRow<P>(slopes, out + head.query(a, first + row), int(row), a->size);
      if (P::column(0) == 0 && P::row(i) < valid)
        unders[place] = under[i];
      EACH(j, P::widths)
        sum[i][j] = 0;
    }
    int pair = 0;
#pragma unroll 1
    for (int64 start = 0; start < end; start += P::across, pair = 2 - pair) {
      if (start + P::across < end)
        loadPair<P, 2>(2 - pair, a, head, key, value, start + P::across);
#pragma unroll 1
      for (int part = 0; part < P::across; part += P::step) {
        float scores[P::rows][P::columns], gradients[P::rows][P::columns];
        P::multiply(scores, queries, otherTile<P, 2>(pair) + part * P::pitch);
        P::multiply(gradients, slopes, otherTile<P, 2>(pair + 1) + part * P::pitch);
        score<P, false>(a, head, mask, scores, first, start + part);
        EACH(i, P::rows)
          EACH(j, P::columns)
            scores[i][j] = P::weight(scores[i][j], factor, base[i]) * (gradients[i][j] - under[i]);
        P::accumulate(sum, scores, weights, otherTile<P, 2>(pair) + part * P::pitch);
      }
      meet();
    }
    storeRows<P>(dquery + head.query(a, first), head.wide, valid, a->size, sum, scale);
  }
}

/// The queries of one head that a tile of keys meets next.
template <typename P, typename Element> struct Passage {
  const Attention *a;
  const Element *query, *dout;
  const float *logs, *unders;
  float *numbers; ///< in shared memory: of both passages, what weights are relative to and `unders`

  INLINE_OF void load(const Head &head, int64 start, int pair) const {
    ::load<P, P::across>(otherTile<P, 2>(pair), query + head.query(a, start), head.wide, a->queries - start, a->size);
    ::load<P, P::across>(otherTile<P, 2>(pair + 1), dout + head.query(a, start), head.wide, a->queries - start, a->size);
    for (int at = threadOf(); at < 2 * P::across; at += P::threads) {
      int64 row = start + at % P::across < a->queries ? start + at % P::across : start, place = head.log(a, row);
      numbersOf(pair)[at] = at < P::across ? baseOf(logs[place]) : unders[place];
    }
  }
  INLINE_OF float *numbersOf(int pair) const { return numbers + pair * P::across; }
};

/// The gradients of keys and values: blocks compute `side` keys at a time, over the queries of all heads that share them. Rows of scores
/// are keys here.
template <typename P, typename Element>
INLINE void attendKeys(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask,
                       const float *logs, const Element *dout, const float *unders, Element *dkey, Element *dvalue, int64 count) {
  typename P::Number *keys = ownTile<P>(0), *values = ownTile<P>(1), *weights = otherTile<P, 2>(4);
  Passage<P, Element> passage{a, query, dout, logs, unders, (float *)(weights + P::weightsHeld)};
  int64 parts = (a->keys + P::side - 1) / P::side, shared = count / parts, group = a->heads / a->keyHeads;
  const float factor = factorOf(a);
#pragma unroll 1
  for (int64 item = __nvvm_read_ptx_sreg_ctaid_x(); item < count; item += __nvvm_read_ptx_sreg_nctaid_x()) {
    int64 first = item / shared * P::side, batch = item % shared / a->keyHeads, one = item % shared % a->keyHeads;
    int64 begin = a->causal && first > a->firstQuery ? (first - a->firstQuery) / P::across * P::across : 0;
    Head own(a, batch, one * group);
    load<P, P::side>(keys, key + own.key(a, first), own.narrow, a->keys - first, a->size);
    load<P, P::side>(values, value + own.key(a, first), own.narrow, a->keys - first, a->size);
    if (begin < a->queries)
      passage.load(own, begin, 0);
    float keySum[P::rows][P::widths], valueSum[P::rows][P::widths], keyFactor[P::rows], valueFactor[P::rows];
    EACH(i, P::rows) {
      keyFactor[i] = float(a->scale), valueFactor[i] = 1;
      EACH(j, P::widths)
        keySum[i][j] = 0, valueSum[i][j] = 0;
    }
    meet();
    int pair = 0;
    int64 number = one * group, start = begin;
#pragma unroll 1
    while (start < a->queries && number < (one + 1) * group) {
      Head head(a, batch, number);
      int64 here = start;
      start += P::across;
      if (start >= a->queries)
        start = begin, ++number;
      if (number < (one + 1) * group)
        passage.load(Head(a, batch, number), start, 2 - pair);
#pragma unroll 1
      for (int part = 0; part < P::across; part += P::step) {
        const typename P::Number *queries = otherTile<P, 2>(pair) + part * P::pitch, *slopes = queries + P::across * P::pitch;
        const float *bases = passage.numbersOf(pair) + part, *under = bases + P::across;
        float scores[P::rows][P::columns], gradients[P::rows][P::columns];
        P::multiply(scores, keys, queries);
        P::multiply(gradients, values, slopes);
        score<P, true>(a, head, mask, scores, here + part, first);
        EACH(i, P::rows)
          EACH(j, P::columns) {
            // A query that is not a number says nothing of keys that it does not see.
            const bool isSeen = scores[i][j] != -infinity();
            scores[i][j] = isSeen ? P::weight(scores[i][j], factor, bases[P::column(j)]) : 0;
            gradients[i][j] = isSeen ? scores[i][j] * (gradients[i][j] - under[P::column(j)]) : 0;
          }
        P::accumulate(valueSum, scores, weights, slopes);
        P::accumulate(keySum, gradients, weights, queries);
      }
      meet();
      pair = 2 - pair;
    }
    storeRows<P>(dkey + own.key(a, first), own.narrow, a->keys - first, a->size, keySum, keyFactor);
    storeRows<P>(dvalue + own.key(a, first), own.narrow, a->keys - first, a->size, valueSum, valueFactor);
  }
}

// What a translation unit is for: MSC_ELEMENT, and the policies of the three kernels.
using Element = MSC_ELEMENT;
using Forward = MSC_FORWARD;
using OfQueries = MSC_OF_QUERIES;
using OfKeys = MSC_OF_KEYS;

KERNEL_OF(Forward::threads, Forward::blocks)
msc_attention(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask, Element *out,
              float *logs, int64 count) {
  attend<Forward>(a, query, key, value, mask, out, logs, count);
}
KERNEL_OF(OfQueries::threads, OfQueries::blocks)
msc_attention_queries(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask,
                      const Element *out, const float *logs, const Element *dout, Element *dquery, float *unders, int64 count) {
  attendQueries<OfQueries>(a, query, key, value, mask, out, logs, dout, dquery, unders, count);
}
KERNEL_OF(OfKeys::threads, OfKeys::blocks)
msc_attention_keys(const Attention *a, const Element *query, const Element *key, const Element *value, const void *mask,
                   const float *logs, const Element *dout, const float *unders, Element *dkey, Element *dvalue, int64 count) {
  attendKeys<OfKeys>(a, query, key, value, mask, logs, dout, unders, dkey, dvalue, count);
}
