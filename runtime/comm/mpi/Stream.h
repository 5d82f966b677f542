// The transfers to or from one member, seen as one stream of bytes: all their elements, one transfer after the other.
#pragma once

#include "runtime/comm/Region.h"

#include <algorithm>

namespace msc::comm {

/// Calls `move(transfer, firstElement, endElement, byteInStream)` for what bytes [begin, end) of the stream with `peer` hold.
template <typename Move>
void forStream(const std::vector<Transfer> &transfers, int peer, int64_t begin, int64_t end, int64_t size, Move move) {
  int64_t at = 0;
  for (const Transfer &transfer : transfers) {
    if (transfer.peer != peer)
      continue;
    int64_t bytes = transfer.source.count() * size;
    int64_t first = std::max(begin, at), last = std::min(end, at + bytes);
    if (first < last)
      move(transfer, (first - at) / size, (last - at) / size, first);
    at += bytes;
  }
}

/// Bytes [begin, end) of what is sent to `peer`, to dense memory.
inline void packStream(void *dense, const void *source, const std::vector<Transfer> &sends, int peer, int64_t begin,
                       int64_t end, int64_t size) {
  forStream(sends, peer, begin, end, size, [&](const Transfer &transfer, int64_t first, int64_t last, int64_t at) {
    packRegion(static_cast<char *>(dense) + (at - begin), source, transfer.source, first, last, size);
  });
}

/// Bytes [begin, end) of what comes from `peer`, to their places.
inline void unpackStream(void *target, const std::vector<Transfer> &receives, int peer, const void *dense,
                         int64_t begin, int64_t end, int64_t size) {
  forStream(receives, peer, begin, end, size, [&](const Transfer &transfer, int64_t first, int64_t last, int64_t at) {
    unpackRegion(target, transfer.target, static_cast<const char *>(dense) + (at - begin), first, last, size);
  });
}

/// The transfers of a rank with itself.
inline void copyOwn(void *target, const void *source, const ExchangePlan &plan, int own) {
  for (const Transfer &transfer : plan.receives)
    if (transfer.peer == own)
      copyRegion(target, transfer.target, source, transfer.source, elementSize(plan.type), false);
}

} // namespace msc::comm
