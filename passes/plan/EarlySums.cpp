#include "passes/plan/EarlySums.h"

#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>

using namespace mlir;

namespace msc::passes {

namespace {

/// Additions of gradients, each of which adds one more term to the one before it; none that is in another chain.
SmallVector<Operation *> chainFrom(Operation *first, const llvm::DenseSet<Operation *> &inOther) {
  SmallVector<Operation *> chain{first};
  auto isSum = [&](Operation *op) {
    return isa<net::AddOp>(op) && net::getPhase(op) == net::Phase::Backward && op->getBlock() == first->getBlock() &&
           op->getResult(0).getType() == first->getResult(0).getType();
  };
  if (!isSum(first))
    return {};
  while (chain.back()->getResult(0).hasOneUse()) {
    Operation *next = *chain.back()->user_begin();
    if (!isSum(next) || inOther.contains(next))
      break;
    chain.push_back(next);
  }
  return chain;
}

class Order {
public:
  explicit Order(Block &block) : block(block) {}

  OperatorOrder run() {
    llvm::DenseSet<Operation *> seen;
    int64_t number = 0;
    for (Operation &op : block)
      place[&op] = number++;
    for (Operation &op : block)
      if (!seen.contains(&op)) {
        const SmallVector<Operation *> chain = chainFrom(&op, seen);
        seen.insert(chain.begin(), chain.end());
        for (size_t at = 0; chain.size() >= termsAtOnce && at < chain.size(); at += termsAtOnce - 1)
          hoist(ArrayRef(chain).slice(at, std::min(termsAtOnce - 1, chain.size() - at)));
      }
    OperatorOrder order;
    std::stable_sort(moved.begin(), moved.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    auto next = moved.begin();
    for (Operation &op : block) {
      if (!early.contains(&op))
        order.operators.push_back(&op);
      for (; next != moved.end() && next->second == place[&op]; ++next)
        order.operators.push_back(next->first);
    }
    order.early = std::move(early);
    return order;
  }

private:
  /// Behind the last of what they add.
  void hoist(ArrayRef<Operation *> additions) {
    int64_t last = -1;
    for (Operation *add : additions)
      for (Value term : add->getOperands())
        if (Operation *made = term.getDefiningOp(); made && !llvm::is_contained(additions, made))
          last = std::max(last, early.contains(made) ? behind[made] : place[made]);
    if (last < 0)
      return;
    for (Operation *add : additions) {
      moved.emplace_back(add, last);
      behind[add] = last;
      early.insert(add);
    }
  }

  Block &block;
  llvm::DenseMap<Operation *, int64_t> place;  ///< in the block
  llvm::DenseMap<Operation *, int64_t> behind; ///< of those that are early: the place behind which they stand
  std::vector<std::pair<Operation *, int64_t>> moved;
  llvm::DenseSet<Operation *> early;
};

} // namespace

OperatorOrder withEarlySums(Block &block) { return Order(block).run(); }

} // namespace msc::passes
