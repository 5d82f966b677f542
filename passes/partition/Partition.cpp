// Splits a network over devices, operator by operator, in two moves: a partial result is completed to the operator's own
// output sharding; from there it is redistributed to what each consumer wants.
//
// Forward operators have a strategy. Backward and update operators inherit their axes from the shardings in which their
// operands are at hand: a forward operand as the forward operator used it, a forward result and its gradient in the
// result's completed sharding. So the gradient of a value lies where the value lies.
#include "passes/partition/Inherit.h"
#include "passes/partition/Passes.h"
#include "passes/partition/Placements.h"

#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetOps.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Decisions.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/partition/Passes.h.inc"

namespace {

StringRef titleOf(Operation *op) {
  StringRef name = net::getInstanceName(op);
  return name.empty() ? op->getName().stripDialect() : name;
}

class Partitioner {
public:
  explicit Partitioner(net::NetworkOp network)
      : global(network), devices(getDevices(network)), builder(network), placements(builder) {}

  LogicalResult run() {
    auto result = cast<net::NetworkOp>(builder.cloneWithoutRegions(*global));
    Block *body = builder.createBlock(&result.getBody());
    addInputs(body);
    builder.setInsertionPointToEnd(body);
    for (Operation &op : global.getBody().front())
      if (failed(place(&op)))
        return failure();
    global.erase();
    return success();
  }

private:
  void addInputs(Block *body) {
    std::vector<Sharding> shardings = getInputShardings(global);
    for (auto [index, input] : llvm::enumerate(global.getBody().getArguments())) {
      Sharding sharding = index < shardings.size() ? shardings[index].canonical()
                                                   : Sharding::replicated(devices, shapeOf(input).size());
      placements.set(input, body->addArgument(dist::withSharding(input.getType(), sharding), input.getLoc()));
    }
  }

  LogicalResult place(Operation *op) {
    if (auto param = dyn_cast<net::ParamOp>(op))
      return placeLeaf(op, storedSharding(param)), success();
    if (isa<net::ScalarOp, net::ConstantOp>(op))
      return placeLeaf(op, Sharding::replicated(devices, shapeOf(op->getResult(0)).size())), success();
    if (auto update = dyn_cast<net::UpdateOp>(op))
      return placeUpdate(update), success();
    if (auto result = dyn_cast<net::ReturnOp>(op))
      return placeReturn(result), success();
    if (!hasRule(op))
      return op->emitError("'") << op->getName().stripDialect() << "' has no sharding rule";
    if (addsPartialGradients(op))
      return clone(op, {placements.raw(op->getOperand(0)), placements.raw(op->getOperand(1))},
                   {dist::shardingOf(placements.raw(op->getOperand(0)))}),
             success();
    return placeOperator(op);
  }

  void placeLeaf(Operation *op, const Sharding &sharding) {
    Operation *copy = builder.clone(*op);
    copy->getResult(0).setType(dist::withSharding(op->getResult(0).getType(), sharding.canonical()));
    placements.set(op->getResult(0), copy->getResult(0));
  }

  /// Optimizer states lie where their parameter lies.
  Sharding storedSharding(net::ParamOp param) {
    net::ParamOp source = param;
    if (!param.getStateOf().empty())
      for (auto other : global.getBody().getOps<net::ParamOp>())
        if (other.getName() == param.getStateOf() && shapeOf(other.getValue()) == shapeOf(param.getValue()))
          source = other;
    return getStoredSharding(source).value_or(Sharding::replicated(devices, shapeOf(param.getValue()).size()));
  }

  /// A sum of gradients that are partial over the same axes stays partial and is completed once.
  bool addsPartialGradients(Operation *op) {
    if (!isa<net::AddOp>(op) || net::getPhase(op) != net::Phase::Backward)
      return false;
    Sharding left = dist::shardingOf(placements.raw(op->getOperand(0)));
    auto isSum = [](const PartialAxis &axis) { return axis.kind == ReduceKind::Sum; };
    return shapeOf(op->getOperand(0)) == shapeOf(op->getOperand(1)) && left.isPartial() &&
           llvm::all_of(left.partial, isSum) && left == dist::shardingOf(placements.raw(op->getOperand(1)));
  }

  LogicalResult placeOperator(Operation *op) {
    OperatorFacts facts = factsOf(op);
    bool isForward = net::getPhase(op) == net::Phase::Forward;
    net::Assignment assignment;
    if (isForward) {
      std::optional<net::Strategy> strategy = net::getInStrategy(op);
      if (!strategy)
        return op->emitError("'") << titleOf(op) << "' has no strategy";
      assignment = assignmentFromStrategy(facts, *strategy, devices);
    } else {
      assignment = inheritAssignment(facts, hintsFor(op), devices);
    }
    SmallVector<Value> operands;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Sharding wanted = net::operandSharding(facts.rule, assignment, i).canonical();
      operands.push_back(placements.under(op->getOperand(i), wanted, wish(op, i)));
      if (isForward)
        if (std::optional<int64_t> id = net::getId(op))
          usedBy[*id][op->getOperand(i)] = wanted;
    }
    std::vector<Sharding> results;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      results.push_back(net::resultSharding(facts.rule, assignment, i).canonical());
    clone(op, operands, results);
    if (std::optional<int64_t> id = net::getId(op); isForward && id)
      forward[*id] = op;
    return success();
  }

  void clone(Operation *op, ArrayRef<Value> operands, const std::vector<Sharding> &results) {
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    for (auto [value, old, sharding] : llvm::zip(copy->getResults(), op->getResults(), results)) {
      value.setType(dist::withSharding(old.getType(), sharding));
      placements.set(old, value, {copy, completionSentence(op, sharding)});
    }
  }

  static std::string completionSentence(Operation *op, const Sharding &sharding) {
    int64_t terms = 1;
    for (const PartialAxis &axis : sharding.partial)
      terms *= sharding.axes[axis.axis];
    std::string kind = sharding.isPartial() ? reduceKindName(sharding.partial.front().kind) : "sum";
    return ("'" + titleOf(op) + "' (" + op->getName().stripDialect() + ") is computed in " + Twine(terms) +
            " parts, whose " + kind + " is the result")
        .str();
  }

  /// "'relu' (ReLU) wants %h cut as ((2, 4))".
  static MoveReason wish(Operation *op, unsigned operand) {
    std::string cut;
    if (std::optional<net::Strategy> strategy = net::getInStrategy(op); strategy && operand < strategy->size())
      cut = ", cut as " + net::strategyText({(*strategy)[operand]});
    return {op, ("'" + titleOf(op) + "' (" + op->getName().stripDialect() + ") wants '" + operandName(op, operand) +
                 "' in another place" + cut)
                    .str()};
  }

  // Backward and update ------------------------------------------------------------------------------------------------

  /// The shardings in which the operands of a backward or update operator are at hand, then those in which its results
  /// are wanted.
  std::vector<ShardingHint> hintsFor(Operation *op) {
    Operation *source = nullptr;
    std::optional<int64_t> id = net::getForwardId(op);
    if (auto at = id ? forward.find(*id) : forward.end(); at != forward.end())
      source = at->second;
    std::vector<ShardingHint> hints;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      hints.push_back({false, i, atHand(op, i, source)});
    for (unsigned i = 0; i < op->getNumResults() && source; ++i)
      if (std::optional<int64_t> operand = net::getGradientOfOperand(op); operand && i == 0)
        hints.push_back({true, i, usedBy[*id][source->getOperand(*operand)]});
    return hints;
  }

  Sharding atHand(Operation *op, unsigned operand, Operation *source) {
    Value value = op->getOperand(operand);
    if (source) {
      if (std::optional<int64_t> result = net::getGradientOfResult(op, operand))
        return placements.completedSharding(source->getResult(*result));
      auto &uses = usedBy[*net::getForwardId(op)];
      if (auto at = uses.find(value); at != uses.end())
        return at->second;
    }
    return placements.completedSharding(value);
  }

  void placeUpdate(net::UpdateOp update) {
    Value parameter = placements.completed(update.getParameter());
    Value value = placements.under(update.getNewValue(), dist::shardingOf(parameter),
                                   {update, "the new value lies where the parameter lies"});
    Operation *copy = builder.clone(*update);
    copy->setOperands({parameter, value});
  }

  void placeReturn(net::ReturnOp result) {
    SmallVector<Value> values;
    for (Value value : result.getValues())
      values.push_back(placements.completed(value));
    builder.clone(*result)->setOperands(values);
  }

  net::NetworkOp global;
  int64_t devices;
  OpBuilder builder;
  Placements placements;
  llvm::DenseMap<int64_t, Operation *> forward; ///< global operators by id
  /// By id of a forward operator: the sharding under which it used each of its operands.
  llvm::DenseMap<int64_t, llvm::DenseMap<Value, Sharding>> usedBy;
};

struct Partition : impl::PartitionPassBase<Partition> {
  using PartitionPassBase::PartitionPassBase;

  void runOnOperation() override {
    for (auto network : llvm::make_early_inc_range(getOperation().getOps<net::NetworkOp>()))
      if (failed(Partitioner(network).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace msc::passes
