#include "runtime/comm/Region.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <emmintrin.h>

namespace msc::comm {

void copyBytes(void *target, const void *source, size_t bytes, bool stream) {
  if (!stream || bytes < 256) {
    if (bytes)
      memcpy(target, source, bytes);
    return;
  }
  auto *to = static_cast<char *>(target);
  auto *from = static_cast<const char *>(source);
  size_t head = -reinterpret_cast<uintptr_t>(to) & 63;
  memcpy(to, from, head);
  size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i));
    __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i + 16));
    __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i + 32));
    __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i + 48));
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + i), a);
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + i + 16), b);
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + i + 32), c);
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + i + 48), d);
  }
  memcpy(to + i, from + i, bytes - i);
}

void streamFence() { _mm_sfence(); }

namespace {

/// One row of equal length in two places, by element size; strides in elements.
void copyRow(char *to, int64_t toStride, const char *from, int64_t fromStride, int64_t count, size_t size,
             bool stream) {
  if (toStride == 1 && fromStride == 1) {
    copyBytes(to, from, count * size, stream);
    return;
  }
  auto move = [&]<typename T>(T) {
    auto *t = reinterpret_cast<T *>(to);
    auto *f = reinterpret_cast<const T *>(from);
    for (int64_t i = 0; i < count; ++i)
      t[i * toStride] = f[i * fromStride];
  };
  switch (size) {
  case 1: return move(uint8_t{});
  case 2: return move(uint16_t{});
  case 4: return move(uint32_t{});
  default: return move(uint64_t{});
  }
}

/// Walks the rows (innermost runs) of a region from a given element on.
class RowWalker {
public:
  RowWalker(const Region &region, int64_t begin) : region(region), outer(region.sizes.size()) {
    outer = outer ? outer - 1 : 0;
    assert(outer <= index.size());
    rowSize = region.sizes.empty() ? 1 : region.sizes.back();
    stride = region.sizes.empty() ? 1 : region.strides.back();
    within = rowSize ? begin % rowSize : 0;
    int64_t row = rowSize ? begin / rowSize : 0;
    offset = region.offset;
    for (size_t d = outer; d-- > 0;) {
      index[d] = row % region.sizes[d];
      row /= region.sizes[d];
      offset += index[d] * region.strides[d];
    }
  }
  /// Offset of the current element.
  int64_t position() const { return offset + within * stride; }
  int64_t left() const { return rowSize - within; }
  void nextRow() {
    within = 0;
    for (size_t d = outer; d-- > 0;) {
      offset += region.strides[d];
      if (++index[d] < region.sizes[d])
        return;
      offset -= index[d] * region.strides[d];
      index[d] = 0;
    }
  }
  int64_t stride = 1;

private:
  const Region &region;
  size_t outer;
  std::array<int64_t, 32> index; ///< no allocation in a step; plans hold at most 32 dimensions
  int64_t rowSize = 1, within = 0, offset = 0;
};

template <typename Move> void forRows(const Region &region, int64_t begin, int64_t end, Move move) {
  if (begin >= end)
    return;
  RowWalker walker(region, begin);
  for (int64_t at = begin; at < end;) {
    int64_t count = std::min(walker.left(), end - at);
    move(walker.position(), walker.stride, at - begin, count);
    at += count;
    walker.nextRow();
  }
}

} // namespace

void copyPart(void *to, const Region &target, const void *from, const Region &source, int64_t begin, int64_t end,
              size_t size, bool stream) {
  if (begin >= end)
    return;
  RowWalker a(source, begin), b(target, begin);
  for (int64_t at = begin; at < end;) {
    int64_t count = std::min(a.left(), end - at);
    copyRow(static_cast<char *>(to) + b.position() * size, b.stride,
            static_cast<const char *>(from) + a.position() * size, a.stride, count, size, stream);
    at += count;
    a.nextRow();
    b.nextRow();
  }
}

void copyRegion(void *to, const Region &target, const void *from, const Region &source, size_t size, bool stream) {
  copyPart(to, target, from, source, 0, source.count(), size, stream);
}

void packRegion(void *dense, const void *from, const Region &region, int64_t begin, int64_t end, size_t size) {
  forRows(region, begin, end, [&](int64_t offset, int64_t stride, int64_t at, int64_t count) {
    copyRow(static_cast<char *>(dense) + at * size, 1, static_cast<const char *>(from) + offset * size, stride, count,
            size, false);
  });
}

void unpackRegion(void *to, const Region &region, const void *dense, int64_t begin, int64_t end, size_t size) {
  forRows(region, begin, end, [&](int64_t offset, int64_t stride, int64_t at, int64_t count) {
    copyRow(static_cast<char *>(to) + offset * size, stride, static_cast<const char *>(dense) + at * size, 1, count,
            size, false);
  });
}

bool isContiguous(const Region &region) {
  int64_t expected = 1;
  for (size_t d = region.sizes.size(); d-- > 0;) {
    if (region.sizes[d] != 1 && region.strides[d] != expected)
      return false;
    expected *= region.sizes[d];
  }
  return true;
}

const void *viewRegion(const void *from, const Region &region, int64_t begin, int64_t end, size_t size,
                       void *scratch) {
  if (begin >= end)
    return scratch;
  if (isContiguous(region))
    return static_cast<const char *>(from) + (region.offset + begin) * size;
  RowWalker walker(region, begin);
  if (walker.stride == 1 && walker.left() >= end - begin)
    return static_cast<const char *>(from) + walker.position() * size;
  packRegion(scratch, from, region, begin, end, size);
  return scratch;
}

} // namespace msc::comm
