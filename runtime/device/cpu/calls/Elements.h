// Elements of tensors in memory, and the type in which kernels compute with them.
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace msc::device::calls {

/// The upper half of an f32; converted with rounding to nearest, ties to even.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t whole = 0;
    std::memcpy(&whole, &value, sizeof(whole));
    bits = static_cast<uint16_t>(value != value ? whole >> 16 | 0x40 : (whole + 0x7fff + (whole >> 16 & 1)) >> 16);
  }
  explicit operator float() const {
    uint32_t whole = static_cast<uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &whole, sizeof(value));
    return value;
  }
};

/// f64 computes in f64, all others in f32.
template <typename Element> struct ComputeTypeOf { using Type = float; };
template <> struct ComputeTypeOf<double> { using Type = double; };
template <typename Element> using ComputeType = typename ComputeTypeOf<Element>::Type;

/// Calls f(Element()) with the C++ type of a float element type.
template <typename Function> auto withFloat(plan::DataType type, Function f) {
  switch (type) {
  case plan::F64: return f(double());
  case plan::F16: return f(_Float16());
  case plan::BF16: return f(BFloat16());
  default: return f(float());
  }
}

/// The same for an element type of numbers.
template <typename Function> auto withNumber(plan::DataType type, Function f) {
  switch (type) {
  case plan::I32: return f(int32_t());
  case plan::I64: return f(int64_t());
  default: return withFloat(type, f);
  }
}

/// The type in which numbers are added: whole numbers as they are, f16 and bf16 as f32.
template <typename Element> using Number = std::conditional_t<std::is_integral_v<Element>, Element, ComputeType<Element>>;

/// a + b; whole numbers wrap around.
template <typename Number> Number plus(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>)
    return static_cast<Number>(static_cast<std::make_unsigned_t<Number>>(a) + static_cast<std::make_unsigned_t<Number>>(b));
  else
    return a + b;
}

} // namespace msc::device::calls
