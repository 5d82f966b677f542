// An element of a float tensor as a number.
#pragma once

#include "runtime/plan/Bfloat16.h"
#include "runtime/plan/PlanIndex.h"

#include <cstddef>
#include <cstring>

namespace msc {

/// `data` need not be aligned; types that are no float are read as f32.
inline double floatValue(plan::DataType type, const std::byte *data) {
  auto load = [&](auto value) {
    std::memcpy(&value, data, sizeof(value));
    return value;
  };
  switch (type) {
  case plan::F64: return load(double{});
  case plan::F16: return static_cast<double>(load(_Float16{}));
  case plan::BF16: return static_cast<double>(static_cast<float>(load(Bfloat16{})));
  default: return static_cast<double>(load(float{}));
  }
}

} // namespace msc
