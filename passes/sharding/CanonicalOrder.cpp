#include "passes/sharding/CanonicalOrder.h"

#include "dialects/net/FixedPieces.h"
#include "dialects/net/Recompute.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Passes.h"

#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_CANONICALORDERPASS
#include "passes/sharding/Passes.h.inc"

namespace {

using Colour = uint64_t;

Colour mix(Colour a, Colour b) {
  const std::array<uint64_t, 2> both{a, b};
  return llvm::xxh3_64bits(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(both.data()), sizeof(both)));
}

class Colouring {
public:
  explicit Colouring(net::NetworkOp network) : network(network) {
    std::map<std::vector<int64_t>, Operation *> ofRounds;
    network.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isCounted(op))
        return;
      if (ArrayRef<int64_t> alike = net::getAlike(op); !alike.empty())
        if (Operation *first = ofRounds.try_emplace(alike.vec(), op).first->second; first != op) {
          inFirst[op] = first;
          return;
        }
      colours[op] = alone(op);
    });
    for (int round = 0; round < 2; ++round) {
      for (auto [i, input] : llvm::enumerate(network.getBody().getArguments()))
        made[input] = mix(colourOf(input.getType()), i);
      along(network.getBody().front());
      handedOut.clear();
      against(network.getBody().front());
    }
  }

  CanonicalOrder order() {
    CanonicalOrder result;
    std::vector<Operation *> written, firsts;
    network.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == network || !isPlaced(op))
        return;
      if (auto repeat = dyn_cast<net::RepeatOp>(op)) {
        result.repeats.push_back(repeat);
        return;
      }
      written.push_back(op);
      Operation *first = inFirst.lookup(op);
      rounds[first ? first : op].push_back(op);
      if (!first) {
        around[op] = repeatsAround(op);
        firsts.push_back(op);
      }
    });
    if (!place(firsts, {}, result.operators))
      result.operators = std::move(written);
    llvm::DenseMap<Operation *, size_t> begin; // of a repeat: its first operator
    for (auto [i, op] : llvm::enumerate(result.operators))
      for (Operation *outer = op->getParentOp(); outer != network; outer = outer->getParentOp())
        begin.try_emplace(outer, i);
    for (net::RepeatOp repeat : result.repeats)
      begin.try_emplace(repeat, result.operators.size());
    llvm::stable_sort(result.repeats, [&](net::RepeatOp a, net::RepeatOp b) { return begin.lookup(a) < begin.lookup(b); });
    return result;
  }

private:
  /// Backward operators come and go with the passes that have run.
  static bool isCounted(Operation *op) {
    return isa<net::RepeatOp>(op) || op->hasTrait<OpTrait::IsTerminator>() || net::getPhase(op) == net::Phase::Forward;
  }

  static bool isPlaced(Operation *op) { return isCounted(op) && !isa<net::ParamOp>(op) && !op->hasTrait<OpTrait::IsTerminator>(); }

  /// Of what is told by its text; equal attributes and types are one object.
  template <typename Unique> Colour colourOf(Unique object) {
    auto [found, isNew] = ofObjects.try_emplace(object.getAsOpaquePointer());
    if (isNew) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      stream << object;
      found->second = llvm::xxh3_64bits(stream.str());
    }
    return found->second;
  }

  /// What is left out counts as its default.
  Colour colourOfProperties(Operation *op) {
    const Attribute written = op->getPropertiesAsAttribute();
    if (!written)
      return 0;
    auto [found, isNew] = ofProperties.try_emplace({op->getName(), written});
    if (isNew) {
      Operation *whole = op->cloneWithoutRegions();
      whole->getName().populateDefaultProperties(whole->getPropertiesStorage());
      found->second = colourOf(whole->getPropertiesAsAttribute());
      whole->destroy();
    }
    return found->second;
  }

  static Colour colourOf(ArrayRef<int64_t> numbers) {
    return llvm::xxh3_64bits(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(numbers.data()), numbers.size() * sizeof(int64_t)));
  }

  static Colour colourOf(const std::optional<net::Strategy> &strategy) {
    Colour colour = 0;
    if (strategy)
      for (const auto &pieces : *strategy)
        colour = mix(colour, colourOf(ArrayRef<int64_t>(pieces)));
    return colour;
  }

  /// What an operator is beside others; names and what was decided for it do not count, what its user decided does.
  Colour alone(Operation *op) {
    Colour colour = llvm::xxh3_64bits(op->getName().getStringRef());
    for (Type type : op->getResultTypes())
      colour = mix(colour, colourOf(type));
    if (auto param = dyn_cast<net::ParamOp>(op))
      return mix(colour, param.getTrained());
    if (auto repeat = dyn_cast<net::RepeatOp>(op))
      return mix(colour, static_cast<uint64_t>(repeat.rounds()));
    if (op->hasTrait<OpTrait::IsTerminator>())
      return colour;
    colour = mix(mix(colour, colourOfProperties(op)), net::isRecomputed(op));
    colour = mix(colour, isByUser(op) ? colourOf(net::getInStrategy(op)) : 0);
    colour = mix(colour, isByUser(op) ? colourOf(net::getOutStrategy(op)) : 0);
    const std::vector<int64_t> fixed = net::getFixedPieces(op);
    return mix(colour, colourOf(ArrayRef<int64_t>(fixed)));
  }

  /// Operators learn what their operands are made of. What is carried counts as what it is in the first round.
  void along(Block &block) {
    for (Operation &op : block) {
      if (!isCounted(&op))
        continue;
      if (Operation *first = inFirst.lookup(&op)) {
        for (auto [result, ofFirst] : llvm::zip(op.getResults(), first->getResults()))
          made[result] = made.lookup(ofFirst);
        continue;
      }
      Colour colour = colours.lookup(&op);
      for (Value operand : op.getOperands())
        colour = mix(colour, made.lookup(operand));
      colours[&op] = colour;
      if (auto repeat = dyn_cast<net::RepeatOp>(op)) {
        for (auto [argument, initial] : llvm::zip(repeat.getBody().getArguments(), repeat.getInitial()))
          made[argument] = made.lookup(initial);
        along(repeat.getBody().front());
        for (auto [result, yielded] : llvm::zip(repeat.getResults(), repeat.yielded()))
          made[result] = made.lookup(yielded);
        continue;
      }
      for (OpResult result : op.getResults())
        made[result] = mix(colour, result.getResultNumber());
    }
  }

  /// Operators learn what becomes of their results: in the first round, and behind the last one.
  void against(Block &block) {
    for (Operation &op : llvm::reverse(block)) {
      if (!isCounted(&op) || op.hasTrait<OpTrait::IsTerminator>())
        continue;
      if (Operation *first = inFirst.lookup(&op)) {
        for (auto [result, ofFirst] : llvm::zip(op.getResults(), first->getResults()))
          handedOut[ofFirst] += usesOf(result);
        continue;
      }
      if (auto repeat = dyn_cast<net::RepeatOp>(op)) {
        for (auto [yielded, result] : llvm::zip(repeat.yielded(), repeat.getResults()))
          handedOut[yielded] += usesOf(result);
        against(repeat.getBody().front());
        for (auto [argument, initial] : llvm::zip(repeat.getBody().getArguments(), repeat.getInitial()))
          handedOut[initial] += usesOf(argument);
      }
      Colour colour = colours.lookup(&op);
      for (Value result : op.getResults())
        colour = mix(colour, usesOf(result));
      colours[&op] = colour;
    }
  }

  /// The same in whatever order they stand.
  Colour usesOf(Value value) {
    Colour sum = handedOut.lookup(value);
    for (OpOperand &use : value.getUses())
      if (Operation *user = use.getOwner(); isCounted(user) && !inFirst.contains(user) && !isa<net::RepeatOp, net::YieldOp>(user))
        sum += mix(colours.lookup(user), use.getOperandNumber());
    return sum;
  }

  /// The outermost first. Those of a dump are told by what its operators say of them.
  static std::vector<uint64_t> repeatsAround(Operation *op) {
    std::vector<uint64_t> repeats;
    if (ArrayRef<int64_t> alike = net::getAlike(op); !alike.empty())
      repeats.assign(alike.begin(), alike.end() - 1);
    for (auto outer = op->getParentOfType<net::RepeatOp>(); outer; outer = outer->getParentOfType<net::RepeatOp>())
      repeats.insert(repeats.begin(), reinterpret_cast<uintptr_t>(outer.getOperation()));
    return repeats;
  }

  /// The operator that makes a value, or that made what a repeat hands on as the value; in the first round of a dump.
  Operation *makerOf(Value value) const {
    while (true) {
      Operation *op = value.getDefiningOp();
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        auto repeat = dyn_cast<net::RepeatOp>(argument.getOwner()->getParentOp());
        if (!repeat)
          return nullptr;
        value = repeat.getInitial()[argument.getArgNumber()];
      } else if (auto repeat = dyn_cast<net::RepeatOp>(op)) {
        value = repeat.yielded()[cast<OpResult>(value).getResultNumber()];
      } else {
        Operation *first = inFirst.lookup(op);
        return first ? first : op;
      }
    }
  }

  /// Which round of the repeats around is placed.
  struct Round {
    size_t depth = 0;            ///< so many repeats
    size_t count = 1, index = 0; ///< of the rounds of all of them
  };

  /// Operators of first rounds, as they are written: those of a further repeat stay together. Sorted by the longest way to them, then by
  /// colour. False where an operator does not stand in every round.
  bool place(const std::vector<Operation *> &ops, Round now, std::vector<Operation *> &order) {
    struct Unit {
      int64_t distance = 0;
      Colour colour = 0;
      size_t written = 0;
      std::vector<Operation *> ops;
    };
    std::vector<Unit> units;
    std::map<uint64_t, size_t> ofRepeat;
    llvm::DenseMap<Operation *, size_t> unitOf;
    for (Operation *op : ops) {
      const std::vector<uint64_t> &repeats = around[op];
      size_t unit = units.size();
      if (repeats.size() > now.depth)
        unit = ofRepeat.try_emplace(repeats[now.depth], unit).first->second;
      if (unit == units.size())
        units.push_back({.written = unit, .ops = {}});
      units[unit].ops.push_back(op);
      units[unit].colour += colours.lookup(op);
      unitOf[op] = unit;
    }
    for (Unit &unit : units) // values come from units that are written before
      for (Operation *op : unit.ops)
        for (Value operand : op->getOperands())
          if (auto maker = unitOf.find(makerOf(operand)); maker != unitOf.end() && maker->second != unit.written)
            unit.distance = std::max(unit.distance, units[maker->second].distance + 1);
    std::ranges::sort(units, {}, [](const Unit &unit) { return std::tuple(unit.distance, unit.colour, unit.written); });
    for (const Unit &unit : units) {
      if (around[unit.ops.front()].size() == now.depth) {
        const std::vector<Operation *> &same = rounds[unit.ops.front()];
        if (same.size() != now.count)
          return false;
        order.push_back(same[now.index]);
        continue;
      }
      // How many rounds there are is told by operators that are in no further repeat.
      auto direct = llvm::find_if(unit.ops, [&](Operation *op) { return around[op].size() == now.depth + 1; });
      if (direct == unit.ops.end() && llvm::any_of(unit.ops, [&](Operation *op) { return rounds[op].size() > now.count; }))
        return false;
      const size_t times = direct == unit.ops.end() ? 1 : rounds[*direct].size() / now.count;
      for (size_t round = 0; round < times; ++round)
        if (!place(unit.ops, {now.depth + 1, now.count * times, now.index * times + round}, order))
          return false;
    }
    return true;
  }

  net::NetworkOp network;
  llvm::DenseMap<const void *, Colour> ofObjects;
  llvm::DenseMap<std::pair<OperationName, Attribute>, Colour> ofProperties;
  llvm::DenseMap<Operation *, Operation *> inFirst; ///< operators of later rounds of a dump: the same one of the first round
  llvm::DenseMap<Operation *, Colour> colours;
  llvm::DenseMap<Value, Colour> made;      ///< what a value is made of
  llvm::DenseMap<Value, Colour> handedOut; ///< what becomes of a value through repeats
  llvm::DenseMap<Operation *, std::vector<uint64_t>> around;    ///< the repeats of an operator
  llvm::DenseMap<Operation *, std::vector<Operation *>> rounds; ///< of an operator of a first round: itself, then the later ones
};

} // namespace

CanonicalOrder canonicalOrder(net::NetworkOp network) {
  return Colouring(network).order();
}

namespace {

struct CanonicalOrderOfRounds : impl::CanonicalOrderPassBase<CanonicalOrderOfRounds> {
  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>())
      sortRounds(network);
  }

private:
  static void sortRounds(net::NetworkOp network) {
    const std::vector<Operation *> order = canonicalOrder(network).operators;
    Operation *end = network.getBody().front().getTerminator();
    llvm::DenseSet<Operation *> placed;
    for (Operation *op : order)
      for (Value operand : op->getOperands())
        if (auto param = operand.getDefiningOp<net::ParamOp>(); param && placed.insert(param).second)
          param->moveBefore(end);
    for (Operation *op : order)
      op->moveBefore(end);
  }
};

} // namespace

} // namespace msc::passes
