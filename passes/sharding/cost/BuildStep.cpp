#include "passes/sharding/cost/BuildStep.h"

#include "dialects/net/Halo.h"
#include "dialects/net/NetOps.h"
#include "dialects/net/OperatorTime.h"
#include "dialects/net/Pieces.h"
#include "dialects/net/Recompute.h"
#include "passes/partition/Linear.h"
#include "passes/partition/Widen.h"
#include "passes/sharding/Convert.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace msc::passes {
namespace {

/// All that a step depends on.
std::string keyOf(Operation *op, const GradientsWanted &wanted, const Pieces &pieces) {
  std::string key;
  llvm::raw_string_ostream out(key);
  out << op->getName().getStringRef();
  for (NamedAttribute attribute : op->getAttrs()) // those without a dialect are the operator's own
    if (!attribute.getName().getValue().contains('.') || attribute.getName().getValue() == "net.recompute")
      out << ' ' << attribute.getName().getValue() << '=' << attribute.getValue();
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    out << ' ' << operand.getType() << '@' << llvm::find(op->getOperands(), operand) - op->operand_begin();
  for (bool bit : wanted.ofOperands)
    out << (bit ? '1' : '0');
  out << '/';
  for (bool bit : wanted.ofResults)
    out << (bit ? '1' : '0');
  out << (wanted.trains ? 't' : 'p');
  for (int64_t count : pieces)
    out << ' ' << count;
  return key;
}

/// What it makes of its operands, whatever they are.
std::string computationOf(Operation *op) {
  std::string key;
  llvm::raw_string_ostream out(key);
  out << op->getName().getStringRef();
  for (StringAttr name : op->getName().getAttributeNames())
    if (Attribute value = op->getAttr(name))
      out << ' ' << name.getValue() << '=' << value;
  for (Type type : op->getResultTypes())
    out << ' ' << type;
  return key;
}

bool isConstant(Operation *op) { return op->getNumOperands() == 0 && !isa<net::ParamOp>(op); }

/// What a plan makes of an operator, see passes/plan/Units.h.
StepKind kindOf(net::Lower op) {
  if (isStoredNarrow(op)) // its readers read what it casts
    return StepKind::View;
  switch (op.loweringKind()) {
  case net::LoweringKind::Generic: return StepKind::Kernel;
  case net::LoweringKind::MatMul: return StepKind::Product;
  case net::LoweringKind::View: return StepKind::View;
  case net::LoweringKind::Regions:
  case net::LoweringKind::Expanded:
  case net::LoweringKind::Library: break;
  }
  return StepKind::Call;
}

/// A network that holds one operator, then the operators of its gradient.
class Extraction {
public:
  using Computed = std::unordered_map<std::string, int32_t>;

  /// `pieces`: of an operator that ExpandsByPieces, else empty. `computed`: what operators compute, by number.
  Extraction(ModuleOp scratch, const MachineModel &machine, const Pieces &pieces, Computed &computed)
      : scratch(scratch), machine(machine), pieces(pieces), computed(computed) {}

  OperatorStep run(Operation *original, const GradientsWanted &wanted) {
    Operation *op = insert(original, wanted);
    if (auto state = dyn_cast<net::StateInterface>(op); state && wanted.trains)
      state.beginTraining();
    step.isRecomputed = net::isRecomputed(op);
    gradients = differentiate(op, wanted);
    SmallVector<Operation *> all; // expanding puts others between them
    for (Operation *at = op; !isa<net::ReturnOp>(at); at = at->getNextNode())
      if (at != op && isConstant(at))
        addConstant(at);
      else if (hasRule(at))
        all.push_back(at);
    for (Operation *at : all)
      step.operators.push_back(extract(at, at != op, at != op));
    for (auto [i, gradient] : llvm::enumerate(gradients))
      if (gradient)
        step.gradients.emplace_back(i, values.at(gradient));
    return std::move(step);
  }

private:
  ModuleOp scratch;
  const MachineModel &machine;
  const Pieces &pieces;
  Computed &computed;
  OperatorStep step;
  llvm::SmallDenseSet<int32_t> done; ///< what operators of the step compute
  llvm::DenseMap<Value, int32_t> values;
  SmallVector<Value> resultGradients, gradients; ///< of results, of operands; null: none

  int32_t addValue(Value value, StepValue::Kind kind, int32_t number = 0) {
    step.values.push_back({kind, number, shapeOf(value), elementBytesOf(value), elementBytesOf(value)});
    return static_cast<int32_t>(step.values.size() - 1);
  }
  int32_t valueOf(Value value, StepValue::Kind kind = StepValue::Kind::Inner, int32_t number = 0) {
    auto found = values.find(value);
    if (found != values.end())
      return found->second;
    int32_t index = addValue(value, kind, number);
    values[value] = index;
    return index;
  }

  void addConstant(Operation *op) { step.values[valueOf(op->getResult(0), StepValue::Kind::Constant)].computes = numberOf(op); }

  int32_t numberOf(Operation *op) {
    return isPure(op) ? computed.try_emplace(computationOf(op), static_cast<int32_t>(computed.size())).first->second : -1;
  }

  /// The operator with inputs of the network as operands; the gradients of its results are inputs too.
  Operation *insert(Operation *original, const GradientsWanted &wanted) {
    OpBuilder builder = OpBuilder::atBlockEnd(scratch.getBody());
    SmallVector<Value> distinct;
    for (Value operand : original->getOperands())
      if (!llvm::is_contained(distinct, operand))
        distinct.push_back(operand);
    SmallVector<Attribute> names(distinct.size() + original->getNumResults(), builder.getStringAttr(""));
    auto network = builder.create<net::NetworkOp>(original->getLoc(), builder.getStringAttr("step"), builder.getArrayAttr(names));
    Block &block = network.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value operand : distinct) {
      Value input = block.addArgument(operand.getType(), original->getLoc());
      mapping.map(operand, input);
      valueOf(input, StepValue::Kind::Operand, static_cast<int32_t>(llvm::find(original->getOperands(), operand) - original->operand_begin()));
    }
    for (auto [i, result] : llvm::enumerate(original->getResults())) {
      resultGradients.push_back(wanted.ofResults[i] ? block.addArgument(result.getType(), original->getLoc()) : Value());
      if (resultGradients.back())
        valueOf(resultGradients.back(), StepValue::Kind::ResultGradient, static_cast<int32_t>(i));
    }
    builder.setInsertionPointToEnd(&block);
    builder.setInsertionPoint(builder.create<net::ReturnOp>(original->getLoc(), ValueRange(), builder.getArrayAttr({})));
    return builder.clone(*original, mapping);
  }

  SmallVector<Value> differentiate(Operation *op, const GradientsWanted &wanted) {
    SmallVector<Value> ofOperands(op->getNumOperands());
    auto gradient = dyn_cast<net::Gradient>(op);
    llvm::SmallBitVector asked(op->getNumOperands());
    for (auto [i, bit] : llvm::enumerate(wanted.ofOperands))
      asked[i] = bit;
    if (!gradient || asked.none() || llvm::none_of(resultGradients, [](Value v) { return static_cast<bool>(v); }))
      return ofOperands;
    OpBuilder builder(&op->getBlock()->back());
    ScopedDiagnosticHandler quiet(op->getContext(), [](Diagnostic &) { return success(); }); // autodiff says it again
    if (failed(gradient.buildGradient(builder, resultGradients, asked, ofOperands)))
      ofOperands.assign(op->getNumOperands(), Value());
    for (auto [value, bit] : llvm::zip(ofOperands, wanted.ofOperands))
      if (!bit)
        value = {};
    removeDead(op, ofOperands);
    for (Operation *at = op->getNextNode(); !isa<net::ReturnOp>(at); at = at->getNextNode())
      net::setPhase(at, net::Phase::Backward);
    return ofOperands;
  }

  /// What gradients that nobody wants were made of.
  static void removeDead(Operation *op, ArrayRef<Value> kept) {
    SmallVector<Operation *> behind;
    for (Operation *at = op->getNextNode(); !isa<net::ReturnOp>(at); at = at->getNextNode())
      behind.push_back(at);
    for (Operation *at : llvm::reverse(behind))
      if (at->use_empty() && llvm::none_of(at->getResults(), [&](Value v) { return llvm::is_contained(kept, v); }))
        at->erase();
  }

  StepOperator extract(Operation *op, bool isBackward, bool isGradient) {
    StepOperator made{.facts = factsOf(op), .isBackward = isBackward, .isGradient = isGradient};
    made.facts.operandNames.clear();
    for (int64_t factor : net::getResultFactors(op))
      made.resultFactors.push_back(factor);
    made.addsTerms = addsPartials(op);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      made.isLinearIn.push_back(isLinearIn(op, i));
    for (Value operand : op->getOperands()) {
      made.operands.push_back(valueOf(operand));
      auto at = llvm::find(resultGradients, operand);
      made.gradientOfResult.push_back(isGradient && at != resultGradients.end() ? static_cast<int32_t>(at - resultGradients.begin()) : -1);
    }
    bool isNarrow = computesNarrow(op);
    made.isCast = isa<net::CastOp>(op);
    made.isCheap = net::isCheap(op);
    made.addsWide = isNarrow && !isForGpusAlone(op) && takesNarrow(op);
    made.isOfOneType = made.addsWide && isOfOneType(op);
    made.computesWide = isNarrow && !isForGpusAlone(op) && !made.addsWide;
    for (Value result : op->getResults()) {
      made.results.push_back(valueOf(result));
      if (isNarrow)
        step.values[made.results.back()].partialBytes = std::max<size_t>(4, step.values[made.results.back()].elementBytes);
      if (auto at = llvm::find(gradients, result); isGradient && at != gradients.end())
        made.gradientOfOperand = static_cast<int32_t>(at - gradients.begin());
    }
    auto lower = dyn_cast<net::Lower>(op);
    if (lower) {
      made.kind = kindOf(lower);
      const Type element = op->getNumOperands() == 0 ? Type() : getElementTypeOrSelf(op->getOperand(0).getType());
      made.isEpilogue = lower.epilogueKind() != net::EpilogueKind::None && (element.isF32() || (isNarrow && isForGpusAlone(op)));
    }
    if (lower && lower.loweringKind() == net::LoweringKind::Expanded) {
      expand(op, lower, made);
    } else {
      addPrices(op, made);
      made.computes = numberOf(op);
      step.mayRepeat |= made.computes >= 0 && !done.insert(made.computes).second;
    }
    return made;
  }

  void expand(Operation *op, net::Lower lower, StepOperator &made) {
    llvm::DenseMap<Value, int32_t> outside; // of its operands, while parts read what was brought
    for (Value operand : op->getOperands()) {
      if (!outside.contains(operand)) {
        outside[operand] = values.at(operand);
        StepValue facts = step.values[values.at(operand)];
        int32_t brought = addValue(operand, StepValue::Kind::Inner);
        if (facts.kind == StepValue::Kind::Constant) {
          step.values[brought].kind = StepValue::Kind::Constant;
          step.values[brought].computes = facts.computes;
        }
        values[operand] = brought;
      }
      made.brought.push_back(values.at(operand));
    }
    // A gradient that expands so is one of its own kind, cut alike.
    if (op->hasTrait<net::ExpandsByPieces>() && made.facts.rule.factors.size() == pieces.size())
      net::setPieces(op, pieces);
    SmallVector<Operation *> parts;
    Operation *before = op->getPrevNode();
    if (computesNarrow(op))
      widen(op);
    OpBuilder builder(op);
    SmallVector<Value> results = lower.expand(builder, op->getOperands());
    auto first = [&] { return before ? before->getNextNode() : &op->getBlock()->front(); };
    bool mayBeNarrow = false; // some read what widening cast, and then nobody may read the cast
    for (Operation *part = first(); part != op; part = part->getNextNode())
      if (takesNarrow(part)) {
        readNarrow(part);
        mayBeNarrow = true;
      }
    for (Operation *part = first(); part != op; part = part->getNextNode())
      if (!mayBeNarrow || !isWideningCast(part) || !part->use_empty())
        parts.push_back(part);
    for (Operation *part : parts) {
      net::setPhase(part, made.isBackward ? net::Phase::Backward : net::Phase::Forward);
      if (isConstant(part))
        addConstant(part);
      else if (hasRule(part))
        made.parts.push_back(extract(part, made.isBackward, false));
    }
    for (auto [value, standIn] : llvm::zip(results, made.results)) {
      if (made.computesWide) // what it makes is rounded
        for (StepOperator &part : made.parts)
          part.computesWide |= !part.addsWide && llvm::is_contained(part.results, values.at(value));
      made.standIns.push_back(values.at(value));
      step.values[made.standIns.back()].partialBytes = step.values[standIn].partialBytes;
      step.values[made.standIns.back()].elementBytes = step.values[standIn].elementBytes;
    }
    for (auto [result, standIn] : llvm::zip(op->getResults(), made.standIns))
      values[result] = standIn; // readers read the part's result
    for (auto [value, index] : outside)
      values[value] = index;
  }

  using LocalUs = decltype(StepOperator::localUs);

  LocalUs usOf(Operation *op) const {
    auto cost = dyn_cast<net::CostInterface>(op);
    if (!cost)
      return nullptr;
    return [cost, arithmetic = net::arithmeticOf(op, machine), machine = machine](
               const std::vector<Shape> &operands, const std::vector<Shape> &results) mutable {
      return net::operatorUs(cost.cost(operands, results), arithmetic, machine);
    };
  }

  /// Of a cast from f32.
  LocalUs castUs(OpBuilder &builder, Value wide, Type type) const {
    return usOf(builder.create<net::CastOp>(wide.getLoc(), wide, getElementTypeOrSelf(type)));
  }

  /// Of an operator that adds in f32: of the cast of its result, or, where it is of one type, what f32 takes more.
  LocalUs partialUs(Operation *op) const {
    if (isOfOneType(op))
      return [wide = usInF32(op), narrow = usOf(op)](const std::vector<Shape> &operands, const std::vector<Shape> &results) {
        return wide(operands, results) - narrow(operands, results);
      };
    OpBuilder builder(op);
    Operation *wide = builder.clone(*op);
    widen(wide);
    if (wide->getResult(0).getType() == op->getResult(0).getType())
      return nullptr;
    builder.setInsertionPointAfter(wide);
    return [us = castUs(builder, wide->getResult(0), op->getResult(0).getType())](const std::vector<Shape> &, const std::vector<Shape> &results) {
      return us({results.front()}, {results.front()});
    };
  }

  /// Of a narrow operator, which computes in f32: the casts of its operands, itself, and the casts of its results.
  LocalUs usInF32(Operation *op) const {
    OpBuilder builder(op);
    Operation *wide = builder.clone(*op);
    widen(wide);
    struct Cast {
      LocalUs us;
      size_t index;
    };
    std::vector<Cast> before, behind;
    llvm::SmallDenseSet<Value> seen;
    for (auto [i, operand, own] : llvm::enumerate(wide->getOperands(), op->getOperands()))
      if (operand != own && seen.insert(operand).second)
        before.push_back({usOf(operand.getDefiningOp()), i});
    builder.setInsertionPointAfter(wide);
    for (auto [i, result, own] : llvm::enumerate(wide->getResults(), op->getResults()))
      if (result.getType() != own.getType())
        behind.push_back({castUs(builder, result, own.getType()), i});
    return [itself = usOf(wide), before, behind](const std::vector<Shape> &operands, const std::vector<Shape> &results) {
      double us = itself ? itself(operands, results) : 0;
      for (const Cast &cast : before)
        us += cast.us({operands[cast.index]}, {operands[cast.index]});
      for (const Cast &cast : behind)
        us += cast.us({results[cast.index]}, {results[cast.index]});
      return us;
    };
  }

  void addPrices(Operation *op, StepOperator &made) const {
    auto lower = dyn_cast<net::Lower>(op);
    const bool isNarrow = computesNarrow(op), addsWide = isNarrow && takesNarrow(op);
    made.localUs = isNarrow && !addsWide ? usInF32(op) : usOf(op);
    if (addsWide)
      made.partialUs = partialUs(op);
    if (lower && lower.loweringKind() == net::LoweringKind::Regions)
      made.exchange = [copy = net::regionCopyOf(op), bytes = elementBytesOf(op->getResult(0)), machine = machine](const Placement &at) -> OwnExchange {
        net::RegionExchange exchange = net::regionExchange(copy, at.operands, at.results);
        return {exchange.received(), net::exchangeUs(exchange, bytes, machine), bytes, exchange.groupMatrix, exchange.groupAxes};
      };
    // A gradient of weights takes the windows that the convolution gathered.
    auto reaches = dyn_cast<net::HaloInterface>(op);
    if (reaches && reaches.haloLeader() == op->getResult(0))
      made.exchange = [op, rule = cast<net::ShardingRuleInterface>(op).shardingRule(), bytes = elementBytesOf(op->getResult(0)),
                       machine = machine](const Placement &at) -> OwnExchange {
        std::vector<net::HaloWindows> windows = net::halosOf(op, rule, at.operands);
        if (windows.empty())
          return {};
        net::RegionExchange exchange = net::haloExchange(windows);
        return {exchange.received(), net::exchangeUs(exchange, bytes, machine), bytes, exchange.groupMatrix, exchange.groupAxes};
      };
  }
};

} // namespace

StepBuilder::StepBuilder(MLIRContext *context, MachineModel machine)
    : machine(std::move(machine)), scratch(ModuleOp::create(UnknownLoc::get(context))) {}

std::shared_ptr<const OperatorStep> StepBuilder::step(Operation *op, const GradientsWanted &wanted) {
  if (!op->hasTrait<net::ExpandsByPieces>())
    return step(op, wanted, {});
  OperatorStep uncut = *step(op, wanted, {});
  uncut.under = [this, op, wanted](const Pieces &pieces) { return step(op, wanted, pieces); };
  return std::make_shared<OperatorStep>(std::move(uncut));
}

std::shared_ptr<const OperatorStep> StepBuilder::step(Operation *op, const GradientsWanted &wanted, const Pieces &pieces) {
  auto [found, isNew] = known.try_emplace(keyOf(op, wanted, pieces));
  if (isNew)
    found->second = std::make_shared<OperatorStep>(Extraction(*scratch, machine, pieces, computed).run(op, wanted));
  return found->second;
}

ProblemSteps stepsOf(const Problem &problem, ArrayRef<Members> members, StepBuilder &builder) {
  ProblemSteps steps;
  std::vector<GradientsWanted> wanted = gradientsWanted(problem);
  std::vector<std::vector<int32_t>> given(members.size());
  do {
    steps.all.clear();
    for (auto [ops, of, to] : llvm::zip(members, wanted, given)) {
      steps.all.push_back(of.runs ? builder.step(ops.front(), of) : nullptr);
      to.clear();
      if (steps.all.back())
        for (auto [operand, value] : steps.all.back()->gradients)
          to.push_back(operand);
    }
  } while (dropZeroGradients(problem, given, wanted));
  for (auto [ops, step, of, all] : llvm::zip(members, steps.all, wantedInFirstRound(problem, wanted), wanted))
    steps.first.push_back(!step || of == all ? nullptr : builder.step(ops.front(), of));
  return steps;
}

StepModel modelOf(const Problem &problem, ArrayRef<Members> members, dist::ReshardPlanner &planner) {
  if (members.empty())
    return {problem, ProblemSteps(), planner};
  StepBuilder builder(members.front().front()->getContext(), problem.machine);
  return {problem, stepsOf(problem, members, builder), planner};
}

} // namespace msc::passes
