// Moving boxes of elements between strided and dense memory.
#pragma once

#include "runtime/comm/Communicator.h"

#include <cstddef>

namespace msc::comm {

/// Buffers of at least this many bytes are written past the caches: they would only evict what is needed next.
constexpr int64_t kStreamBytes = int64_t{8} << 20;

/// memcpy that takes null pointers to nothing; with `stream` past the caches. Call streamFence() before telling others that
/// streamed data is there.
void copyBytes(void *target, const void *source, size_t bytes, bool stream = false);
void streamFence();

/// Copies `source` (a region of `from`) to `target` (a region of `to`) of equal sizes; elements of `size` bytes.
void copyRegion(void *to, const Region &target, const void *from, const Region &source, size_t size, bool stream);

/// copyRegion for elements [begin, end) of both regions in row-major order.
void copyPart(void *to, const Region &target, const void *from, const Region &source, int64_t begin, int64_t end,
              size_t size, bool stream);

/// Elements [begin, end) of a region in row-major order, to a dense buffer.
void packRegion(void *dense, const void *from, const Region &region, int64_t begin, int64_t end, size_t size);
/// The reverse of packRegion.
void unpackRegion(void *to, const Region &region, const void *dense, int64_t begin, int64_t end, size_t size);

/// Elements [begin, end) of a region as dense memory: a pointer into `from` where they are contiguous, else into
/// `scratch`, which has room for them.
const void *viewRegion(const void *from, const Region &region, int64_t begin, int64_t end, size_t size, void *scratch);

/// True if the elements of the region follow each other without gaps.
bool isContiguous(const Region &region);

} // namespace msc::comm
