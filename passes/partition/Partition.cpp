// The pass `msc-partition`. One walk in order: every operator gets an axis assignment, its operands are brought to the
// shardings that the assignment asks for, its results get theirs.
#include "passes/partition/Inherit.h"
#include "passes/partition/Moves.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Decisions.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/partition/Passes.h.inc"

bool addsPartials(Operation *op) {
  return isa<net::AddOp>(op);
}

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
  DenseMap<Operation *, Uses> uses;               // of forward operators
  DenseMap<int64_t, Operation *> forwardById;
  llvm::StringMap<net::ParamOp> paramByName;
  SmallVector<Attribute> expansions; // a record of each of those
  SmallVector<Operation *> expanded; // others stand in their places; their gradients still ask for them
  DenseMap<Value, Value> standIns;   // of results of expanded operators
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

  /// The root with its partial axes completed.
  Value completedValue(Value root) {
    auto &list = versions[root];
    if (list.empty())
      list.push_back({own[root], isPartial(root) ? moves.complete(root, own[root], completionReasons[root]) : root});
    return list.front().value;
  }

  /// The root in a given sharding; made in front of the first operator that wants it, shared by all.
  Value versionOf(Value root, const Sharding &target, Operation *user, const std::string &who) {
    Value start = completedValue(root);
    for (const Version &version : versions[root])
      if (version.sharding == target)
        return version.value;
    const Sharding &from = own[root];
    std::string reason = redistributionReason(who, described(root), from, target);
    Value moved = moves.redistribute(start, target, user, reason);
    versions[root].push_back({target, moved});
    return moved;
  }

  /// "'h'"; a gradient without a name of its own goes by what it is the gradient of: "the gradient of 'h'".
  std::string described(Value root) const {
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

  /// An addition of contributions to one gradient: terms that come from other forward operators.
  bool isAccumulation(Operation *op) const {
    if (!addsPartials(op) || net::getPhase(op) != net::Phase::Backward)
      return false;
    return llvm::any_of(op->getOperands(), [&](Value term) {
      Operation *producer = rootOf(term).getDefiningOp();
      return producer && net::getPhase(producer) == net::Phase::Backward &&
             net::getForwardId(producer) != net::getForwardId(op);
    });
  }

  /// The root behind the moves that were put in front of a use.
  static Value rootOf(Value value) {
    while (auto move = value.getDefiningOp<dist::ReshardOp>())
      value = move.getSource();
    return value;
  }

  /// The sharding of the value whose gradient this is, as its consumers tell.
  std::optional<Sharding> gradientTarget(Value gradient) {
    for (OpOperand &use : gradient.getUses()) {
      Operation *user = use.getOwner();
      if (isAccumulation(user))
        if (auto target = gradientTarget(user->getResult(0)))
          return target;
      if (net::getPhase(user) == net::Phase::Update)
        for (Value operand : user->getOperands())
          if (rootOf(operand).getDefiningOp<net::ParamOp>() && shapeOf(operand) == shapeOf(gradient))
            return own[rootOf(operand)];
      if (Value result = resultBehind(use))
        return own[result];
    }
    return std::nullopt;
  }

  //===-- operators -------------------------------------------------------===//

  LogicalResult partition(Operation *op) {
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
    OperatorFacts facts = factsOf(op);
    if (addsPartialTerms(op)) {
      placeResults(op, facts, Pieces(facts.rule.factors.size(), 1), {dist::shardingOf(op->getOperand(0))});
      return success();
    }
    FailureOr<net::Assignment> assignment = assignmentFor(op, facts);
    if (failed(assignment))
      return failure();
    bringOperands(op, facts, *assignment);
    std::vector<Sharding> results;
    for (size_t i = 0; i < op->getNumResults(); ++i)
      results.push_back(resultSharding(facts.rule, *assignment, i));
    placeResults(op, facts, piecesOf(*assignment), results);
    return success();
  }

  FailureOr<net::Assignment> assignmentFor(Operation *op, const OperatorFacts &facts) {
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
    expanded.push_back(op);
    Operation *last = op->getPrevNode();
    OpBuilder builder(op);
    SmallVector<Value> results = cast<net::Lower>(op).expand(builder, op->getOperands());
    SmallVector<Operation *> parts;
    for (Operation *part = last ? last->getNextNode() : &op->getBlock()->front(); part != op; part = part->getNextNode())
      parts.push_back(part);
    if (auto id = net::getId(op)) // the gradient belongs to the parts now
      net::setId(results.front().getDefiningOp(), *id);
    for (Operation *part : parts) {
      net::setPhase(part, net::getPhase(op));
      net::setScope(part, net::getScope(op));
      if (isa<net::Operator>(part)) {
        net::setInstanceName(part, partName(op, part));
        net::setWhole(part, op, expansions.size());
      }
      uses[part].assignment = *assignment; // for parts that name its factors
      if (failed(partition(part)))
        return failure();
    }
    for (auto [result, value] : llvm::zip(op->getResults(), results)) {
      if (Value standIn = standIns.lookup(value)) // a part may be expanded itself
        value = standIn;
      standIns[result] = value;
      net::setValueNames(value.getDefiningOp(), {net::getValueName(result)});
      Sharding sharding = own[value]; // a copy: the map may grow
      own[result] = sharding;
      result.setType(dist::withSharding(result.getType(), sharding));
      result.replaceAllUsesWith(value);
    }
    if (!net::getWhole(op))
      expansions.push_back(recordOf(op));
    return success();
  }

  /// What reports say of an operator that is not there any more.
  DictionaryAttr recordOf(Operation *op) {
    Builder builder(op->getContext());
    NamedAttrList record;
    auto strategy = [](std::optional<net::Strategy> pieces) { return pieces ? net::strategyText(*pieces) : ""; };
    record.set("name", builder.getStringAttr(net::getInstanceName(op)));
    record.set("op", builder.getStringAttr(op->getName().stripDialect()));
    record.set("scope", builder.getStringAttr(net::getScope(op)));
    record.set("location", LocationAttr(op->getLoc()));
    record.set("in_strategy", builder.getStringAttr(strategy(net::getInStrategy(op))));
    record.set("out_strategy", builder.getStringAttr(strategy(net::getOutStrategy(op))));
    record.set("origin", builder.getStringAttr(net::getStrategyOrigin(op)));
    auto typesOf = [&](ValueRange values) {
      return builder.getTypeArrayAttr(llvm::to_vector(values.getTypes()));
    };
    auto namesOf = [&](ValueRange values) {
      SmallVector<Attribute> names;
      for (Value value : values)
        names.push_back(builder.getStringAttr(nameOfValue(value)));
      return builder.getArrayAttr(names);
    };
    record.set("operand_types", typesOf(op->getOperands()));
    record.set("result_types", typesOf(op->getResults()));
    record.set("operand_names", namesOf(op->getOperands()));
    record.set("result_names", namesOf(op->getResults()));
    return record.getDictionary(op->getContext());
  }

  /// "softmax.ReduceMax": what dumps call a part of an expanded operator.
  static std::string partName(Operation *whole, Operation *part) {
    StringRef name = net::getInstanceName(whole);
    return ((name.empty() ? whole->getName().stripDialect() : name) + "." + part->getName().stripDialect()).str();
  }

  /// Terms that are partial over the same axes are added while partial and completed once.
  bool addsPartialTerms(Operation *op) const {
    if (!addsPartials(op) || net::getPhase(op) != net::Phase::Backward)
      return false;
    Type first = op->getOperand(0).getType();
    bool sums =
        llvm::all_of(dist::shardingOf(first).partial, [](const PartialAxis &p) { return p.kind == ReduceKind::Sum; });
    return dist::shardingOf(first).isPartial() && sums && llvm::all_of(op->getOperands(), [&](Value term) {
             return term.getType() == first && !versions.contains(term);
           });
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
    if (isAccumulation(op))
      if (auto target = gradientTarget(op->getResult(0)))
        hints.push_back({true, 0, *target});
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

  /// Parameters and states decide, gradients follow.
  std::vector<ShardingHint> updateHints(Operation *op) {
    std::vector<ShardingHint> stored, others;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      bool isStored = operand.getDefiningOp<net::ParamOp>() != nullptr;
      (isStored ? stored : others).push_back({false, i, own[operand]});
    }
    stored.insert(stored.end(), others.begin(), others.end());
    return stored;
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
        if (used == root)
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
