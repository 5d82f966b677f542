#include "passes/partition/AlikeTerms.h"

#include "dialects/net/GradientSum.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/Recompute.h"
#include "passes/partition/Linear.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace mlir;

namespace msc::passes {

/// The addition that adds one more term to this one; null if there is none.
static Operation *nextAddition(Operation *add) {
  if (!add->getResult(0).hasOneUse())
    return nullptr;
  Operation *next = *add->user_begin();
  bool isSum = addsPartials(next) && net::getPhase(next) == net::Phase::Backward && !net::isCopy(next) &&
               net::getForwardId(next) == net::getForwardId(add) && next->getBlock() == add->getBlock();
  // What an operator makes of its gradient is no sum of contributions.
  if (!isSum || net::getGradientOfResult(next, 0) || net::getGradientOfResult(next, 1))
    return nullptr;
  return next;
}

void addAlikeTermsFirst(Operation *first, llvm::function_ref<bool(Value)> mayStay) {
  SmallVector<Operation *> chain{first};
  SmallVector<Value> terms{first->getOperand(0), first->getOperand(1)};
  while (Operation *next = nextAddition(chain.back())) {
    Value term = next->getOperand(next->getOperand(0) == chain.back()->getResult(0) ? 1 : 0);
    Operation *made = term.getDefiningOp();
    if (made && !(made->getBlock() == first->getBlock() && made->isBeforeInBlock(first)))
      break;
    chain.push_back(next);
    terms.push_back(term);
  }
  auto alike = [&](Value term) {
    auto count = llvm::count_if(terms, [&](Value other) { return other.getType() == term.getType() && mayStay(other); });
    return mayStay(term) && count > 1 ? count : 0;
  };
  Value most = *llvm::max_element(terms, [&](Value a, Value b) { return alike(a) < alike(b); }); // the first of them
  if (chain.size() == 1 || alike(most) == 0)
    return;
  auto isOfMost = [&, type = most.getType()](Value term) { return term.getType() == type && mayStay(term); };
  SmallVector<Value> others;
  llvm::copy_if(terms, std::back_inserter(others), [&](Value term) { return !isOfMost(term); });
  llvm::erase_if(terms, [&](Value term) { return !isOfMost(term); });
  terms.append(others);
  first->setOperand(0, terms.front());
  for (auto [i, add] : llvm::enumerate(chain)) {
    if (i > 0)
      add->setOperand(0, chain[i - 1]->getResult(0));
    add->setOperand(1, terms[i + 1]);
  }
}

} // namespace msc::passes
