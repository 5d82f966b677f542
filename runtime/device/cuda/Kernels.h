// Names and arguments of our own kernels. All arguments have 64 bits; the last one is what a thread counts up to.
#pragma once

#include <cstdint>
#include <vector>

namespace msc::device::cuda {

/// Threads of a block of every kernel in Kernels.cu.
constexpr uint32_t kernelBlock = 256;

/// The regions of a copy, as the kernel reads them in device memory.
struct CopyDescriptor {
  static constexpr int64_t mostDims = 8;
  int64_t dims = 0;
  int64_t sizes[mostDims] = {}, from[mostDims] = {}, to[mostDims] = {}; ///< strides in elements
};

/// A look-up by number: see runtime/plan/calls/Lookup.h.
struct LookupDescriptor {
  int64_t count = 0, inner = 0; ///< indices, elements of a row
  int64_t begin = 0, end = 0;   ///< rows of the table on this rank
  int64_t size = 0, offset = 0; ///< rows of the whole table; the number of row 0
  int64_t wide = 0;             ///< 1: indices are i64, else i32
  int64_t mayMiss = 0;          ///< 1: an index may number nothing
  int64_t outer = 1;            ///< rows in front of the numbered dimension
  int64_t chunk = 0;            ///< of sums: elements that a block adds up, 256 or 1024
};

/// An attention: see runtime/plan/calls/Attention.h.
struct AttentionDescriptor {
  int64_t heads = 0, keyHeads = 0, size = 0, queries = 0, keys = 0, firstQuery = 0, causal = 0;
  int64_t mask = 0;                                                ///< 0: none; 1: BOOL; 2: added to the scores
  int64_t maskBatch = 0, maskHead = 0, maskQuery = 0, maskKey = 0; ///< elements from one index to the next
  double scale = 1;
};

/// The same for kernels that go row by row. A gradient of the mask is summed over batches, or queries, that it repeats along.
struct RowAttentionDescriptor {
  int64_t batch = 0, heads = 0, keyHeads = 0, size = 0, queries = 0, keys = 0, firstQuery = 0, causal = 0, mask = 0;
  int64_t maskBatch = 0, maskHead = 0, maskQuery = 0, maskKey = 0, sumsBatch = 0, sumsQueries = 0;
  double scale = 1;
};

/// A convolution: see runtime/plan/calls/Convolution.h. Arrays are (rows, columns).
struct ConvolutionDescriptor {
  int64_t inputs = 0, outputs = 0, inputsPerGroup = 0, outputsPerGroup = 0, images = 0;
  int64_t kernel[2] = {}, stride[2] = {}, dilation[2] = {}, before[2] = {}, input[2] = {}, output[2] = {};
  int64_t heldX[2] = {}, firstX[2] = {}, heldY[2] = {}, firstY[2] = {};
};

/// A pooling: see runtime/plan/calls/PoolingPlanes.h. Behind it lie, in device memory: `rows` and `columns` of PoolingCover, and for each
/// own row and column of a gradient the begin and the end of the windows over it, all as numbers of 32 bits.
struct PoolingDescriptor {
  int64_t planes = 0;
  int32_t largeRows = 0, largeColumns = 0, smallRows = 0, smallColumns = 0; ///< planes in memory
  int32_t rows = 0, columns = 0;                                            ///< windows
  int32_t smallRow = 0, smallColumn = 0;                                    ///< the first window's place in the small plane
  int32_t ownRows = 0, ownColumns = 0, firstRow = 0, firstColumn = 0;       ///< as PoolingInset; 0 forward
  int32_t windowShift = 0, ownShift = 0; ///< so many threads, as a power of two, go along a row of windows, or of the gradient
};

/// Running sums, see runtime/plan/calls/Scan.h. Behind it lie, in device memory, the begin and the end of each part.
struct ScanDescriptor {
  int64_t length = 0, inner = 0, parts = 0, exclusive = 0, reverse = 0;
};

/// The k largest of pieces of rows. `length`: of a row in memory, which begins at element `held` of `size`; it has `ownPieces` of the
/// `pieces`, from `firstPiece` on. `sorted`: the largest first, else by their places.
struct LargestDescriptor {
  int64_t k = 0, length = 0, held = 0, size = 0, pieces = 1, firstPiece = 0, ownPieces = 1, sorted = 0;
};

/// The PTX text of Kernels.cu, for sm_80 and later.
extern const char *const kernelsPtx;
/// That of RowAttention.cu.
extern const char *const rowAttentionPtx;

/// A text with msc_attention, msc_attention_queries and msc_attention_keys: see Attention.cu.
struct AttentionKernels {
  enum Which { Forward, OfQueries, OfKeys };
  const char *type;          ///< "f32", "f16", "bf16"
  int64_t depth = 0;         ///< of heads, at most
  int64_t across = 0;        ///< keys, or queries, of a tile that a block goes over
  uint32_t numberBytes = 0;  ///< of what is kept in tiles: 2 on tensor cores
  int64_t sides[3] = {};     ///< queries, or keys, that a block of each kernel owns
  const char *ptx = nullptr;

  uint32_t threads() const { return numberBytes == 2 ? 128 : 256; } ///< of a block
  /// What a block keeps in shared memory: own tiles, two pairs of those it goes over, weights on ordinary lanes, and two numbers per
  /// query of two passages.
  uint32_t sharedBytes(Which which) const {
    const int64_t pad = 16 / numberBytes, own = which == Forward ? 1 : 2, side = sides[which];
    const int64_t numbers = (own * side + 4 * across) * (depth + pad) + (numberBytes == 4 ? side * (across + pad) : 0);
    return static_cast<uint32_t>(numbers * numberBytes + (which == OfKeys ? 4 * across * 4 : 0));
  }
};
/// All there are: of one type those for smaller heads stand first, and of one depth those with larger tiles.
extern const std::vector<AttentionKernels> attentionKernels;

} // namespace msc::device::cuda
