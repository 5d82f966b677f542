#include "dialects/net/Repeat.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;

namespace msc::net {

int64_t roundsAround(Operation *op) {
  int64_t rounds = 1;
  for (auto repeat = op->getParentOfType<RepeatOp>(); repeat; repeat = repeat->getParentOfType<RepeatOp>())
    rounds *= repeat.rounds();
  return rounds;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string nameInRound(StringRef name, StringRef variable, int64_t round, bool isLast) {
  std::string text;
  while (!name.empty()) {
    StringRef rest = name;
    if (name.consume_front("{{")) {
      text += isLast ? "{" : "{{";
    } else if (rest.consume_front("{") && rest.consume_front(variable) && rest.consume_front("}")) {
      text += std::to_string(round);
      name = rest;
    } else {
      text += name.front();
      name = name.drop_front();
    }
  }
  return text;
}

std::string nameWithRound(StringRef name, StringRef variable) {
  const std::string placeholder = ("{" + variable + "}").str();
  if (name.empty() || name.contains(placeholder))
    return name.str();
  StringRef front = name;
  while (front.ends_with("}") && front.rfind(".{") != StringRef::npos)
    front = front.take_front(front.rfind(".{"));
  return front.str() + "." + placeholder + name.drop_front(front.size()).str();
}

std::string escapedName(StringRef name) {
  std::string text;
  for (char c : name)
    text += c == '{' ? "{{" : std::string(1, c);
  return text;
}

static void addNames(RepeatOp repeat, const std::string &carried, std::vector<std::string> &names) {
  if (!repeat) {
    names.push_back(carried);
    return;
  }
  auto outer = repeat->getParentOfType<RepeatOp>();
  for (int64_t round = repeat.firstRound(); round < repeat.endRound(); ++round)
    addNames(outer, nameInRound(carried, repeat.getVariable(), round, !outer), names);
}

std::vector<std::string> namesInRounds(Operation *op, StringRef carried) {
  std::vector<std::string> names;
  addNames(op->getParentOfType<RepeatOp>(), carried.str(), names);
  return names;
}

bool isNameInRound(StringRef pattern, StringRef name) {
  bool hasRound = false;
  std::vector<bool> ends(name.size() + 1), next; // where in the name the pattern may have got to
  ends[0] = true;
  while (!pattern.empty()) {
    const size_t end = pattern.starts_with("{") ? pattern.find('}') : StringRef::npos;
    const bool isRound = end != StringRef::npos;
    next.assign(ends.size(), false);
    for (size_t i = 0; i < name.size(); ++i)
      next[i + 1] = isRound ? llvm::isDigit(name[i]) && (ends[i] || next[i]) : ends[i] && name[i] == pattern.front();
    ends.swap(next);
    hasRound |= isRound;
    pattern = pattern.drop_front(isRound ? end + 1 : 1);
  }
  return hasRound && ends.back();
}

static void renameForRound(Operation *op, RepeatOp repeat, int64_t round) {
  op->walk([&](Operation *inner) {
    auto around = inner->getParentOfType<RepeatOp>();
    bool isLast = !around || (around == repeat && !repeat->getParentOfType<RepeatOp>());
    renameAll(inner, [&](StringRef name) {
      return name.contains('{') ? nameInRound(name, repeat.getVariable(), round, isLast) : name.str();
    });
  });
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

/// A copy of one round where the builder stands; gives what it yields.
static SmallVector<Value> copyRound(RepeatOp repeat, int64_t round, ValueRange carried, OpBuilder &builder,
                                    IRMapping &mapping) {
  Block &body = repeat.getBody().front();
  mapping.map(body.getArguments(), carried);
  for (Operation &op : body.without_terminator())
    renameForRound(builder.clone(op, mapping), repeat, round);
  return llvm::map_to_vector(repeat.yielded(), [&](Value value) { return mapping.lookupOrDefault(value); });
}

void peelFirst(RepeatOp repeat) {
  OpBuilder builder(repeat);
  IRMapping mapping;
  repeat.getInitialMutable().assign(copyRound(repeat, repeat.firstRound(), repeat.getInitial(), builder, mapping));
  repeat.setFrom(repeat.firstRound() + 1);
}

void peelLast(RepeatOp repeat, IRMapping &mapping) {
  SmallVector<OpOperand *> uses;
  for (OpResult result : repeat.getResults())
    for (OpOperand &use : result.getUses())
      uses.push_back(&use);
  OpBuilder builder(repeat->getContext());
  builder.setInsertionPointAfter(repeat);
  SmallVector<Value> last = copyRound(repeat, repeat.endRound() - 1, repeat.getResults(), builder, mapping);
  for (OpOperand *use : uses)
    use->set(last[cast<OpResult>(use->get()).getResultNumber()]);
  repeat.setTo(repeat.endRound() - 1);
}

RepeatOp splitBefore(RepeatOp repeat, int64_t round, IRMapping &mapping) {
  OpBuilder builder(repeat->getContext());
  builder.setInsertionPointAfter(repeat);
  auto later = cast<RepeatOp>(builder.clone(*repeat, mapping));
  repeat.getResults().replaceAllUsesWith(later.getResults());
  later.getInitialMutable().assign(repeat.getResults());
  later.setFrom(round);
  repeat.setTo(round);
  return later;
}

void unroll(RepeatOp repeat) {
  while (repeat.rounds() > 1)
    peelFirst(repeat);
  Block &body = repeat.getBody().front();
  for (Operation &op : body.without_terminator())
    renameForRound(&op, repeat, repeat.firstRound());
  for (auto [argument, initial] : llvm::zip(body.getArguments(), repeat.getInitial()))
    argument.replaceAllUsesWith(initial);
  Operation *yield = &body.back();
  repeat->getBlock()->getOperations().splice(repeat->getIterator(), body.getOperations(), body.begin(),
                                             yield->getIterator());
  repeat.getResults().replaceAllUsesWith(yield->getOperands());
  repeat.erase();
}

/// Operators of a body keep in mind that their rounds are one operator.
static void numberBodies(NetworkOp network) {
  llvm::DenseMap<Operation *, SmallVector<int64_t>> around; // ordinals of a repeat and of those around it
  int64_t repeats = 0, operators = 0;
  network.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto outer = around.find(op->getParentOp());
    SmallVector<int64_t> ordinals = outer == around.end() ? SmallVector<int64_t>() : outer->second;
    if (isa<RepeatOp>(op)) {
      ordinals.push_back(repeats++);
      around[op] = ordinals;
    } else if (isa<Operator>(op) && !ordinals.empty()) {
      ordinals.push_back(operators++);
      setAlike(op, ordinals);
    }
  });
}

void unrollAll(NetworkOp network) {
  numberBodies(network);
  network.walk([](RepeatOp repeat) { unroll(repeat); });
  Operation *last = nullptr;
  for (Operation &op : llvm::make_early_inc_range(network.getBody().front())) {
    if (!isa<ParamOp>(op))
      continue;
    if (last)
      op.moveAfter(last);
    else
      op.moveBefore(op.getBlock(), op.getBlock()->begin());
    last = &op;
  }
}

/// Whether operators, as they stand, are rounds of a repeat that lies `depth` deep; 0: of none.
static bool areRounds(ArrayRef<ArrayRef<int64_t>> operators, size_t depth) {
  struct Part { // an operator, or the rounds of a repeat
    int64_t ordinal;
    size_t begin, end;
    bool isRepeat;
    bool isLike(const Part &other) const {
      return ordinal == other.ordinal && isRepeat == other.isRepeat && end - begin == other.end - other.begin;
    }
  };
  SmallVector<Part> parts;
  std::set<std::pair<bool, int64_t>> firstRound;
  size_t count = 0; // of parts in a round
  for (size_t at = 0; at < operators.size();) {
    ArrayRef<int64_t> op = operators[at];
    size_t end = at + 1;
    if (op.empty() && depth == 0) { // in no repeat
      at = end;
      continue;
    }
    if (op.size() <= depth)
      return false;
    const bool isRepeat = op.size() > depth + 1;
    if (!isRepeat && depth == 0)
      return false;
    while (isRepeat && end < operators.size() && operators[end].size() > depth + 1 && operators[end][depth] == op[depth])
      ++end;
    if (isRepeat && !areRounds(operators.slice(at, end - at), depth + 1))
      return false;
    parts.push_back({op[depth], at, end, isRepeat});
    if (count == 0 && !firstRound.emplace(isRepeat, op[depth]).second)
      count = parts.size() - 1;
    at = end;
  }
  if (depth == 0)
    return count == 0;
  count = count == 0 ? parts.size() : count;
  for (size_t i = count; i < parts.size(); ++i)
    if (!parts[i].isLike(parts[i - count]))
      return false;
  return parts.size() % count == 0;
}

void clearBrokenRounds(NetworkOp network) {
  SmallVector<ArrayRef<int64_t>> operators;
  for (Operation &op : network.getBody().front())
    if (isa<Operator>(op))
      operators.push_back(getAlike(&op));
  if (!areRounds(operators, 0))
    for (Operation &op : network.getBody().front())
      clearAlike(&op);
}

} // namespace msc::net
