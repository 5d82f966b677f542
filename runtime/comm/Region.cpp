#include "runtime/comm/Region.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <emmintrin.h>
#include <utility>

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

/// The elements of the two innermost dimensions of a region; offset and strides in elements. Their sizes are those of the walker.
struct Plane {
  int64_t offset = 0, rowStride = 0, stride = 1;
  Plane at(int64_t row, int64_t column) const { return {offset + row * rowStride + column * stride, rowStride, stride}; }
};

/// `rows` runs of Bytes bytes each; steps in bytes. The number is known to the compiler: a move without a call or a branch.
template <size_t Bytes> void copyRuns(char *to, int64_t toStep, const char *from, int64_t fromStep, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    memcpy(to + i * toStep, from + i * fromStep, Bytes);
}

template <typename T>
void copyElements(T *to, Plane target, const T *from, Plane source, int64_t rows, int64_t count) {
  if (rows > count) { // the longer loop inside
    std::swap(rows, count);
    std::swap(target.rowStride, target.stride);
    std::swap(source.rowStride, source.stride);
  }
  for (int64_t r = 0; r < rows; ++r, to += target.rowStride, from += source.rowStride)
    for (int64_t i = 0; i < count; ++i)
      to[i * target.stride] = from[i * source.stride];
}

/// `rows` rows of `count` elements of `size` bytes.
void copyRows(char *to, Plane target, const char *from, Plane source, int64_t rows, int64_t count, size_t size, bool stream) {
  if (rows <= 0 || count <= 0)
    return;
  to += target.offset * static_cast<int64_t>(size);
  from += source.offset * static_cast<int64_t>(size);
  if (target.stride == 1 && source.stride == 1) {
    if (rows == 1 || (target.rowStride == count && source.rowStride == count))
      return copyBytes(to, from, rows * count * size, stream);
    int64_t toStep = target.rowStride * static_cast<int64_t>(size), fromStep = source.rowStride * static_cast<int64_t>(size);
    switch (count * size) {
    case 1: return copyRuns<1>(to, toStep, from, fromStep, rows);
    case 2: return copyRuns<2>(to, toStep, from, fromStep, rows);
    case 4: return copyRuns<4>(to, toStep, from, fromStep, rows);
    case 8: return copyRuns<8>(to, toStep, from, fromStep, rows);
    case 12: return copyRuns<12>(to, toStep, from, fromStep, rows);
    case 16: return copyRuns<16>(to, toStep, from, fromStep, rows);
    case 24: return copyRuns<24>(to, toStep, from, fromStep, rows);
    case 32: return copyRuns<32>(to, toStep, from, fromStep, rows);
    case 64: return copyRuns<64>(to, toStep, from, fromStep, rows);
    case 128: return copyRuns<128>(to, toStep, from, fromStep, rows);
    default:
      for (int64_t i = 0; i < rows; ++i)
        copyBytes(to + i * toStep, from + i * fromStep, count * size, stream);
      return;
    }
  }
  auto elements = [&]<typename T>(T) {
    copyElements(reinterpret_cast<T *>(to), target, reinterpret_cast<const T *>(from), source, rows, count);
  };
  switch (size) {
  case 1: return elements(uint8_t{});
  case 2: return elements(uint16_t{});
  case 4: return elements(uint32_t{});
  default: return elements(uint64_t{});
  }
}

/// Elements [first, last) of a plane whose rows have `count` elements: the end of a row, whole rows, the start of one.
void copyPlane(char *to, const Plane &target, const char *from, const Plane &source, int64_t count, int64_t first, int64_t last,
               size_t size, bool stream) {
  while (first < last) {
    int64_t row = first / count, column = first % count;
    int64_t rows = column ? 0 : (last - first) / count;
    int64_t moved = rows ? rows * count : std::min(count - column, last - first);
    copyRows(to, target.at(row, column), from, source.at(row, column), rows ? rows : 1, rows ? count : moved, size, stream);
    first += moved;
  }
}

/// Walks the planes of a region from a given element on.
class PlaneWalker {
public:
  PlaneWalker(const Region &region, int64_t begin) : region(region), outer(region.sizes.size()) {
    plane.offset = region.offset;
    if (outer) {
      count = region.sizes[--outer];
      plane.stride = region.strides[outer];
    }
    if (outer) {
      rows = region.sizes[--outer];
      plane.rowStride = region.strides[outer];
    }
    assert(outer <= index.size());
    within = begin % (rows * count);
    int64_t at = begin / (rows * count);
    for (size_t d = outer; d-- > 0;) {
      index[d] = at % region.sizes[d];
      at /= region.sizes[d];
      plane.offset += index[d] * region.strides[d];
    }
  }
  int64_t left() const { return rows * count - within; }
  void next() {
    within = 0;
    for (size_t d = outer; d-- > 0;) {
      plane.offset += region.strides[d];
      if (++index[d] < region.sizes[d])
        return;
      plane.offset -= index[d] * region.strides[d];
      index[d] = 0;
    }
  }

  Plane plane;
  int64_t rows = 1, count = 1;
  int64_t within = 0; ///< the current element, counted in the plane

private:
  const Region &region;
  size_t outer;
  std::array<int64_t, 32> index; ///< no allocation in a step; plans hold at most 32 dimensions
};

/// Calls move(walker, elements, first), plane by plane; `first` counts from `begin`. An empty range needs no walker.
template <typename Move> void forPlanes(const Region &region, int64_t begin, int64_t end, Move move) {
  if (begin >= end)
    return;
  PlaneWalker walker(region, begin);
  for (int64_t at = begin; at < end; walker.next()) {
    int64_t elements = std::min(walker.left(), end - at);
    move(walker, elements, at - begin);
    at += elements;
  }
}

/// The plane of `walker` in dense memory, where its current element is the one at `at`.
Plane densePlane(const PlaneWalker &walker, int64_t at) { return {at - walker.within, walker.count, 1}; }

} // namespace

void copyPart(void *to, const Region &target, const void *from, const Region &source, int64_t begin, int64_t end,
              size_t size, bool stream) {
  if (begin >= end)
    return;
  PlaneWalker b(target, begin);
  forPlanes(source, begin, end, [&](const PlaneWalker &a, int64_t elements, int64_t) {
    copyPlane(static_cast<char *>(to), b.plane, static_cast<const char *>(from), a.plane, a.count, a.within, a.within + elements,
              size, stream);
    b.next();
  });
}

void copyRegion(void *to, const Region &target, const void *from, const Region &source, size_t size, bool stream) {
  copyPart(to, target, from, source, 0, source.count(), size, stream);
}

void packRegion(void *dense, const void *from, const Region &region, int64_t begin, int64_t end, size_t size) {
  forPlanes(region, begin, end, [&](const PlaneWalker &walker, int64_t elements, int64_t at) {
    copyPlane(static_cast<char *>(dense), densePlane(walker, at), static_cast<const char *>(from), walker.plane, walker.count,
              walker.within, walker.within + elements, size, false);
  });
}

void unpackRegion(void *to, const Region &region, const void *dense, int64_t begin, int64_t end, size_t size) {
  forPlanes(region, begin, end, [&](const PlaneWalker &walker, int64_t elements, int64_t at) {
    copyPlane(static_cast<char *>(to), walker.plane, static_cast<const char *>(dense), densePlane(walker, at), walker.count,
              walker.within, walker.within + elements, size, false);
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
  PlaneWalker walker(region, begin);
  int64_t row = walker.within / walker.count, column = walker.within % walker.count;
  if (walker.plane.stride == 1 && walker.count - column >= end - begin)
    return static_cast<const char *>(from) + walker.plane.at(row, column).offset * static_cast<int64_t>(size);
  packRegion(scratch, from, region, begin, end, size);
  return scratch;
}

} // namespace msc::comm
