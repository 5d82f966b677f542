#include "passes/partition/AlikeTerms.h"

#include "dialects/net/GradientSum.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/Recompute.h"
#include "passes/partition/Linear.h"

#include "llvm/ADT/MapVector.h"
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

/// The same for a sum of scalars in the update.
static Operation *nextScalar(Operation *add) {
  if (!add->getResult(0).hasOneUse())
    return nullptr;
  Operation *next = *add->user_begin();
  bool isSum = addsPartials(next) && net::getPhase(next) == net::Phase::Update && next->getBlock() == add->getBlock();
  return isSum && next->getOperand(0) != next->getOperand(1) ? next : nullptr;
}

/// Additions behind each other and what they add.
struct Chain {
  SmallVector<Operation *> additions;
  SmallVector<Value> terms; ///< one more than additions; all are there in front of the first one
};

static Chain chainFrom(Operation *first, llvm::function_ref<Operation *(Operation *)> nextOf) {
  Chain chain{{first}, {first->getOperand(0), first->getOperand(1)}};
  while (Operation *next = nextOf(chain.additions.back())) {
    Value term = next->getOperand(next->getOperand(0) == chain.additions.back()->getResult(0) ? 1 : 0);
    Operation *made = term.getDefiningOp();
    if (made && !(made->getBlock() == first->getBlock() && made->isBeforeInBlock(first)))
      break;
    chain.additions.push_back(next);
    chain.terms.push_back(term);
  }
  return chain;
}

bool isAccumulation(Operation *op, llvm::function_ref<Value(Value)> rootOf) {
  if (!addsPartials(op) || net::getPhase(op) != net::Phase::Backward || net::isCopy(op))
    return false;
  const bool isOwn = net::getGradientOfResult(op, 0) || net::getGradientOfResult(op, 1); // of an operator that adds to its gradient
  auto producerOf = [&](Value term) {
    Operation *producer = rootOf(term).getDefiningOp();
    return producer && net::getPhase(producer) == net::Phase::Backward ? producer : nullptr;
  };
  auto isOfOther = [&](Value term) {
    Operation *producer = producerOf(term);
    return producer && net::getForwardId(producer) != net::getForwardId(op);
  };
  auto isOfSum = [&](Value term) {
    Operation *producer = producerOf(term);
    return producer && isAccumulation(producer, rootOf);
  };
  return llvm::any_of(op->getOperands(), isOfOther) || (!isOwn && llvm::any_of(op->getOperands(), isOfSum));
}

void addScalarsByKind(Operation *first, llvm::function_ref<bool(Value)> mayStay) {
  auto [additions, terms] = chainFrom(first, nextScalar);
  llvm::MapVector<Type, SmallVector<Value>> kinds;
  SmallVector<Value> sums; // of what is to be added in the end
  for (Value term : terms)
    if (mayStay(term))
      kinds[term.getType()].push_back(term);
    else
      sums.push_back(term);
  size_t next = 0;
  auto sumOf = [&](ArrayRef<Value> values) {
    Value sum = values.front();
    for (Value value : values.drop_front()) {
      Operation *add = additions[next++];
      add->setOperands({sum, value});
      sum = add->getResult(0);
    }
    return sum;
  };
  for (auto &[type, values] : kinds)
    sums.push_back(sumOf(values));
  sumOf(sums);
}

void addAlikeTermsFirst(Operation *first, llvm::function_ref<Type(Value)> typeOf, llvm::DenseSet<Operation *> &settled) {
  if (settled.contains(first))
    return;
  auto [chain, terms] = chainFrom(first, nextAddition);
  if (chain.size() == 1)
    return;
  llvm::MapVector<Type, SmallVector<Value>> kinds;
  for (Value term : terms)
    if (Type type = typeOf(term))
      kinds[type].push_back(term);
  if (kinds.empty())
    return;
  auto most = llvm::max_element(kinds, [](const auto &a, const auto &b) { return a.second.size() < b.second.size(); }); // the first of them
  SmallVector<Value> &alike = most->second;
  if (alike.size() < 2)
    return;
  settled.insert(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(alike.size() - 1));
  const llvm::DenseSet<Value> isAlike(alike.begin(), alike.end());
  llvm::copy_if(terms, std::back_inserter(alike), [&](Value term) { return !isAlike.contains(term); });
  terms = std::move(alike);
  first->setOperand(0, terms.front());
  for (auto [i, add] : llvm::enumerate(chain)) {
    if (i > 0)
      add->setOperand(0, chain[i - 1]->getResult(0));
    add->setOperand(1, terms[i + 1]);
  }
}

} // namespace msc::passes
