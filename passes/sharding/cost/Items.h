// What is asked of a value on its way from who makes it to who reads it: the value in shardings, and gradients of it. Each is paid once,
// whoever asks.
#pragma once

#include "passes/sharding/cost/PlaceStep.h"

#include <array>

namespace msc::passes {

struct Item {
  enum Kind : int32_t { OfOriginal, OfCopy, Gradient }; ///< of the value as it was made first, or of what is computed again
  Kind kind = OfOriginal;
  Sharding sharding;
  size_t bytes = 4;  ///< of an element of the gradient
  int32_t value = 0; ///< as PlacedGradient
  bool isBackward = false; ///< the backward pass alone asks for it
};

/// Shardings, by Item::Kind.
using ItemShardings = std::array<std::vector<Sharding>, 3>;

/// What the operator that makes a value asks of it. `isAgain`: the value is computed again, and what its backward readers want is made of
/// the copy.
ItemShardings askedByMaker(const PlacedResult &result, bool isAgain);

/// What an operator asks of a tensor that it reads. `isAgain`: as above; `isReaderToo`: so is the operator.
std::vector<Item> askedByReader(const ProblemOperator &op, const PlacedStep &placed, int32_t tensor, bool isAgain, bool isReaderToo);

} // namespace msc::passes
