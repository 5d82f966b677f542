#include "dialects/dist/Lacking.h"

namespace msc::dist {

namespace {

/// What a rank wants of one dimension, and how much of it it holds.
struct Sizes {
  int64_t wanted, common;
};

template <typename Pieces> Sizes sizesAt(const Pieces &held, int64_t heldPiece, const Pieces &wanted, int64_t wantedPiece) {
  const int64_t wantedStart = wanted.startOf(wantedPiece), wantedEnd = wanted.startOf(wantedPiece + 1);
  const int64_t begin = std::max(held.startOf(heldPiece), wantedStart), end = std::min(held.startOf(heldPiece + 1), wantedEnd);
  return {wantedEnd - wantedStart, std::max<int64_t>(0, end - begin)};
}

} // namespace

const Lacking::Pieces &Lacking::findPieces(size_t dim, int64_t count) {
  for (const auto &pieces : known[dim])
    if (pieces->count == count)
      return *pieces;
  return *known[dim].emplace_back(std::make_unique<Pieces>(Pieces{count, shape[dim] / count, shape[dim] % count, {}}));
}

void Lacking::Pieces::listStarts() const {
  if (!starts.empty())
    return;
  starts.reserve(static_cast<size_t>(count) + 1);
  int64_t start = 0, over = 0; // floor(p size / count), stepwise
  for (int64_t p = 0; p <= count; ++p) {
    starts.push_back(start);
    start += smallest;
    over += rest;
    if (over >= count) {
      over -= count;
      ++start;
    }
  }
}

void Lacking::listStarts() const {
  for (size_t i = 0; i < question.count; ++i) {
    dims[i].heldPieces->listStarts();
    dims[i].wantedPieces->listStarts();
  }
}

int64_t Lacking::capacity(const AxisLists &lists) {
  int64_t product = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    product *= piecesOf(dim, lists[dim].pieces).largest();
  return product;
}

void Lacking::addDimension(size_t dim, const AxisList &held, const AxisList &wanted) {
  const Pieces &heldPieces = piecesOf(dim, held.pieces), &wantedPieces = piecesOf(dim, wanted.pieces);
  if (held == wanted) { // its axes are nowhere else: some rank has the largest piece, whatever its others are
    question.both *= heldPieces.largest();
    return;
  }
  size_t prefix = commonPrefix(held, wanted);
  bool nested = prefix == held.length || prefix == wanted.length;
  const Pieces &finer = prefix == wanted.length ? heldPieces : wantedPieces;
  if (nested && finer.rest == 0) {
    question.wanted *= wantedPieces.smallest;
    question.common *= finer.smallest;
    return;
  }
  dims[question.count++] = {dim, &held, &wanted, nested, &heldPieces, &wantedPieces};
}

/// Pieces that are all alike, and nothing else that differs between ranks.
void Lacking::settle() {
  int64_t wanted = question.wanted;
  for (size_t i = 0; i < question.count; ++i) {
    if (dims[i].heldPieces->rest != 0 || dims[i].wantedPieces->rest != 0)
      return;
    wanted *= dims[i].wantedPieces->smallest;
  }
  question.settled = true;
  // Different leading axes: some rank holds the first piece of a dimension and wants the last one.
  question.answer = question.both * (wanted - (question.count == 0 ? question.common : 0));
}

void Lacking::ask(const AxisLists &held, const AxisLists &wanted) {
  question = {};
  bool lacks = false;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    lacks |= commonPrefix(held[dim], wanted[dim]) < held[dim].length;
  if (!lacks) {
    question.settled = true;
    return;
  }
  for (size_t dim = 0; dim < shape.size(); ++dim)
    addDimension(dim, held[dim], wanted[dim]);
  settle();
}

/// What a rank would lack that wanted the largest pieces and held the smallest parts of them.
int64_t Lacking::atMost() const {
  int64_t wanted = question.wanted, common = question.common, both = question.both;
  for (size_t i = 0; i < question.count; ++i) {
    const Uneven &dim = dims[i];
    if (dim.nested && dim.wanted->length > dim.held->length) { // wants a part of what it holds
      both *= dim.wantedPieces->largest();
      continue;
    }
    wanted *= dim.wantedPieces->largest();
    common *= dim.nested ? dim.heldPieces->smallest : 0;
  }
  return both * (wanted - common);
}

int64_t Lacking::lackingAt(const Place &place) const {
  int64_t wanted = question.wanted, common = question.common;
  for (size_t i = 0; i < question.count; ++i) {
    const Uneven &dim = dims[i];
    Sizes sizes = sizesAt(*dim.heldPieces, place.held[i], *dim.wantedPieces, place.wanted[i]);
    wanted *= sizes.wanted;
    common *= sizes.common;
  }
  return question.both * (wanted - common);
}

/// The piece at the last coordinate of the axes in `last` and at the first one of the others.
int64_t Lacking::pieceAt(const AxisList &list, uint32_t last) const {
  int64_t piece = 0;
  for (size_t i = 0; i < list.length; ++i) {
    size_t axis = list[i];
    piece = piece * axes[axis] + (last >> axis & 1 ? axes[axis] - 1 : 0);
  }
  return piece;
}

/// Of a rank that wants the last pieces, which are none of the smaller ones, and is the first along the axes that are
/// free.
int64_t Lacking::lackingOfFirstWhereFree() const {
  uint32_t wanting = 0;
  Place place;
  for (size_t i = 0; i < question.count; ++i) {
    const AxisList &wanted = *dims[i].wanted;
    for (size_t j = 0; j < wanted.length; ++j)
      wanting |= uint32_t(1) << wanted[j];
    place.wanted[i] = wanted.pieces - 1;
  }
  for (size_t i = 0; i < question.count; ++i)
    place.held[i] = pieceAt(*dims[i].held, wanting);
  return lackingAt(place);
}

int64_t Lacking::lackingOfLast() const {
  Place place;
  for (size_t i = 0; i < question.count; ++i) {
    place.wanted[i] = dims[i].wanted->pieces - 1;
    place.held[i] = dims[i].held->pieces - 1;
  }
  return lackingAt(place);
}

/// How many leading axes, the same on both sides, cut the dimension evenly: which block a rank is in makes no
/// difference.
size_t Lacking::evenPrefix(const Uneven &uneven) const {
  size_t prefix = commonPrefix(*uneven.held, *uneven.wanted), count = 0;
  for (int64_t size = shape[uneven.dim]; count < prefix && size % axes[(*uneven.held)[count]] == 0; ++count)
    size /= axes[(*uneven.held)[count]];
  return count;
}

/// The most of all coordinates; stops at `most`, which none exceeds.
int64_t Lacking::lookThrough(int64_t least, int64_t most) const {
  /// An axis, and by how much a step along it changes the pieces of the dimensions that it cuts.
  struct Digit {
    int64_t size = 0, at = 0;
    size_t heldDim = mostDims, wantedDim = mostDims;
    int64_t heldStride = 0, wantedStride = 0;
  };
  std::array<Digit, mostAxes> byAxis, digits;
  Place place;
  for (size_t i = 0; i < question.count; ++i) {
    const AxisList &held = *dims[i].held, &wanted = *dims[i].wanted;
    place.held[i] = held.pieces - 1;
    place.wanted[i] = wanted.pieces - 1;
    size_t first = evenPrefix(dims[i]);
    int64_t stride = 1;
    for (size_t j = held.length; j-- > first; stride *= axes[held[j]])
      byAxis[held[j]].heldDim = i, byAxis[held[j]].heldStride = stride;
    stride = 1;
    for (size_t j = wanted.length; j-- > first; stride *= axes[wanted[j]])
      byAxis[wanted[j]].wantedDim = i, byAxis[wanted[j]].wantedStride = stride;
  }
  size_t count = 0;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (byAxis[axis].heldDim != mostDims || byAxis[axis].wantedDim != mostDims) {
      digits[count] = byAxis[axis];
      digits[count].size = axes[axis];
      digits[count++].at = axes[axis] - 1;
    }
  while (true) {
    least = std::max(least, lackingAt(place));
    if (least == most)
      return least;
    size_t i = 0;
    for (; i < count; ++i) { // counts down
      Digit &digit = digits[i];
      bool wraps = digit.at == 0;
      int64_t change = wraps ? digit.size - 1 : -1;
      digit.at += change;
      if (digit.heldDim != mostDims)
        place.held[digit.heldDim] += change * digit.heldStride;
      if (digit.wantedDim != mostDims)
        place.wanted[digit.wantedDim] += change * digit.wantedStride;
      if (!wraps)
        break;
    }
    if (i == count)
      return least;
  }
}

int64_t Lacking::most(const AxisLists &held, const AxisLists &wanted) {
  ask(held, wanted);
  if (question.settled)
    return question.answer;
  int64_t least = std::max(lackingOfFirstWhereFree(), lackingOfLast()), limit = atMost();
  if (least == limit)
    return least;
  listStarts();
  return lookThrough(least, limit);
}

int64_t Lacking::atLeast(const AxisLists &held, const AxisLists &wanted) {
  ask(held, wanted);
  if (question.settled)
    return question.answer;
  return lackingOfFirstWhereFree();
}

} // namespace msc::dist
