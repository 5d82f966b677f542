// The pass `msc-partition`. One walk in order: every operator gets an axis assignment, its operands are brought to the
// shardings that the assignment asks for, its results get theirs.
#include "dialects/net/GradientSum.h"
#include "dialects/net/NetOps.h"
#include "dialects/net/Pieces.h"
#include "dialects/net/Recompute.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "passes/partition/AlikeTerms.h"
#include "passes/partition/Expansion.h"
#include "passes/partition/Inherit.h"
#include "passes/partition/Linear.h"
#include "passes/partition/Moves.h"
#include "passes/partition/Passes.h"
#include "passes/partition/Widen.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Decisions.h"
#include "passes/sharding/OutStrategy.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/partition/Passes.h.inc"

namespace {

/// Everything is said about *roots*: network inputs, parameters and results of operators, as they stand in the network
/// before moves are put between them.
class Partitioner {
public:
  explicit Partitioner(net::NetworkOp network) : network(network), devices(getDevices(network)) {}

  LogicalResult run() {
    Block &block = network.getBody().front();
    placeInputs(block);
    for (auto param : block.getOps<net::ParamOp>())
      paramByName[param.getName()] = param;
    for (auto param : block.getOps<net::ParamOp>())
      place(param.getValue(), storedSharding(param));
    for (Operation &op : block)
      if (net::getPhase(&op) == net::Phase::Forward && net::getId(&op))
        forwardById[*net::getId(&op)] = &op;
    SmallVector<Operation *> operations;
    for (Operation &op : block)
      operations.push_back(&op);
    for (Operation *op : operations)
      if (failed(partition(op)))
        return failure();
    for (Operation *op : llvm::reverse(expanded))
      op->erase();
    settleCasts(block); // unread ones would have sums completed where they lie
    if (!expansions.empty())
      network->setAttr(expansionsAttributeName, ArrayAttr::get(network.getContext(), expansions));
    return success();
  }

private:
  struct Version {
    Sharding sharding;
    Value value;
  };
  /// How a forward operator used its operands.
  struct Uses {
    SmallVector<Value> roots;
    std::vector<Sharding> shardings;
    net::Assignment assignment;
  };

  net::NetworkOp network;
  int64_t devices;
  DenseMap<Value, Sharding> own;                  // of each root: completed
  DenseMap<Value, SmallVector<Version>> versions; // of each root: what already exists, completed one first
  DenseMap<Value, std::string> completionReasons; // of each root that is partial
  llvm::DenseSet<Operation *> settledAdditions;   // see addAlikeTermsFirst
  DenseMap<Operation *, Uses> uses;               // of forward operators
  DenseMap<Value, Value> unrounded;               // of each root that was rounded to a narrow type: what it was
  DenseMap<int64_t, Operation *> forwardById;
  llvm::StringMap<net::ParamOp> paramByName;
  SmallVector<Attribute> expansions; // a record of each of those
  SmallVector<Operation *> expanded; // others stand in their places; their gradients still ask for them
  DenseMap<Value, Value> standIns;   // of results of expanded operators
  DenseMap<Value, Value> copyOf;     // what stands for results of expanded copies -> for those of their forward operators
  DenseMap<Value, std::optional<Sharding>> updateTargets; // of what updates read: every parameter's reads the same few scalars
  MoveBuilder moves;

  //===-- values ----------------------------------------------------------===//

  void place(Value root, const Sharding &sharding) {
    Sharding canonical = sharding.canonical();
    root.setType(dist::withSharding(root.getType(), canonical));
    canonical.partial.clear();
    own[root] = canonical.canonical();
  }

  Sharding replicated(Value value) const { return Sharding::replicated(devices, shapeOf(value).size()).canonical(); }

  void placeInputs(Block &block) {
    std::vector<Sharding> inputs = getInputShardings(network);
    for (auto [i, input] : llvm::enumerate(block.getArguments()))
      place(input, i < inputs.size() ? inputs[i] : replicated(input));
  }

  /// States are stored like the parameter that they belong to.
  Sharding storedSharding(net::ParamOp param) {
    if (auto stored = getStoredSharding(param))
      return *stored;
    if (net::ParamOp owner = paramByName.lookup(param.getStateOf());
        owner && shapeOf(owner.getValue()) == shapeOf(param.getValue()))
      if (auto stored = getStoredSharding(owner))
        return *stored;
    return replicated(param.getValue());
  }

  bool isPartial(Value root) const { return dist::shardingOf(root).isPartial(); }

  /// The operator leaves its result as it shall be: nothing is partial, and no out_strategy wants it otherwise.
  bool isPlaced(Value root) const { return !isPartial(root) && dist::shardingOf(root) == own.lookup(root); }

  /// The root with its partial axes completed, and as its operator's out_strategy wants it.
  Value completedValue(Value root) {
    auto &list = versions[root];
    if (list.empty())
      list.push_back({own[root], isPlaced(root) ? root : moves.complete(root, own[root], completionReasons[root])});
    return list.front().value;
  }

  /// The root in a given sharding; made in front of the first operator that wants it, shared by all. One that was rounded
  /// from terms is rounded behind the move, so that completion and move can be planned as one.
  Value versionOf(Value root, const Sharding &target, Operation *user, const std::string &who) {
    Value start = completedValue(root);
    for (const Version &version : versions[root])
      if (version.sharding == target)
        return version.value;
    Value moved;
    if (Value wide = unrounded.lookup(root); wide && isPartial(wide)) {
      moved = roundTo(getElementTypeOrSelf(root.getType()), versionOf(wide, target, user, who), wide);
    } else {
      std::string reason = redistributionReason(who, described(root), own[root], target);
      moved = moves.redistribute(start, target, user, reason);
    }
    versions[root].push_back({target, moved});
    return moved;
  }

  /// "'h'"; a gradient without a name of its own goes by what it is the gradient of: "the gradient of 'h'".
  std::string described(Value root) const {
    auto isUnknown = [](Operation *op) { return isa<dist::ReshardOp>(op) || isWideningCast(op); };
    while (net::getValueName(root).empty() && root.getDefiningOp() && isUnknown(root.getDefiningOp()))
      root = root.getDefiningOp()->getOperand(0);
    Operation *maker = root.getDefiningOp();
    Operation *forward = maker && net::getValueName(root).empty() ? forwardOf(maker) : nullptr;
    std::optional<int64_t> operand = forward ? net::getGradientOfOperand(maker) : std::nullopt;
    std::string name = nameOfValue(operand ? forward->getOperand(*operand) : root);
    return name.empty() ? "" : (operand ? "the gradient of '" : "'") + name + "'";
  }

  //===-- gradients -------------------------------------------------------===//

  /// The forward operator that a backward operator belongs to; null for all others.
  Operation *forwardOf(Operation *op) const {
    if (net::getPhase(op) != net::Phase::Backward)
      return nullptr;
    std::optional<int64_t> id = net::getForwardId(op);
    return id ? forwardById.lookup(*id) : nullptr;
  }

  /// The forward result whose gradient this operand is; null for all others.
  Value resultBehind(OpOperand &operand) const {
    std::optional<int64_t> result = net::getGradientOfResult(operand.getOwner(), operand.getOperandNumber());
    Operation *forward = result ? forwardOf(operand.getOwner()) : nullptr;
    return forward ? forward->getResult(*result) : Value();
  }

  /// Nobody has moved or completed it yet; it may have been read as it was left.
  bool isOnlyAsLeft(Value root) const {
    return llvm::all_of(versions.lookup(root), [&](const Version &version) { return version.value == root; });
  }

  bool isAccumulation(Operation *op) const {
    return passes::isAccumulation(op, [&](Value term) { // of what is rounded: as it was before
      Value root = rootOf(term), wide = unrounded.lookup(root);
      return wide ? wide : root;
    });
  }

  /// Whether what it adds are all terms of a sum, none a sum of others: how the update adds up scalars of all gradients.
  static bool beginsSumOfScalars(Operation *op) {
    auto isSum = [](Operation *other) {
      return other && addsPartials(other) && net::getPhase(other) == net::Phase::Update &&
             cast<RankedTensorType>(other->getResult(0).getType()).getRank() == 0;
    };
    return isSum(op) && llvm::none_of(op->getOperands(), [&](Value term) { return isSum(rootOf(term).getDefiningOp()); });
  }

  /// The root behind the moves that were put in front of a use.
  static Value rootOf(Value value) {
    while (auto move = value.getDefiningOp<dist::ReshardOp>())
      value = move.getSource();
    return value;
  }

  /// The sharding of the value whose gradient this is: as its sum says, else as its consumers tell.
  std::optional<Sharding> gradientTarget(Value gradient) {
    if (Operation *sum = gradient.getDefiningOp())
      if (std::optional<int64_t> result = net::getGradientSum(sum))
        if (Operation *forward = forwardOf(sum))
          return own[forward->getResult(*result)];
    for (OpOperand &use : gradient.getUses()) {
      Operation *user = use.getOwner();
      if (isAccumulation(user))
        if (auto target = gradientTarget(user->getResult(0)))
          return target;
      if (net::getPhase(user) == net::Phase::Update)
        if (auto target = storedTarget(gradient, user))
          return target;
      if (Value result = resultBehind(use))
        return own[result];
    }
    return std::nullopt;
  }

  /// The sharding of the parameter or state that an operator of the update brings together with a value; what becomes of
  /// the value first (clipping, accumulation) is looked through.
  std::optional<Sharding> storedTarget(Value value, Operation *user) {
    for (Value operand : user->getOperands())
      if (rootOf(operand).getDefiningOp<net::ParamOp>() && shapeOf(operand) == shapeOf(value))
        return own[rootOf(operand)];
    for (Value result : user->getResults())
      if (shapeOf(result) == shapeOf(value))
        for (Operation *next : result.getUsers())
          if (auto target = storedTarget(result, next))
            return target;
    return std::nullopt;
  }

  //===-- operators -------------------------------------------------------===//

  LogicalResult partition(Operation *op) {
    if (isa<net::CommunicationInterface>(op))
      return communicate(op);
    if (auto lower = dyn_cast<net::Lower>(op); lower && lower.loweringKind() == net::LoweringKind::Expanded)
      return expand(op);
    if (hasRule(op))
      return partitionOperator(op);
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case<net::ParamOp>([](Operation *) { return success(); })
        .Case([&](net::UpdateOp update) {
          Value parameter = update.getParameter(), value = update.getNewValue();
          update.getNewValueMutable().assign(
              versionOf(value, own[parameter], op, "parameter '" + nameOf(parameter) + "'"));
          return success();
        })
        .Case([&](net::ReturnOp result) {
          for (OpOperand &value : result->getOpOperands())
            value.set(completedValue(value.get()));
          return success();
        })
        .Default([&](Operation *other) {
          if (other->getNumOperands() != 0)
            return LogicalResult(other->emitError("has no sharding rule and cannot be partitioned"));
          for (Value result : other->getResults())
            place(result, replicated(result));
          return LogicalResult(success());
        });
  }

  static std::string nameOf(Value value) { return net::getValueName(value).str(); }

  LogicalResult partitionOperator(Operation *op) {
    SmallVector<Type> rounded;
    auto mayStay = [&](Value term) { return own.contains(term) && isOnlyAsLeft(term); };
    auto typeAdded = [&](Value term) { return typeUnrounded(term) || !mayStay(term) ? typeUnrounded(term) : term.getType(); };
    if (beginsSumOfScalars(op))
      addScalarsByKind(op, mayStay);
    if (isAccumulation(op)) {
      addAlikeTermsFirst(op, typeAdded, settledAdditions);
      if (addsUnrounded(op))
        rounded = takeUnrounded(op);
    }
    OperatorFacts facts = factsOf(op);
    if (addsTermsInPlace(op)) {
      if (computesNarrow(op))
        rounded = widen(op);
      placeResults(op, facts, Pieces(facts.rule.factors.size(), 1), {dist::shardingOf(op->getOperand(0))});
      roundResults(op, rounded);
      return success();
    }
    FailureOr<net::Assignment> assignment = assignmentFor(op, facts);
    if (failed(assignment))
      return failure();
    bringOperands(op, facts, *assignment);
    if (computesNarrow(op))
      rounded = widen(op);
    std::vector<Sharding> results;
    for (size_t i = 0; i < op->getNumResults(); ++i)
      results.push_back(resultSharding(facts.rule, *assignment, i));
    placeResults(op, facts, piecesOf(*assignment), results);
    leaveAsWanted(op, results);
    roundResults(op, rounded);
    return success();
  }

  /// How the user wants result `i` of an operator that leaves it as `left`; nothing where it stays so.
  std::optional<Sharding> wantedResult(Operation *op, size_t i, const Sharding &left) const {
    auto wanted = net::getOutStrategy(op);
    if (!wanted || net::getPhase(op) != net::Phase::Forward)
      return std::nullopt;
    bool agrees = true;
    for (auto [dim, count] : llvm::enumerate((*wanted)[i]))
      agrees &= left.pieces(dim) == count;
    return agrees ? std::nullopt : std::optional(outSharding(left.canonical(), (*wanted)[i]));
  }

  /// Results are completed to what out_strategy says at once.
  void leaveAsWanted(Operation *op, const std::vector<Sharding> &left) {
    for (auto [i, result] : llvm::enumerate(op->getResults()))
      if (auto wanted = wantedResult(op, i, left[i])) {
        own[result] = *wanted;
        if (!isPartial(result))
          completionReasons[result] = "out_strategy of '" + net::getUserName(op).str() + "'";
      }
  }

  /// `widen`, and the casts in front are placed.
  SmallVector<Type> widenPlaced(Operation *op) {
    SmallVector<Type> rounded = widen(op);
    for (Value operand : op->getOperands())
      if (!own.contains(operand))
        place(operand, dist::shardingOf(operand));
    return rounded;
  }

  /// Whoever reads a result that was computed in f32 for a narrow type reads the rounded one.
  void roundResults(Operation *op, ArrayRef<Type> elements) {
    for (auto [result, element] : llvm::zip(op->getResults(), elements)) {
      if (!element)
        continue;
      Value narrow = roundResult(result, element);
      result.replaceUsesWithIf(narrow, [&](OpOperand &use) {
        return !isa<dist::ReshardOp>(use.getOwner()) && use.getOwner() != narrow.getDefiningOp();
      });
    }
  }

  /// The root rounded to a narrow type, a root of its own.
  Value roundResult(Value root, Type element) {
    Value narrow = roundTo(element, completedValue(root), root);
    Sharding sharding = own[root]; // a copy: the map may grow
    place(narrow, sharding);
    unrounded[narrow] = root;
    return narrow;
  }

  FailureOr<net::Assignment> assignmentFor(Operation *op, const OperatorFacts &facts) {
    if (net::isCopy(op))
      if (Operation *forward = forwardOf(op))
        return uses[forward].assignment;
    auto strategy = net::getInStrategy(op);
    if (!strategy || net::getPhase(op) != net::Phase::Forward)
      return inheritAssignment(facts, hintsOf(op), devices);
    auto pieces = piecesOfStrategy(facts, *strategy, devices, /*mayBeEmpty=*/true); // checked when it was chosen
    if (auto *error = std::get_if<StrategyError>(&pieces))
      return op->emitError(error->text);
    return assignmentOf(facts.rule, std::get<Pieces>(pieces), devices);
  }

  /// Other operators in the place of one: its operands are brought to where its strategy wants them, the others inherit.
  LogicalResult expand(Operation *op) {
    OperatorFacts facts = factsOf(op);
    FailureOr<net::Assignment> assignment = assignmentFor(op, facts);
    if (failed(assignment))
      return failure();
    Uses record = bringOperands(op, facts, *assignment);
    for (auto [operand, sharding] : llvm::zip(op->getOperands(), record.shardings))
      own.try_emplace(operand, sharding);
    SmallVector<Value> brought(op->getOperands());
    SmallVector<Type> rounded = computesNarrow(op) ? widenPlaced(op) : SmallVector<Type>(op->getNumResults());
    expanded.push_back(op);
    Operation *last = op->getPrevNode();
    net::setPieces(op, piecesOf(*assignment));
    OpBuilder builder(op);
    SmallVector<Value> results = cast<net::Lower>(op).expand(builder, op->getOperands());
    if (results.empty())
      return failure();
    SmallVector<Operation *> parts;
    for (Operation *part = last ? last->getNextNode() : &op->getBlock()->front(); part != op; part = part->getNextNode())
      parts.push_back(part);
    if (auto id = net::getId(op)) // the gradient belongs to the parts now
      net::setId(results.front().getDefiningOp(), *id);
    for (Operation *part : parts) {
      net::setPhase(part, net::getPhase(op));
      if (net::isCopy(op))
        net::setCopy(part);
      net::setScope(part, net::getScope(op));
      if (isa<net::Operator>(part)) {
        net::setInstanceName(part, partName(op, part));
        net::setWhole(part, op, expansions.size());
      }
      uses[part].assignment = *assignment; // for parts that name its factors
      if (failed(partition(part)))
        return failure();
    }
    for (auto [result, value, element] : llvm::zip(op->getResults(), results, rounded)) {
      if (Value standIn = standIns.lookup(value)) // a part may be expanded itself
        value = standIn;
      net::setValueNames(value.getDefiningOp(), {net::getValueName(result)});
      Value shown = element ? roundResult(value, element) : value;
      if (auto wanted = wantedResult(op, result.getResultNumber(), own[shown]); wanted && !result.use_empty()) {
        shown = versionOf(shown, *wanted, op, "out_strategy of '" + net::getInstanceName(op).str() + "'");
        place(shown, *wanted);
      }
      Sharding sharding = own[shown]; // a copy: the map may grow
      own[result] = sharding;
      result.setType(dist::withSharding((element ? shown : result).getType(), sharding));
      result.replaceAllUsesWith(shown);
      standIns[result] = shown;
      if (Operation *forward = net::isCopy(op) ? forwardOf(op) : nullptr)
        copyOf[shown] = inPlaceOf(forward->getResult(result.getResultNumber()));
    }
    if (!net::getWhole(op))
      expansions.push_back(recordOf(op, brought));
    return success();
  }

  //===-- tensors of single ranks -----------------------------------------===//

  /// Every rank has operands of its own: together they are one tensor, which moves as any other does.
  LogicalResult communicate(Operation *op) {
    OperatorFacts facts = factsOf(op);
    FailureOr<net::Assignment> assignment = assignmentFor(op, facts);
    if (failed(assignment))
      return failure();
    bringOperands(op, facts, *assignment);
    auto communicates = cast<net::CommunicationInterface>(op);
    net::Communication first = communicates.communication(0);
    SmallVector<Value> brought(op->getOperands());
    SmallVector<Type> rounded(op->getNumResults());
    if (first.from.isPartial() && computesNarrow(op)) // what ranks add, they add in f32
      rounded = widenPlaced(op);
    SmallVector<Value> together;
    for (Value operand : op->getNumOperands() == 0 ? SmallVector<Value>{ranks(op)} : SmallVector<Value>(op->getOperands()))
      together.push_back(reinterpret(op, operand, first.shape, first.from));
    for (OpResult result : op->getResults()) {
      net::Communication communication = communicates.communication(result.getResultNumber());
      Value moved = communication.regions.empty() ? redistributed(op, together.front(), communication.to)
                                                  : copiedRows(op, together, communication);
      Value mine = reinterpret(op, moved, cast<RankedTensorType>(result.getType()).getShape(), replicated(result));
      net::setValueNames(mine.getDefiningOp(), {net::getValueName(result)});
      if (Type element = rounded[result.getResultNumber()])
        mine = roundResult(mine, element);
      result.setType(mine.getType());
      place(result, replicated(result));
      result.replaceAllUsesWith(mine);
      standIns[result] = mine;
    }
    expanded.push_back(op);
    if (!net::getWhole(op))
      expansions.push_back(recordOf(op, brought));
    return success();
  }

  /// A part of a communication operator.
  Value partOf(Operation *op, Operation *part) {
    net::setPhase(part, net::getPhase(op));
    net::setScope(part, net::getScope(op));
    net::setInstanceName(part, net::getInstanceName(op));
    net::setWhole(part, op, expansions.size());
    return part->getResult(0);
  }

  Value reinterpret(Operation *op, Value value, ArrayRef<int64_t> shape, const Sharding &sharding) {
    OpBuilder builder(op);
    Type type = RankedTensorType::get(shape, getElementTypeOrSelf(value.getType()));
    Value seen = partOf(op, builder.create<net::ReinterpretOp>(
                                op->getLoc(), dist::withSharding(type, sharding.canonical()), value));
    place(seen, sharding);
    return seen;
  }

  /// The numbers of all ranks.
  Value ranks(Operation *op) {
    OpBuilder builder(op);
    Value all = partOf(op, builder.create<net::RangeOp>(op->getLoc(), 0, devices, 1));
    place(all, replicated(all));
    return all;
  }

  Value redistributed(Operation *op, Value value, const Sharding &target) {
    Sharding wanted = target.canonical();
    if (dist::shardingOf(value) == wanted)
      return value;
    Operation *forward = forwardOf(op);
    const bool isOurs = !forward && net::getPhase(op) != net::Phase::Forward; // a gradient or a loss (autodiff::meanOverRanks)
    Value moved = moves.redistribute(value, wanted, op,
                                     callerOf(op, forward) + (isOurs ? " is the mean over all ranks" : " is written in the network"));
    place(moved, wanted);
    return moved;
  }

  /// Rows of the ranks' tensors in other places.
  Value copiedRows(Operation *op, ArrayRef<Value> together, const net::Communication &communication) {
    OpBuilder builder(op);
    auto copy = builder.create<net::CopyRegionsOp>(op->getLoc(), ValueRange(together), communication.shape,
                                                   flattened(communication.regions), llvm::APFloat(0.0));
    OperatorFacts facts = factsOf(copy);
    net::Assignment assignment = inheritAssignment(facts, {{false, 0, communication.from.canonical()}}, devices);
    place(copy.getOutput(), resultSharding(facts.rule, assignment, 0));
    return partOf(op, copy);
  }

  /// "softmax.ReduceMax": what dumps call a part of an expanded operator.
  static std::string partName(Operation *whole, Operation *part) {
    StringRef name = net::getInstanceName(whole);
    return ((name.empty() ? whole->getName().stripDialect() : name) + "." + part->getName().stripDialect()).str();
  }

  /// Terms of one gradient that lie alike are added where they are and moved once; those that are partial over the same axes
  /// while they are partial. One that was partial before it was rounded lies as it did then.
  bool addsTermsInPlace(Operation *op) const {
    if (!addsPartials(op) || net::getPhase(op) == net::Phase::Forward || net::isCopy(op))
      return false;
    Type first = op->getOperand(0).getType();
    bool sums =
        llvm::all_of(dist::shardingOf(first).partial, [](const PartialAxis &p) { return p.kind == ReduceKind::Sum; });
    bool mayMove = dist::shardingOf(first).isPartial() || isAccumulation(op);
    return mayMove && sums && llvm::all_of(op->getOperands(), [&](Value term) {
             return term.getType() == first && isOnlyAsLeft(term) && !typeUnrounded(term); // else completed for nothing
           });
  }

  /// Contributions to a narrow gradient that are partial alike before they are rounded, which nobody else reads: as they were then,
  /// their sum is completed once instead of each of them.
  bool addsUnrounded(Operation *op) const {
    const Type first = typeUnrounded(op->getOperand(0));
    return first && llvm::all_of(op->getOperands(), [&](Value term) { return typeUnrounded(term) == first; });
  }

  /// Of a term that is partial before it is rounded and that nothing but one addition reads: its type then; else null.
  Type typeUnrounded(Value term) const {
    Value wide = unrounded.lookup(term);
    return wide && isPartial(wide) && term.hasOneUse() && !versions.contains(term) && versions.lookup(wide).size() == 1 ? wide.getType() : Type();
  }

  /// They are neither completed nor rounded on their own any more. Returns what the sum is rounded to.
  SmallVector<Type> takeUnrounded(Operation *op) {
    Type element = getElementTypeOrSelf(op->getResult(0));
    for (OpOperand &operand : op->getOpOperands()) {
      Value narrow = operand.get(), wide = unrounded.lookup(narrow), completed = versions[wide].front().value;
      operand.set(wide);
      for (Value forgotten : {narrow, completed}) {
        own.erase(forgotten);
        forgotten.getDefiningOp()->erase();
      }
      unrounded.erase(narrow);
      versions.erase(wide);
    }
    op->getResult(0).setType(cast<RankedTensorType>(op->getResult(0).getType()).clone(getElementTypeOrSelf(op->getOperand(0))));
    return {element};
  }

  void placeResults(Operation *op, const OperatorFacts &facts, const Pieces &pieces,
                    const std::vector<Sharding> &shardings) {
    for (auto [result, sharding] : llvm::zip(op->getResults(), shardings)) {
      place(result, sharding);
      if (isPartial(result))
        completionReasons[result] = completionReason(op, forwardOf(op), facts, pieces);
    }
  }

  Uses bringOperands(Operation *op, const OperatorFacts &facts, const net::Assignment &assignment) {
    Uses record{.assignment = assignment};
    Operation *forward = forwardOf(op);
    std::string who = callerOf(op, forward);
    for (OpOperand &operand : op->getOpOperands()) {
      Value root = operand.get();
      Sharding target = operandSharding(facts.rule, assignment, operand.getOperandNumber()).canonical();
      record.roots.push_back(root);
      record.shardings.push_back(target);
      operand.set(versionOf(root, target, op, who));
    }
    if (!forward && net::getPhase(op) == net::Phase::Forward)
      uses[op] = record;
    return record;
  }

  //===-- hints -----------------------------------------------------------===//

  std::vector<ShardingHint> hintsOf(Operation *op) {
    if (net::getPhase(op) == net::Phase::Update)
      return updateHints(op);
    Operation *forward = forwardOf(op);
    std::vector<ShardingHint> hints;
    if (auto factors = net::getResultFactors(op); !factors.empty())
      hints.push_back({true, 0, shardingBy(factors, uses[forward ? forward : op].assignment)});
    if (isAccumulation(op)) {
      Sharding first = own[op->getOperand(0)];
      if (llvm::all_of(op->getOperands(), [&](Value term) { return !isPartial(term) && !typeUnrounded(term) && own[term] == first; }))
        return {{true, 0, first}}; // moved once, as a sum
      if (auto target = gradientTarget(op->getResult(0)))
        return {{true, 0, *target}}; // exactly there: axes that a term has besides would have each reader gather the sum
    }
    for (OpOperand &operand : op->getOpOperands())
      if (auto sharding = atHand(operand, forward))
        hints.push_back({false, operand.getOperandNumber(), *sharding});
    // What a factor that only the result has goes by: the operand of the forward operator whose gradient this is.
    if (std::optional<int64_t> operand = net::getGradientOfOperand(op); forward && operand)
      hints.push_back({true, 0, uses[forward].shardings[*operand]});
    return hints;
  }

  /// The sharding of a value whose dimensions carry these factors; -1: none.
  static Sharding shardingBy(ArrayRef<int64_t> factors, const net::Assignment &assignment) {
    Sharding sharding{.axes = assignment.matrix};
    for (int64_t factor : factors)
      sharding.dims.push_back(factor < 0 ? std::vector<int32_t>() : assignment.factors[factor]);
    return sharding;
  }

  /// Parameters and states decide, gradients follow; where no parameter is at hand, the one that a gradient is for.
  std::vector<ShardingHint> updateHints(Operation *op) {
    std::vector<ShardingHint> stored, others;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      bool isStored = operand.getDefiningOp<net::ParamOp>() != nullptr;
      auto target = isStored ? std::nullopt : updateTarget(operand);
      (isStored ? stored : others).push_back({false, i, target ? *target : own[operand]});
    }
    stored.insert(stored.end(), others.begin(), others.end());
    return stored;
  }

  /// gradientTarget of an operand of the update, which looks at all its readers once.
  std::optional<Sharding> updateTarget(Value operand) {
    auto known = updateTargets.find(operand);
    if (known == updateTargets.end())
      known = updateTargets.try_emplace(operand, gradientTarget(operand)).first;
    return known->second;
  }

  /// The value of the forward pass that this one is computed again from; null for all others.
  Value copiedFrom(Value root) {
    if (Value original = copyOf.lookup(root)) // of something that was expanded
      return original;
    Operation *copy = root.getDefiningOp();
    Operation *forward = copy && net::isCopy(copy) ? forwardOf(copy) : nullptr;
    return forward ? inPlaceOf(forward->getResult(cast<OpResult>(root).getResultNumber())) : Value();
  }

  Value inPlaceOf(Value original) const {
    Value inPlace = standIns.lookup(original);
    return inPlace ? inPlace : original;
  }

  /// How an operand is at hand in the context of the forward operator: as that one used it, as the value whose gradient
  /// it is, or as it is. Constants say nothing.
  std::optional<Sharding> atHand(OpOperand &operand, Operation *forward) {
    Value root = operand.get();
    if (Operation *producer = root.getDefiningOp();
        producer && producer->getNumOperands() == 0 && !isa<net::ParamOp>(producer))
      return std::nullopt;
    if (forward) {
      const Uses &record = uses[forward];
      for (auto [used, sharding] : llvm::zip(record.roots, record.shardings))
        if (used == root || used == copiedFrom(root))
          return sharding;
      if (Value result = resultBehind(operand))
        return own[result];
    }
    return own[root];
  }
};

struct Partition : impl::PartitionPassBase<Partition> {
  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>())
      if (failed(Partitioner(network).run()) || failed(verifyPartition(network)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace msc::passes
