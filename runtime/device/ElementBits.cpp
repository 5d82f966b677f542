#include "runtime/device/ElementBits.h"

#include "runtime/plan/Bfloat16.h"

#include <cstring>

namespace msc::device {

uint64_t elementBits(plan::DataType type, double value) {
  uint64_t bits = 0;
  auto store = [&](auto element) { std::memcpy(&bits, &element, sizeof(element)); };
  auto narrow = static_cast<float>(value);
  switch (type) {
  case plan::F64:
    store(value);
    break;
  case plan::F32:
    store(narrow);
    break;
  case plan::I32:
    store(static_cast<int32_t>(value));
    break;
  case plan::I64:
    store(static_cast<int64_t>(value));
    break;
  case plan::BOOL:
    store(static_cast<uint8_t>(value != 0));
    break;
  case plan::F16:
    store(static_cast<_Float16>(narrow));
    break;
  case plan::BF16:
    store(Bfloat16(narrow));
    break;
  default:
    break;
  }
  return bits;
}

} // namespace msc::device
