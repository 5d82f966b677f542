// A sharding as the search holds it: for every axis of the device matrix, where it is.
#pragma once

#include "dialects/dist/AxisLists.h"

#include <array>
#include <bit>
#include <cstring>

namespace msc::dist {

using AxisSet = uint32_t; ///< one bit per axis

/// The place of one axis: at a position of a dimension, repeating, or partial by a kind of reduction.
inline constexpr uint8_t repeats = 0xF0;
inline constexpr uint8_t partialBase = 0xF4; ///< plus the kind
constexpr uint8_t placeIn(size_t dim, size_t position) {
  return static_cast<uint8_t>(dim * 16 + position);
}
constexpr bool isCut(uint8_t place) {
  return place < repeats;
}
constexpr bool isPartial(uint8_t place) {
  return place >= partialBase;
}

struct State {
  std::array<uint8_t, mostAxes> place{};
  uint8_t frame = 0; ///< which device matrix: the number of its Frame
  bool operator==(const State &) const = default;
};
static_assert(sizeof(State) == 16);

inline uint64_t hashOf(const State &state) {
  auto words = std::bit_cast<std::array<uint64_t, 2>>(state);
  uint64_t hash = (words[0] ^ std::rotl(words[1] * 0x9E3779B97F4A7C15ull, 29)) * 0xBF58476D1CE4E5B9ull;
  return hash ^ hash >> 32;
}

/// Calls `visit` with every axis of the set, ascending.
template <typename Visit> void forEachAxis(AxisSet set, Visit visit) {
  for (; set != 0; set &= set - 1)
    visit(static_cast<size_t>(std::countr_zero(set)));
}

} // namespace msc::dist
