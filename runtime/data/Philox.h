// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a counter-based
// generator. The same counter and key give the same numbers on every rank, so that any sharding draws alike.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace msc {

/// Four random words for one counter and key.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53u} * counter[0], b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// An endless row of random numbers, one block of words per index. The key is the seed; the name fills the upper half of
/// the counter (FNV-1a, 64 bits), the index the lower half.
class RandomRow {
public:
  constexpr RandomRow(uint64_t seed, std::string_view name)
      : key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {
    for (char c : name)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }

  constexpr std::array<uint32_t, 4> words(uint64_t index) const {
    return philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(hash),
                   static_cast<uint32_t>(hash >> 32)},
                  key);
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform(uint64_t index) const { return fraction(words(index)[0], words(index)[1]); }
  /// Mean 0, standard deviation 1 (Box-Muller).
  double normal(uint64_t index) const;

private:
  static constexpr double fraction(uint32_t high, uint32_t low) {
    return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
  }

  std::array<uint32_t, 2> key;
  uint64_t hash = 0xcbf29ce484222325u;
};

} // namespace msc
