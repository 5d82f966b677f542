// What RandomBits and the operators made of it share.
#pragma once

namespace msc::net {

/// Operations per word: ten rounds of two products of 32 bits, with what is around them.
inline constexpr double kDrawOperations = 100;

} // namespace msc::net
