// bf16: the upper half of an f32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace msc {

struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  /// The nearest value, ties to even. NaN stays NaN.
  explicit Bfloat16(float value) {
    auto single = std::bit_cast<uint32_t>(value);
    uint32_t rounded = std::isnan(value) ? single | 0x400000 : single + 0x7fff + (single >> 16 & 1);
    bits = static_cast<uint16_t>(rounded >> 16);
  }
  explicit Bfloat16(double value) : Bfloat16(static_cast<float>(value)) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

} // namespace msc
