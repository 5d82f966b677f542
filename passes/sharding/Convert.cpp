#include "passes/sharding/Convert.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Halo.h"
#include "dialects/net/OperatorTime.h"
#include "dialects/net/FixedPieces.h"
#include "dialects/net/Repeat.h"
#include "passes/sharding/CanonicalOrder.h"
#include "passes/sharding/cost/UpdateWork.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace msc::passes {

Shape shapeOf(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return {shape.begin(), shape.end()};
}

size_t elementBytesOf(Value value) {
  return static_cast<size_t>(net::elementBytes(value.getType()));
}

bool isByUser(Operation *op) {
  StringRef origin = net::getStrategyOrigin(op);
  return origin.empty() || origin == "user";
}

std::string operandName(Operation *op, unsigned operand) {
  StringRef name = net::getValueName(op->getOperand(operand));
  if (name.empty())
    if (auto face = dyn_cast<net::Operator>(op))
      if (auto names = face.inputNames(); operand < names.size())
        name = names[operand];
  return name.empty() ? "operand " + std::to_string(operand) : name.str();
}

bool hasRule(Operation *op) {
  return isa<net::ShardingRuleInterface>(op);
}

OperatorFacts factsOf(Operation *op) {
  OperatorFacts facts{.op = op->getName().stripDialect().str()};
  facts.rule = cast<net::ShardingRuleInterface>(op).shardingRule();
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    facts.operandNames.push_back(operandName(op, i));
    facts.operandShapes.push_back(shapeOf(op->getOperand(i)));
  }
  for (Value result : op->getResults())
    facts.resultShapes.push_back(shapeOf(result));
  return facts;
}

namespace {

class ProblemBuilder {
public:
  ProblemBuilder(int64_t devices, bool joinAlike, std::vector<Members> &members)
      : joinAlike(joinAlike), members(members), problem{.devices = devices} {}

  Problem build(net::NetworkOp network) {
    problem.machine = dist::machineOf(network);
    for (BlockArgument input : network.getBody().getArguments())
      tensorOf(input);
    network.walk<WalkOrder::PreOrder>([&](net::RepeatOp repeat) { numberRepeat(repeat); });
    const CanonicalOrder order = orderOf(network);
    network.walk<WalkOrder::PreOrder>([&](Operation *op) { lines[op] = static_cast<int64_t>(lines.size()); });
    for (Operation *op : order.operators)
      if (hasRule(op) && net::getPhase(op) == net::Phase::Forward && !joins(op))
        addOperator(op);
    for (net::RepeatOp repeat : order.repeats)
      addHandovers(repeat);
    linkBehind();
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i].size() > 1)
        linkRounds(i);
    for (Value result : net::getReturn(network).getValues())
      problem.results.push_back(tensorOf(result));
    network.walk<WalkOrder::PreOrder>([&](net::ParamOp param) {
      if (!tensors.contains(param.getValue())) // nothing reads it
        problem.tensors[tensorOf(param.getValue())].isTrained = false;
    });
    return std::move(problem);
  }

private:
  int32_t addTensor(Value value) {
    ProblemTensor &tensor =
        problem.tensors.emplace_back(net::getValueName(value).str(), shapeOf(value), elementBytesOf(value), std::nullopt);
    tensor.isFloat = isa<FloatType>(getElementTypeOrSelf(value.getType()));
    if (auto param = value.getDefiningOp<net::ParamOp>()) {
      tensor.isParameter = true;
      tensor.isTrained = param.getTrained();
      tensor.rounds = net::roundsAround(param);
    }
    return static_cast<int32_t>(problem.tensors.size() - 1);
  }

  int32_t tensorOf(Value value) {
    auto found = tensors.find(value);
    return found == tensors.end() ? tensors[value] = addTensor(value) : found->second;
  }

  /// Rounds of a dump that do not become one operator stand as they are written.
  CanonicalOrder orderOf(net::NetworkOp network) {
    CanonicalOrder written;
    std::map<std::vector<int64_t>, Operation *> firsts;
    bool isApart = false;
    network.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (ArrayRef<int64_t> alike = net::getAlike(op); !alike.empty())
        isApart = isApart || !joinAlike || !areAlike(op, firsts.try_emplace(alike.vec(), op).first->second);
      if (auto repeat = dyn_cast<net::RepeatOp>(op))
        written.repeats.push_back(repeat);
      else
        written.operators.push_back(op);
    });
    return isApart ? written : canonicalOrder(network);
  }

  void numberRepeat(net::RepeatOp repeat) {
    std::vector<int32_t> repeats = around.lookup(repeat->getParentOp());
    repeats.push_back(static_cast<int32_t>(problem.repeats.size()));
    around[repeat] = std::move(repeats);
    problem.repeats.push_back({repeat.getVariable().str(), repeat.firstRound(), repeat.endRound() - 1});
  }

  void addHandovers(net::RepeatOp repeat) {
    const int32_t index = around.lookup(repeat).back();
    int64_t times = net::roundsAround(repeat);
    for (auto [initial, argument, yielded, result] :
         llvm::zip(repeat.getInitial(), repeat.getBody().getArguments(), repeat.yielded(), repeat.getResults())) {
      problem.handovers.push_back({tensorOf(initial), tensorOf(argument), times, true, index});
      if (repeat.rounds() > 1)
        problem.handovers.push_back({tensorOf(yielded), tensorOf(argument), times * (repeat.rounds() - 1), false, index});
      problem.handovers.push_back({tensorOf(yielded), tensorOf(result), times, true, index});
    }
  }

  void addOperator(Operation *op) {
    ProblemOperator entry{.name = net::getInstanceName(op).str(),
                          .facts = factsOf(op),
                          .repeats = around.lookup(op->getParentOp()),
                          .rounds = net::roundsAround(op),
                          .line = lines.lookup(op)};
    if (ArrayRef<int64_t> alike = net::getAlike(op); joinAlike && !alike.empty())
      for (int64_t ordinal : alike.drop_back())
        entry.repeats.push_back(repeatOfDump(ordinal));
    for (Value operand : op->getOperands())
      entry.operands.push_back(tensorOf(operand));
    for (Value result : op->getResults())
      entry.results.push_back(tensorOf(result));
    if (auto cost = dyn_cast<net::CostInterface>(op))
      entry.localUs = [cost, arithmetic = net::arithmeticOf(op, problem.machine), machine = problem.machine](
                          const std::vector<Shape> &operands, const std::vector<Shape> &results) mutable {
        return net::operatorUs(cost.cost(operands, results), arithmetic, machine);
      };
    auto lower = dyn_cast<net::Lower>(op);
    if (lower && lower.loweringKind() == net::LoweringKind::Regions)
      entry.exchange = [copy = net::regionCopyOf(op), bytes = elementBytesOf(op->getResult(0)),
                        machine = problem.machine](const Placement &placement) -> OwnExchange {
        net::RegionExchange exchange = net::regionExchange(copy, placement.operands, placement.results);
        return {exchange.received(), net::exchangeUs(exchange, bytes, machine)};
      };
    if (isa<net::HaloInterface>(op))
      entry.exchange = [op, rule = entry.facts.rule, bytes = elementBytesOf(op->getResult(0)),
                        machine = problem.machine](const Placement &placement) -> OwnExchange {
        std::vector<net::HaloWindows> windows = net::halosOf(op, rule, placement.operands);
        if (windows.empty())
          return {};
        net::RegionExchange exchange = net::haloExchange(windows);
        return {exchange.received(), net::exchangeUs(exchange, bytes, machine)};
      };
    problem.operators.push_back(std::move(entry));
    members.push_back({op});
  }

  /// The repeat that had this ordinal when the dump was written; its rounds have names of their own.
  int32_t repeatOfDump(int64_t ordinal) {
    auto [found, isNew] = dumpRepeats.try_emplace(ordinal, static_cast<int32_t>(problem.repeats.size()));
    if (isNew)
      problem.repeats.emplace_back();
    return found->second;
  }

  static bool areAlike(Operation *op, Operation *first) {
    auto strategyOf = [](Operation *op) { return std::pair(isByUser(op) ? net::getInStrategy(op) : std::nullopt, net::getFixedPieces(op)); };
    return op->getName() == first->getName() && op->getOperandTypes() == first->getOperandTypes() &&
           op->getResultTypes() == first->getResultTypes() && strategyOf(op) == strategyOf(first);
  }

  /// Adds the operation to the operator whose rounds it belongs to.
  bool joins(Operation *op) {
    ArrayRef<int64_t> alike = net::getAlike(op);
    if (!joinAlike || alike.empty())
      return false;
    auto [found, isNew] = firstOfDump.try_emplace(alike.vec(), problem.operators.size());
    if (isNew)
      return false;
    Operation *first = members[found->second].front();
    if (!areAlike(op, first))
      return false;
    members[found->second].push_back(op);
    ++problem.operators[found->second].rounds;
    for (auto [result, tensor] : llvm::zip(op->getResults(), problem.operators[found->second].results))
      tensors[result] = tensor;
    for (auto [operand, ofFirst] : llvm::zip(op->getOperands(), first->getOperands()))
      if (operand != ofFirst && operand.getDefiningOp<net::ParamOp>() && ofFirst.getDefiningOp<net::ParamOp>() &&
          tensors.try_emplace(operand, tensorOf(ofFirst)).second)
        ++problem.tensors[tensorOf(ofFirst)].rounds;
    return true;
  }

  /// Operands that rounds take from different places: from in front of the first one, then from the round before.
  void linkRounds(size_t index) {
    ProblemOperator &entry = problem.operators[index];
    for (unsigned i = 0; i < entry.operands.size(); ++i) {
      llvm::MapVector<int32_t, int64_t> sources; // and number of rounds
      for (Operation *op : members[index])
        if (Value value = op->getOperand(i); !value.getDefiningOp<net::ParamOp>() || op == members[index].front())
          ++sources[tensorOf(value)];
      if (sources.size() < 2)
        continue;
      // Operators that take it from the same places read one value, as the argument of a repeat.
      auto [carried, isNew] = carriedFrom.try_emplace({entry.repeats, {sources.begin(), sources.end()}}, 0);
      if (isNew) {
        carried->second = addTensor(members[index].front()->getOperand(i));
        for (auto [source, rounds] : sources)
          problem.handovers.push_back({source, carried->second, rounds, !isMadeIn(source, entry.repeats)});
      }
      entry.operands[i] = carried->second;
    }
  }

  /// Operands that come out of the last of some rounds: as the result of a repeat, they are handed out once.
  void linkBehind() {
    llvm::DenseMap<int32_t, const ProblemOperator *> makers; // of what rounds make
    for (auto [ops, op] : llvm::zip(members, problem.operators))
      if (ops.size() > 1)
        for (int32_t result : op.results)
          makers[result] = &op;
    std::map<std::pair<int32_t, std::vector<int32_t>>, int32_t> handedOut; // by what is made, and the repeats around who reads it
    for (ProblemOperator &entry : problem.operators)
      for (int32_t &operand : entry.operands) {
        const ProblemOperator *maker = makers.lookup(operand);
        if (!maker || std::ranges::mismatch(maker->repeats, entry.repeats).in1 == maker->repeats.end())
          continue;
        auto [result, isNew] = handedOut.try_emplace({operand, entry.repeats}, static_cast<int32_t>(problem.tensors.size()));
        if (isNew) {
          problem.tensors.push_back(ProblemTensor(problem.tensors[operand]));
          problem.handovers.push_back({operand, result->second, entry.rounds, true});
        }
        operand = result->second;
      }
  }

  bool isMadeIn(int32_t tensor, const std::vector<int32_t> &repeats) const {
    return llvm::any_of(problem.operators, [&](const ProblemOperator &op) {
      return op.repeats == repeats && llvm::is_contained(op.results, tensor);
    });
  }

  bool joinAlike;
  std::vector<Members> &members;
  Problem problem;
  llvm::DenseMap<Value, int32_t> tensors;
  llvm::DenseMap<Operation *, std::vector<int32_t>> around; ///< repeats of the problem: a repeat and those around it
  llvm::DenseMap<int64_t, int32_t> dumpRepeats;
  llvm::DenseMap<Operation *, int64_t> lines;                ///< as they are written
  std::map<std::vector<int64_t>, size_t> firstOfDump; ///< operators of the problem
  std::map<std::pair<std::vector<int32_t>, std::vector<std::pair<int32_t, int64_t>>>, int32_t> carriedFrom; ///< tensors by repeats and sources
};

} // namespace

Problem problemOf(net::NetworkOp network, int64_t devices, bool joinAlike, std::vector<Members> &members,
                  const TrainingFacts &training) {
  Problem problem = ProblemBuilder(devices, joinAlike, members).build(network);
  for (auto block : network->getParentOfType<ModuleOp>().getOps<net::ConfigOp>())
    if (block.getKind() == "mesh")
      problem.meshes.push_back(block.getFields().getAs<DenseI64ArrayAttr>("sizes").asArrayRef().vec());
  problem.optimizerStates = training.optimizerStates;
  if (training.train) {
    UpdateFacts facts = updateFacts(network.getContext(), *training.train);
    problem.update = std::move(facts.work);
    problem.optimizerStates = facts.states;
    problem.updateScalars = facts.scalars;
    problem.updateKernels = std::move(facts.kernels);
  }
  if (training.inBuckets) {
    int64_t trained = 0;
    for (const ProblemTensor &tensor : problem.tensors)
      trained += tensor.isTrained ? tensor.rounds : 0;
    problem.gradientsPerStart = static_cast<double>(std::max<int64_t>(trained, 1));
  }
  for (auto [name, tensor] : llvm::zip(net::getReturn(network).getNames().getAsValueRange<StringAttr>(), problem.results))
    if (!training.minimize.empty() && name == training.minimize)
      problem.loss = tensor;
  if (problem.loss >= 0)
    for (auto [ops, op] : llvm::zip(members, problem.operators))
      if (isa<net::StateInterface>(ops.front())) {
        Operation *trained = ops.front()->clone(); // which states it makes is known once it is trained
        auto state = cast<net::StateInterface>(trained);
        state.beginTraining();
        for (auto [result, operand] : state.newStates())
          problem.results.push_back(op.results[result]);
        trained->destroy();
      }
  return problem;
}

} // namespace msc::passes
