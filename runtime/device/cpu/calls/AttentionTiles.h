// Attention of one head by tiles of queries and keys, compiled once for each instruction set. Plain pointers only: nothing
// of the standard library may come out of a file that is compiled for a newer processor.
#pragma once

#include <cstdint>

namespace msc::device::calls {

/// Rows of queries or keys that are brought together in one tile.
constexpr int64_t kAttentionTile = 64;

/// A number of bf16.
struct NarrowElement {
  uint16_t bits = 0;
};

/// One head of one batch. Rows are `queryStride` and `keyStride` elements apart. Tensors hold `Element`, sums are of `T`.
template <typename T, typename Element = T> struct AttentionHead {
  const Element *query = nullptr, *key = nullptr, *value = nullptr;
  int64_t queryStride = 0, keyStride = 0;
  int64_t queries = 0, keys = 0, size = 0;
  int64_t firstQuery = 0; ///< number of row 0 in its sequence
  bool causal = false;
  T scale = 1;
  const T *bias = nullptr;                 ///< added to the scores; null: nothing is
  const unsigned char *attended = nullptr; ///< 0: the query does not attend to the key; null: to all
  int64_t maskQueryStep = 0, maskKeyStep = 0;
  Element *output = nullptr;     ///< written going forward, read going back
  T *logsumexp = nullptr;        ///< [queries]; likewise
  const Element *dout = nullptr; ///< like queries
  Element *dquery = nullptr, *dkey = nullptr, *dvalue = nullptr;
  T *dmask = nullptr;         ///< [queries, keys]; or [keys], the sum over queries, where the step is 0
  int64_t dmaskQueryStep = 0;
};

template <typename T, typename Element = T> struct AttentionTiles {
  using Head = AttentionHead<T, Element>;
  /// Outputs and logarithms of `rows` queries from `first` on, at most a tile.
  void (*forward)(const Head &head, int64_t first, int64_t rows, T *scratch);
  /// Gradients of `rows` queries from `first` on.
  void (*queries)(const Head &head, int64_t first, int64_t rows, T *scratch);
  /// Gradients of `rows` keys and values from `first` on, which `count` heads share.
  void (*keys)(const Head *heads, int64_t count, int64_t first, int64_t rows, T *scratch);
  /// Adds the gradients of the scores of `rows` queries from `first` on to `dmask`.
  void (*mask)(const Head &head, int64_t first, int64_t rows, T *scratch);
};

/// Numbers (of `T`) of scratch memory for heads of `size` elements.
constexpr int64_t attentionScratch(int64_t size) {
  int64_t wide = (size + 31) / 32 * 32;
  return kAttentionTile * (8 * wide + 3 * kAttentionTile + 4);
}

namespace v3 {
const AttentionTiles<float> &floatTiles();
const AttentionTiles<double> &doubleTiles();
const AttentionTiles<float, NarrowElement> &narrowTiles();
} // namespace v3
namespace v4 {
const AttentionTiles<float> &floatTiles();
const AttentionTiles<double> &doubleTiles();
const AttentionTiles<float, NarrowElement> &narrowTiles();
} // namespace v4
namespace amx {
/// For processors that multiply bf16 by tiles (NarrowProducts.h).
const AttentionTiles<float, NarrowElement> &narrowTiles();
} // namespace amx

} // namespace msc::device::calls
