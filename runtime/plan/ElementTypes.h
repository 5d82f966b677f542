// Names and sizes of element types by their numbers in plan.proto, for code that does not know protobuf.
#pragma once

#include <cstddef>
#include <iterator>

namespace msc {

/// One element type: its word in the language and the bytes of one element.
struct ElementTypeFacts {
  const char *name;
  size_t bytes;
};

inline constexpr ElementTypeFacts elementTypes[] = {{"f32", 4},  {"f64", 8}, {"i32", 4}, {"i64", 8},
                                                    {"bool", 1}, {"f16", 2}, {"bf16", 2}};

/// The facts of a number; {"?", 0} for an unknown one.
constexpr ElementTypeFacts elementTypeFacts(int number) {
  return number >= 0 && number < static_cast<int>(std::size(elementTypes)) ? elementTypes[number]
                                                                           : ElementTypeFacts{"?", 0};
}

} // namespace msc
