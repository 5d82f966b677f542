#include "passes/plan/Units.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/OperatorTime.h"
#include "dialects/net/Recompute.h"
#include "passes/plan/EarlySums.h"
#include "passes/plan/NarrowWindows.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <queue>

using namespace mlir;

namespace msc::passes {

SmallVector<Value> Unit::inputs() const {
  llvm::SetVector<Value> result;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !llvm::is_contained(ops, operand.getDefiningOp()))
        result.insert(operand);
  return result.takeVector();
}

SmallVector<Value> Unit::outputs() const {
  SmallVector<Value> result;
  for (Operation *op : ops)
    for (Value value : op->getResults())
      if (llvm::any_of(value.getUsers(), [&](Operation *user) { return !llvm::is_contained(ops, user); }))
        result.push_back(value);
  return result;
}

Value Unit::stored(Value operand) const {
  auto cast = operand.getDefiningOp<net::CastOp>();
  return cast && llvm::is_contained(ops, cast) ? cast.getOperand() : operand;
}

std::string Unit::name() const {
  std::string text;
  SmallVector<Operation *> named(ops);
  if (kind == Kind::MatMul) // products read and write narrow types themselves
    llvm::erase_if(named, llvm::IsaPred<net::CastOp>);
  for (auto [index, op] : llvm::enumerate(named)) {
    if (index == 4)
      return text + "_and_" + std::to_string(named.size() - 4) + "_more";
    text += (index ? "_" : "") + op->getName().stripDialect().str();
  }
  return text;
}

net::UpdateOp updateOf(Value value) {
  for (Operation *user : value.getUsers())
    if (auto update = dyn_cast<net::UpdateOp>(user); update && update.getNewValue() == value)
      return update;
  return nullptr;
}

namespace {

/// Forms units over one block. Unit numbers are stable; a unit that was merged away is empty.
class UnitBuilder {
public:
  UnitBuilder(net::NetworkOp network, const UnitOptions &options, llvm::function_ref<bool(const Unit &)> fits)
      : network(network), options(options), fits(fits) {}

  std::vector<Unit> run() {
    OperatorOrder operators = withEarlySums(network.getBody().front());
    early = std::move(operators.early);
    for (Operation *op : operators.operators)
      place(op);
    return order();
  }

private:
  void place(Operation *op) {
    if (unitOf.contains(op))
      return; // a product has taken it along
    if (isa<dist::CollectiveOp>(op)) {
      std::optional<int64_t> fusion = dist::fusionOf(op);
      auto together = fusion ? unitOfFusion.find(*fusion) : unitOfFusion.end();
      if (together != unitOfFusion.end())
        return append(together->second, op);
      if (fusion)
        unitOfFusion[*fusion] = units.size();
      return start(Unit::Kind::Collective, op);
    }
    if (isa<dist::SliceOp>(op))
      return start(Unit::Kind::Slice, op);
    if (isa<net::ConstantOp>(op))
      return start(Unit::Kind::Constant, op);
    if (auto cast = dyn_cast<net::CastOp>(op); cast && isReadInWindows(cast))
      return start(Unit::Kind::Windowed, op);
    if (followsReader(op))
      return; // its reader takes it along
    auto lower = dyn_cast<net::Lower>(op);
    if (!lower)
      return; // parameters, scalars, updates and the terminator are no steps
    switch (lower.loweringKind()) {
    case net::LoweringKind::View: return start(Unit::Kind::View, op);
    case net::LoweringKind::MatMul: return start(Unit::Kind::MatMul, op);
    case net::LoweringKind::Regions: return start(Unit::Kind::Regions, op);
    case net::LoweringKind::Library: return start(Unit::Kind::Call, op);
    case net::LoweringKind::Expanded: llvm_unreachable("the partition expands these");
    case net::LoweringKind::Generic: break;
    }
    if (options.fusion && (joinEpilogue(op) || joinCluster(op) || computeAgain(op)))
      return;
    startCluster(op);
  }

  /// A cast of a narrow type to f32 with one reader, which may be fused.
  bool followsReader(Operation *op) const {
    if (!options.fusion || !options.castsFollowReaders || !isa<net::CastOp>(op) || !op->hasOneUse())
      return false;
    Type from = getElementTypeOrSelf(op->getOperand(0).getType()), to = getElementTypeOrSelf(op->getResult(0).getType());
    auto reader = dyn_cast<net::Lower>(*op->user_begin());
    return (from.isBF16() || from.isF16()) && to.isF32() && reader && reader.loweringKind() == net::LoweringKind::Generic;
  }

  /// The cast that waits for the reader of this operand, or null.
  Operation *waitingCast(Value operand) const {
    Operation *producer = operand.getDefiningOp();
    return producer && !unitOf.contains(producer) && followsReader(producer) ? producer : nullptr;
  }
  /// What is read where the reader takes waiting casts along.
  Value stored(Value operand) const {
    Operation *cast = waitingCast(operand);
    return cast ? cast->getOperand(0) : operand;
  }

  /// The unit with `op` and the casts that wait for it. `known`: operands of which the unit has the cast, and what they were.
  Unit grownBy(const Unit &unit, Operation *op, SmallVectorImpl<std::pair<OpOperand *, Value>> &known) const {
    Unit grown = unit;
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *cast = waitingCast(operand.get());
      if (!cast || llvm::is_contained(grown.ops, cast))
        continue;
      auto same = llvm::find_if(grown.ops, [&](Operation *other) {
        return isa<net::CastOp>(other) && other->getOperand(0) == cast->getOperand(0) && other->getResultTypes() == cast->getResultTypes();
      });
      if (same == grown.ops.end() || net::getId(cast)) { // gradients name their operator by its number
        grown.ops.push_back(cast);
      } else {
        known.push_back({&operand, operand.get()});
        operand.set((*same)->getResult(0));
      }
    }
    grown.ops.push_back(op);
    return grown;
  }

  /// Takes up what `grown` has more.
  void growTo(size_t unit, const Unit &grown) {
    Operation *reader = grown.ops.back();
    for (Operation *op : ArrayRef(grown.ops).drop_front(units[unit].ops.size())) {
      if (net::getPhase(op) != net::getPhase(reader)) { // a cast that begins a unit is what the unit is called by
        net::setPhase(op, net::getPhase(reader));
        net::setInstanceName(op, net::getInstanceName(reader));
      }
      append(unit, op);
    }
  }

  void startCluster(Operation *op) {
    SmallVector<std::pair<OpOperand *, Value>> known;
    Unit grown = grownBy({Unit::Kind::Cluster, {}}, op, known);
    if (grown.ops.size() > 1 && !fits(grown)) {
      for (Operation *cast : ArrayRef(grown.ops).drop_back())
        start(Unit::Kind::Cluster, cast);
      grown.ops = {op};
    }
    units.push_back({Unit::Kind::Cluster, {}});
    ancestors.emplace_back();
    growTo(units.size() - 1, grown);
    forget(known);
  }

  /// Casts that nobody reads, as the unit has them.
  static void forget(ArrayRef<std::pair<OpOperand *, Value>> known) {
    for (auto [operand, before] : known)
      if (before.use_empty())
        before.getDefiningOp()->erase();
  }

  void start(Unit::Kind kind, Operation *op) {
    unitOf[op] = units.size();
    units.push_back({kind, {op}});
    ancestors.emplace_back();
    inherit(units.size() - 1, op);
  }

  void append(size_t unit, Operation *op) {
    unitOf[op] = unit;
    units[unit].ops.push_back(op);
    inherit(unit, op);
  }

  /// The unit has taken up `op`: what the operands depend on it depends on too, and so does all that reads the unit.
  void inherit(size_t unit, Operation *op) {
    bool grew = false;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && unitOf.contains(producer))
        grew |= inherit(unit, unitOf[producer]);
    SmallVector<size_t> work;
    if (grew && units[unit].ops.size() > 1)
      work.push_back(unit);
    while (!work.empty()) {
      size_t from = work.pop_back_val();
      for (Operation *member : units[from].ops)
        for (Operation *user : member->getUsers())
          if (auto reader = unitOf.find(user); reader != unitOf.end() && reader->second != from)
            if (inherit(reader->second, from))
              work.push_back(reader->second);
    }
  }

  /// True if that is news.
  bool inherit(size_t unit, size_t from) {
    if (unit == from)
      return false;
    llvm::BitVector &own = ancestors[unit], more = ancestors[from];
    more.resize(std::max<size_t>(more.size(), from + 1));
    more.set(from);
    if (!more.test(own))
      return false;
    own |= more;
    return true;
  }

  /// Bias and activation of a product, where the product itself is used nowhere else: of f32, or of a narrow type that `op` reads through a cast
  /// and that a cast of its result brings back. A narrow product takes only a bias that would be read and written for its own sake.
  bool joinEpilogue(Operation *op) {
    Value product = op->getNumOperands() == 0 ? Value() : stored(op->getOperand(0));
    Operation *producer = product ? product.getDefiningOp() : nullptr;
    if (!producer || !product.hasOneUse() || !unitOf.contains(producer))
      return false;
    size_t unit = unitOf[producer];
    if (units[unit].kind != Unit::Kind::MatMul || units[unit].ops.back() != producer)
      return false;
    const bool isNarrow = product != op->getOperand(0);
    Operation *rounding = isNarrow ? roundingTo(getElementTypeOrSelf(product.getType()), op) : nullptr;
    if (isNarrow ? !rounding || net::isRecomputed(op) || net::isCopy(op) : !getElementTypeOrSelf(product.getType()).isF32())
      return false; // what is computed again, and perhaps for other readers, is rounded as it was
    Operation *bias = nullptr; // its cast
    switch (cast<net::Lower>(op).epilogueKind()) {
    case net::EpilogueKind::None: return false;
    case net::EpilogueKind::Bias:
      bias = waitingCast(op->getOperand(1));
      if (units[unit].ops.size() != 1 || dependsOn(stored(op->getOperand(1)), unit) || !mayHaveBias(op) ||
          (isNarrow && !(bias && getElementTypeOrSelf(bias->getOperand(0).getType()) == getElementTypeOrSelf(product.getType()) && isStoredAnyway(rounding))))
        return false;
      if (bias && !isNarrow)
        start(Unit::Kind::Cluster, bias); // no product of f32 takes one along
      break;
    case net::EpilogueKind::ReLU:
      if (llvm::any_of(units[unit].ops, [](Operation *member) { return cast<net::Lower>(member).epilogueKind() == net::EpilogueKind::ReLU; }))
        return false;
      break;
    }
    if (isNarrow)
      append(unit, waitingCast(op->getOperand(0)));
    if (bias && isNarrow)
      append(unit, bias);
    append(unit, op);
    if (rounding)
      append(unit, rounding);
    return true;
  }

  /// The cast to a narrow type that is all that reads the result of `op`, or null.
  static Operation *roundingTo(Type type, Operation *op) {
    auto rounding = op->hasOneUse() ? dyn_cast<net::CastOp>(*op->user_begin()) : net::CastOp();
    return rounding && samePhase(op, rounding) && getElementTypeOrSelf(rounding.getType()) == type ? rounding.getOperation() : nullptr;
  }

  /// What `rounding` makes, or ReLU makes of it, is in memory whatever becomes of its producer, and is large enough to be worth a kernel that rounds a bias.
  bool isStoredAnyway(Operation *rounding) const {
    auto readerOf = [&](Operation *user) { return followsReader(user) ? *user->user_begin() : user; };
    if (rounding->hasOneUse())
      if (auto reader = dyn_cast<net::Lower>(readerOf(*rounding->user_begin())); reader && reader.epilogueKind() == net::EpilogueKind::ReLU)
        if (Operation *last = roundingTo(getElementTypeOrSelf(rounding->getResult(0).getType()), reader))
          return isStoredAnyway(last);
    return capacityBytes(rounding->getResult(0).getType()) >= options.leastBytesOfNarrowSums &&
           llvm::any_of(rounding->getUsers(), [&](Operation *user) {
             auto lower = dyn_cast<net::Lower>(user);
             return !lower || lower.loweringKind() != net::LoweringKind::Generic || net::getPhase(readerOf(user)) != net::getPhase(rounding);
           });
  }

  /// On GPUs a product whose rows do not begin at multiples of 16 bytes is computed with some more columns, for which a bias has nothing. Pieces differ by
  /// a column at most, so that only equal ones can all be right.
  bool mayHaveBias(Operation *op) const {
    const Type product = stored(op->getOperand(0)).getType();
    const std::vector<int64_t> shape = dist::globalShape(product);
    const int64_t pieces = dist::hasSharding(product) ? dist::shardingOf(product).pieces(shape.size() - 1) : 1;
    return !options.castsFollowReaders || shape.back() * static_cast<int64_t>(net::elementBytes(product)) % (16 * pieces) == 0;
  }

  /// Joins the cluster among the producers of the operands from which it reads most, and of such the latest; what writes a parameter one
  /// that reads it. A reduction that can join none of these joins one that reduces what it reads too.
  bool joinCluster(Operation *op) {
    std::map<size_t, int64_t, std::greater<>> bytes; // of what units make and it reads
    llvm::SmallSetVector<Value, 4> reads;
    for (Value operand : op->getOperands())
      reads.insert(stored(operand));
    for (Value read : reads)
      if (Operation *producer = read.getDefiningOp(); producer && unitOf.contains(producer))
        if (size_t unit = unitOf[producer]; units[unit].kind == Unit::Kind::Cluster)
          bytes[unit] += capacityBytes(read.getType());
    SmallVector<size_t> candidates = llvm::to_vector(llvm::make_first_range(bytes));
    net::UpdateOp update = op->getNumResults() == 1 ? updateOf(op->getResult(0)) : nullptr;
    auto updates = [&](size_t unit) { // the new value is made where the old one is read
      return update && llvm::any_of(units[unit].ops, [&](Operation *member) { return llvm::is_contained(member->getOperands(), update.getParameter()); });
    };
    std::stable_partition(candidates.begin(), candidates.end(), updates);
    if (candidates.size() > 1 && joinBoth(op, candidates[1], candidates[0]))
      return true;
    llvm::stable_sort(candidates, [&](size_t a, size_t b) { return std::pair(updates(a), bytes[a]) > std::pair(updates(b), bytes[b]); });
    for (size_t unit : reducingAlike(op))
      if (!llvm::is_contained(candidates, unit))
        candidates.push_back(unit);
    for (size_t unit : candidates) {
      if (units[unit].ops.size() >= options.maxOperators || !samePhase(units[unit].ops.front(), op) ||
          isTangled(op, unit) || (early.contains(op) && waits(op, unit)) || keepsWide(op, unit) || keepsUpdate(op, unit))
        continue;
      SmallVector<std::pair<OpOperand *, Value>> known;
      Unit grown = grownBy(units[unit], op, known);
      if (grown.ops.size() > options.maxOperators || !fits(grown)) {
        for (auto [operand, before] : known)
          operand->set(before);
        continue;
      }
      growTo(unit, grown);
      forget(known);
      return true;
    }
    return false;
  }

  /// Clusters that reduce a tensor as large as this reduction's over the same dimensions and read that operand besides: the gradients
  /// of a norm's scale and shift.
  llvm::SmallSetVector<size_t, 2> reducingAlike(Operation *op) const {
    llvm::SmallSetVector<size_t, 2> clusters;
    if (op->getNumOperands() != 1 || op->getNumResults() != 1 || isElementwise(op) || isa<net::CastOp>(op))
      return clusters;
    for (Operation *reader : stored(op->getOperand(0)).getUsers())
      if (auto at = unitOf.find(reader); at != unitOf.end() && units[at->second].kind == Unit::Kind::Cluster)
        if (llvm::any_of(units[at->second].ops, [&](Operation *member) { return isAlike(member, op); }))
          clusters.insert(at->second);
    return clusters;
  }

  /// Both reduce as large a tensor over the same dimensions.
  static bool isAlike(Operation *a, Operation *b) {
    return a->getNumOperands() == 1 && a->getNumResults() == 1 && a->getAttr("axis") == b->getAttr("axis") &&
           a->getOperandTypes() == b->getOperandTypes() && a->getResultTypes() == b->getResultTypes();
  }

  /// A reduction of elements that a cluster which cannot take it along would write for it alone becomes a cluster that makes them itself,
  /// where it reads less for that than they are written and read: the gradient of a norm's scale sums what the cluster of the input's
  /// gradient knows, in another direction.
  bool computeAgain(Operation *op) {
    Operation *last = op->getNumOperands() == 1 ? op->getOperand(0).getDefiningOp() : nullptr;
    auto at = last ? unitOf.find(last) : unitOf.end();
    if (at == unitOf.end() || units[at->second].kind != Unit::Kind::Cluster || !last->hasOneUse() || isElementwise(op) || early.contains(op) || net::isCopy(op))
      return false;
    const size_t unit = at->second;
    if (net::getPhase(op) != net::Phase::Backward || net::getPhase(units[unit].ops.front()) != net::Phase::Backward || !samePhase(last, op))
      return false; // gradients name forward operators by their numbers: these stay
    SmallVector<Operation *> slice = cheapSlice(last, unit);
    if (slice.empty() || bytesReadFor(slice, op) >= 2 * capacityBytes(last->getResult(0).getType()))
      return false;
    OpBuilder builder(op);
    IRMapping again;
    Unit own{Unit::Kind::Cluster, {}};
    for (Operation *member : slice) {
      own.ops.push_back(builder.clone(*member, again));
      net::setInstanceName(own.ops.back(), net::getInstanceName(op));
    }
    own.ops.push_back(op);
    op->setOperand(0, again.lookup(last->getResult(0)));
    Unit rest{Unit::Kind::Cluster, units[unit].ops};
    SmallVector<Operation *> unused; // readers first
    for (Operation *member : llvm::reverse(units[unit].ops))
      if (member == last || (!member->use_empty() && llvm::all_of(member->getUsers(), [&](Operation *user) { return llvm::is_contained(unused, user); }))) {
        unused.push_back(member);
        llvm::erase(rest.ops, member);
      }
    if (own.ops.size() > options.maxOperators || llvm::any_of(unused, net::getId) || !fits(own) || (!rest.ops.empty() && !fits(rest))) {
      op->setOperand(0, last->getResult(0));
      for (Operation *member : llvm::reverse(ArrayRef(own.ops).drop_back()))
        member->erase();
      return false;
    }
    units[unit] = rest;
    for (Operation *member : unused) {
      unitOf.erase(member);
      member->erase();
    }
    start(Unit::Kind::Cluster, own.ops.front());
    for (Operation *member : ArrayRef(own.ops).drop_front())
      append(units.size() - 1, member);
    return true;
  }

  /// The members of a cluster that make the elements of `last`, in order, where these are cheap; else none. What has fewer elements is read,
  /// and what others read already.
  SmallVector<Operation *> cheapSlice(Operation *last, size_t unit) const {
    const int64_t elements = cast<RankedTensorType>(last->getResult(0).getType()).getNumElements();
    llvm::SmallSetVector<Operation *, 8> slice;
    for (Operation *member : llvm::reverse(units[unit].ops)) {
      const bool isStored = llvm::any_of(member->getUsers(), [&](Operation *user) {
        return member != last && !llvm::is_contained(units[unit].ops, user);
      });
      if (member != last && (isStored || llvm::none_of(member->getUsers(), [&](Operation *user) { return slice.contains(user); }) ||
                             cast<RankedTensorType>(member->getResult(0).getType()).getNumElements() < elements))
        continue;
      if (!net::isCheap(member) || !isElementwise(member) || early.contains(member))
        return {};
      slice.insert(member);
    }
    return llvm::to_vector(llvm::reverse(slice));
  }

  /// What `reduction` would read to compute `slice`, but for what another one over the same dimensions, which comes later and may join it, reads as well.
  int64_t bytesReadFor(ArrayRef<Operation *> slice, Operation *reduction) const {
    llvm::SmallSetVector<Value, 4> reads;
    for (Operation *member : slice)
      for (Value operand : member->getOperands())
        if (!llvm::is_contained(slice, operand.getDefiningOp()))
          reads.insert(operand);
    int64_t bytes = 0;
    for (Value read : reads)
      if (llvm::none_of(read.getUsers(), [&](Operation *user) {
            return user != reduction && !unitOf.contains(user) && samePhase(user, reduction) && isAlike(user, reduction);
          }))
        bytes += capacityBytes(read.getType());
    return bytes;
  }

  /// Makes one cluster of two of the same phase that the operator reads, where the second only makes elements of elements: what was
  /// cast, centred and scaled for the operator is not stored then.
  bool joinBoth(Operation *op, size_t unit, size_t other) {
    auto phase = [this](size_t of) { return net::getPhase(units[of].ops.front()); };
    auto comesThrough = [&](Value value) { // something that is in neither needs one of them
      Operation *producer = value.getDefiningOp();
      auto at = producer ? unitOf.find(producer) : unitOf.end();
      return at != unitOf.end() && at->second != unit && at->second != other && (dependsOn(value, unit) || dependsOn(value, other));
    };
    if (!options.castsFollowReaders || early.contains(op) || phase(unit) != phase(other) || phase(unit) != net::getPhase(op) ||
        !samePhase(units[unit].ops.front(), op) || !samePhase(units[unit].ops.front(), units[other].ops.back()) ||
        keepsUpdate(op, unit) || keepsUpdate(op, other) || !llvm::all_of(units[other].ops, isElementwise) || dependsOn(units[unit].ops.back()->getResult(0), other) ||
        llvm::any_of(op->getOperands(), [&](Value operand) { return comesThrough(stored(operand)); }) ||
        llvm::any_of(units[other].inputs(), comesThrough))
      return false;
    Unit both = units[unit];
    llvm::append_range(both.ops, units[other].ops);
    auto readsNarrow = [](Operation *member) {
      return isa<net::CastOp>(member) && getElementTypeOrSelf(member->getOperand(0).getType()).getIntOrFloatBitWidth() == 16;
    };
    if (llvm::none_of(both.ops, readsNarrow) && !(llvm::all_of(both.ops, isElementwise) && isElementwise(op)))
      return false; // in f32 a sum would be computed with more live values, and saves less
    SmallVector<std::pair<OpOperand *, Value>> known;
    Unit grown = grownBy(both, op, known);
    if (grown.ops.size() > options.maxOperators || !fits(grown)) {
      for (auto [operand, before] : known)
        operand->set(before);
      return false;
    }
    moveTo(unit, other);
    growTo(unit, grown);
    forget(known);
    return true;
  }

  /// All operands are of the result's shape, or smaller.
  static bool isElementwise(Operation *op) {
    auto elements = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); };
    return op->getNumResults() == 1 &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return elements(operand) <= elements(op->getResult(0)); });
  }

  /// Merges `other` into `unit`, which does not depend on it.
  void moveTo(size_t unit, size_t other) {
    for (Operation *op : units[other].ops) {
      unitOf[op] = unit;
      units[unit].ops.push_back(op);
    }
    units[other].ops.clear();
    auto has = [&](size_t of, size_t which) { return which < ancestors[of].size() && ancestors[of].test(which); };
    ancestors[unit] |= ancestors[other];
    if (has(unit, unit))
      ancestors[unit].reset(unit);
    for (size_t reader = 0; reader < units.size(); ++reader)
      if (reader != unit && (has(reader, other) || has(reader, unit)))
        inherit(reader, unit);
  }

  /// Updates write parameters in place; kept apart, they can wait for the last reader of the old value. Forward operators
  /// that are computed again run by themselves, as the first time: their sums have the same order. A cast belongs to its reader:
  /// what one pass makes and keeps for the other is kept as it is stored.
  static bool samePhase(Operation *a, Operation *b) {
    if (Operation *maker = isa<net::CastOp>(b) ? b->getOperand(0).getDefiningOp() : nullptr; maker && net::getPhase(maker) != net::getPhase(b))
      return false;
    return (net::getPhase(a) == net::Phase::Update) == (net::getPhase(b) == net::Phase::Update) && net::isCopy(a) == net::isCopy(b);
  }

  /// The backward pass would read in f32 what the forward pass made of a narrow value, not the narrow value, which is there.
  bool keepsWide(Operation *op, size_t unit) const {
    return net::getPhase(op) == net::Phase::Backward && net::getPhase(units[unit].ops.front()) == net::Phase::Forward &&
           llvm::any_of(op->getOperands(), [&](Value operand) { return waitingCast(operand); });
  }

  /// A new value of a parameter that is only taken where something holds that comes later, or needs the unit, would be kept beside the old one.
  bool keepsUpdate(Operation *op, size_t unit) {
    auto comesLater = [&](Value operand) {
      Operation *maker = operand.getDefiningOp();
      return maker && maker != op && isa<net::Lower>(maker) && !unitOf.contains(maker);
    };
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      net::UpdateOp update = isa<net::SelectOp>(user) ? updateOf(user->getResult(0)) : nullptr;
      return update && (isTangled(user, unit) || (llvm::is_contained(op->getOperands(), update.getParameter()) && llvm::any_of(user->getOperands(), comesLater)));
    });
  }

  /// An operand that does not come from the unit itself would have to wait for it: joining would make a cycle.
  bool isTangled(Operation *op, size_t unit) {
    return llvm::any_of(op->getOperands(), [&](Value read) {
      Value operand = stored(read);
      Operation *producer = operand.getDefiningOp();
      return producer && unitOf.contains(producer) && unitOf[producer] != unit && dependsOn(operand, unit);
    });
  }

  /// An operand is made behind the unit.
  bool waits(Operation *op, size_t unit) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *producer = stored(operand).getDefiningOp();
      auto at = producer ? unitOf.find(producer) : unitOf.end();
      return at != unitOf.end() && at->second > unit;
    });
  }

  /// True if computing `value` needs `unit` to have run. A unit that stands before `unit` may depend on it all the same:
  /// it may read a unit that grew later.
  bool dependsOn(Value value, size_t unit) const {
    Operation *producer = value.getDefiningOp();
    auto at = producer ? unitOf.find(producer) : unitOf.end();
    if (at == unitOf.end())
      return false;
    const llvm::BitVector &before = ancestors[at->second];
    return at->second == unit || (unit < before.size() && before.test(unit));
  }

  /// Kahn's algorithm, smallest unit number first, so the order stays close to the program's.
  std::vector<Unit> order() {
    std::vector<llvm::SetVector<size_t>> after(units.size());
    std::vector<unsigned> waiting(units.size(), 0);
    auto edge = [&](size_t from, size_t to) {
      if (from != to && after[from].insert(to))
        ++waiting[to];
    };
    for (size_t unit = 0; unit < units.size(); ++unit)
      for (Value input : units[unit].inputs())
        if (Operation *producer = input.getDefiningOp(); producer && unitOf.contains(producer))
          edge(unitOf[producer], unit);
    // The old value of a parameter is read before the new one is computed (it may be computed in place).
    for (auto update : network.getBody().front().getOps<net::UpdateOp>()) {
      Operation *writer = update.getNewValue().getDefiningOp();
      if (!writer || !unitOf.contains(writer))
        continue;
      for (size_t reader : readersOf(update.getParameter()))
        edge(reader, unitOf[writer]);
    }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
    for (size_t unit = 0; unit < units.size(); ++unit)
      if (waiting[unit] == 0)
        ready.push(unit);
    std::vector<Unit> result;
    [[maybe_unused]] size_t ordered = 0;
    while (!ready.empty()) {
      size_t unit = ready.top();
      ready.pop();
      ++ordered;
      if (!units[unit].ops.empty()) // it was merged into another
        result.push_back(units[unit]);
      for (size_t next : after[unit])
        if (--waiting[next] == 0)
          ready.push(next);
    }
    assert(ordered == units.size() && "units form a cycle");
    return result;
  }

  /// Units that read the memory of a value, through views too.
  SmallVector<size_t> readersOf(Value value) {
    SmallVector<size_t> readers;
    SmallVector<Value> work{value};
    while (!work.empty())
      for (Operation *user : work.pop_back_val().getUsers()) {
        if (!unitOf.contains(user))
          continue;
        readers.push_back(unitOf[user]);
        if (units[unitOf[user]].kind == Unit::Kind::View)
          work.append(user->result_begin(), user->result_end());
      }
    return readers;
  }

  net::NetworkOp network;
  const UnitOptions &options;
  llvm::function_ref<bool(const Unit &)> fits;
  std::vector<Unit> units;
  std::vector<llvm::BitVector> ancestors; ///< of each unit: the units that have to run before it
  llvm::DenseMap<Operation *, size_t> unitOf;
  llvm::DenseSet<Operation *> early; ///< see OperatorOrder
  std::map<int64_t, size_t> unitOfFusion; ///< of the collectives that run as one
};

} // namespace

std::vector<Unit> formUnits(net::NetworkOp network, const UnitOptions &options,
                            llvm::function_ref<bool(const Unit &)> fits) {
  return UnitBuilder(network, options, fits).run();
}

int64_t capacityBytes(Type tensor) {
  const std::vector<int64_t> shape = dist::globalShape(tensor);
  const int64_t elements = elementCount(dist::hasSharding(tensor) ? dist::shardingOf(tensor).capacity(shape) : shape);
  return elements * static_cast<int64_t>(net::elementBytes(tensor));
}

net::OperatorCost costOf(Operation *op) {
  auto shapes = [](ValueRange values) {
    SmallVector<std::vector<int64_t>> result;
    for (Value value : values)
      result.push_back(dist::shardingOf(value).capacity(dist::globalShape(value.getType())));
    return result;
  };
  return cast<net::CostInterface>(op).cost(shapes(op->getOperands()), shapes(op->getResults()));
}

double operatorUs(Operation *op, const MachineModel &machine) {
  if (!isa<net::CostInterface>(op))
    return 0;
  return net::operatorUs(costOf(op), net::arithmeticOf(op, machine), machine);
}

} // namespace msc::passes
