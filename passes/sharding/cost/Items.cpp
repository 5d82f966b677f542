#include "passes/sharding/cost/Items.h"

#include <algorithm>

namespace msc::passes {

static bool isOfOriginal(const Wanted &wanted, bool isAgain) { return wanted.forward || !isAgain; }

static bool isOfCopy(const Wanted &wanted, bool isAgain, bool isReaderToo) { return isAgain && (wanted.backward || (wanted.again && isReaderToo)); }

ItemShardings askedByMaker(const PlacedResult &result, bool isAgain) {
  ItemShardings asked;
  for (const Wanted &wanted : result.wanted) {
    if (isOfOriginal(wanted, isAgain))
      asked[Item::OfOriginal].push_back(wanted.sharding);
    if (isOfCopy(wanted, isAgain, /*isReaderToo=*/true))
      asked[Item::OfCopy].push_back(wanted.sharding);
  }
  return asked;
}

std::vector<Item> askedByReader(const ProblemOperator &op, const PlacedStep &placed, int32_t tensor, bool isAgain, bool isReaderToo) {
  std::vector<Item> items;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i] != tensor)
      continue;
    for (const Wanted &wanted : placed.wanted[i])
      if (isOfOriginal(wanted, isAgain))
        items.push_back({.kind = Item::OfOriginal, .sharding = wanted.sharding, .isBackward = !wanted.forward});
    for (const Wanted &wanted : placed.wanted[i])
      if (isOfCopy(wanted, isAgain, isReaderToo))
        items.push_back({.kind = Item::OfCopy, .sharding = wanted.sharding, .isBackward = true});
  }
  for (const PlacedGradient &gradient : placed.gradients)
    if (op.operands[gradient.operand] == tensor)
      items.push_back({Item::Gradient, gradient.left, gradient.bytesLeft, gradient.value, /*isBackward=*/true});
  return items;
}

} // namespace msc::passes
