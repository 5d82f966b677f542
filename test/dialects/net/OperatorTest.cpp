// Over all operators: no part is missing, types and rules are as the table says, gradients match differences, and the
// lowering of every shard computes its share of what the reference computes for the whole.
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "passes/autodiff/Passes.h"
#include "test/dialects/net/OperatorCases.h"
#include "test/reference/Interpreter.h"
#include "test/reference/LinalgInterpreter.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace mlir;
using namespace msc;
using namespace msc::net;
using namespace msc::test;
using reference::Tensor;

namespace {

std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string labelOf(const OperatorCase &theCase) {
  std::string label = theCase.op;
  for (const char *operand : theCase.operands)
    label += std::string(" ") + operand;
  return label + " " + theCase.attributes;
}

std::vector<Tensor> randomOperands(Operation *op, const OperatorCase &theCase, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> operands;
  for (Type type : op->getOperandTypes())
    operands.push_back(randomTensor(type, theCase.domain, random));
  return operands;
}

void expectNear(const Tensor &actual, const Tensor &expected, double tolerance, const std::string &what) {
  ASSERT_EQ(actual.shape, expected.shape) << what;
  for (size_t i = 0; i < actual.values.size(); ++i)
    if (actual.values[i] != expected.values[i]) // both may be infinite
      ASSERT_NEAR(actual.values[i], expected.values[i], tolerance * std::max(1.0, std::fabs(expected.values[i])))
          << what << " element " << i;
}

//===-- completeness ------------------------------------------------------===//

/// All operators of the dialect by their names in networks.
std::vector<RegisteredOperationName> registeredOperators(MLIRContext *context) {
  std::vector<RegisteredOperationName> operators;
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (name.getDialectNamespace() == "net" && name.hasInterface<Operator>())
      operators.push_back(name);
  return operators;
}

TEST(Operators, BringEveryPart) {
  NetContext context;
  reference::Interpreter interpreter;
  std::set<std::string> cases;
  for (const OperatorCase &theCase : operatorCases())
    cases.insert(theCase.op);
  std::vector<RegisteredOperationName> operators = registeredOperators(context.get());
  EXPECT_EQ(operators.size(), 181u);
  for (RegisteredOperationName name : operators) {
    std::string op = name.stripDialect().str();
    EXPECT_TRUE(name.hasInterface<InferTypeOpInterface>()) << op << " infers no types";
    EXPECT_TRUE(name.hasInterface<ShardingRuleInterface>()) << op << " has no sharding rule";
    EXPECT_TRUE(name.hasInterface<CostInterface>()) << op << " has no cost";
    EXPECT_TRUE(name.hasInterface<Lower>()) << op << " has no lowering";
    EXPECT_NE(name.hasInterface<net::Gradient>(), withoutGradient().count(op) == 1)
        << op << " needs a gradient or a reason";
    EXPECT_TRUE(interpreter.knows(op)) << op << " is not in the reference";
    EXPECT_TRUE(cases.count(op)) << op << " has no case";
  }
}

TEST(Operators, NameTheirOperandsAndResults) {
  NetContext context;
  for (const OperatorCase &theCase : operatorCases()) {
    TestNetwork network(context);
    Operation *op = buildCase(network, theCase);
    ASSERT_TRUE(op) << labelOf(theCase);
    auto face = cast<Operator>(op);
    if (op->hasTrait<OpTrait::VariadicOperands>())
      EXPECT_LE(face.inputNames().size(), op->getNumOperands()) << theCase.op;
    else
      EXPECT_TRUE(op->getNumOperands() <= face.inputNames().size() &&
                  op->getNumOperands() + face.optionalInputs() >= face.inputNames().size())
          << theCase.op;
    if (!op->hasTrait<OpTrait::VariadicResults>())
      EXPECT_EQ(face.outputNames().size(), op->getNumResults()) << theCase.op;
    for (const AttributeSpec &spec : face.attributeSpecs())
      EXPECT_FALSE(spec.summary.empty()) << theCase.op << " " << spec.name.str();
    for (NamedAttribute attribute : context.attributes(theCase.attributes))
      EXPECT_TRUE(llvm::any_of(face.attributeSpecs(), [&](const auto &s) { return s.name == attribute.getName(); }))
          << theCase.op << " " << attribute.getName().str();
  }
}

//===-- types, rules, costs -----------------------------------------------===//

TEST(Operators, InferTypesAndVerify) {
  NetContext context;
  for (const OperatorCase &theCase : operatorCases()) {
    TestNetwork network(context);
    Operation *op = buildCase(network, theCase);
    ASSERT_TRUE(op) << labelOf(theCase);
    EXPECT_EQ(textOf(op->getResult(0).getType()), textOf(context.type(theCase.result))) << labelOf(theCase);
    network.results(op->getResult(0), {"y"});
    EXPECT_TRUE(succeeded(verify(*network.module))) << labelOf(theCase);
  }
  EXPECT_TRUE(context.diagnostics.empty());
}

TEST(Operators, HaveTheRulesOfTheTable) {
  NetContext context;
  for (const OperatorCase &theCase : operatorCases()) {
    TestNetwork network(context);
    auto op = cast<ShardingRuleInterface>(buildCase(network, theCase));
    EXPECT_EQ(op.shardingRule().str(), theCase.rule) << labelOf(theCase);
  }
}

/// Every dimension belongs to factors; sizes of PassThrough factors are those of their dimensions.
TEST(Operators, HaveSoundRules) {
  NetContext context;
  for (const OperatorCase &theCase : operatorCases()) {
    TestNetwork network(context);
    Operation *op = buildCase(network, theCase);
    ShardingRule rule = cast<ShardingRuleInterface>(op).shardingRule();
    ASSERT_EQ(rule.operands.size(), op->getNumOperands());
    ASSERT_EQ(rule.results.size(), op->getNumResults());
    std::set<std::string> names;
    for (const Factor &factor : rule.factors)
      EXPECT_TRUE(names.insert(factor.name).second) << labelOf(theCase) << " names two factors " << factor.name;
    auto check = [&](const std::vector<DimFactors> &dims, const std::vector<int64_t> &shape) {
      ASSERT_EQ(dims.size(), shape.size()) << labelOf(theCase);
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        if (dims[dim].empty()) {
          EXPECT_EQ(shape[dim], 1) << labelOf(theCase) << " dimension " << dim;
          continue;
        }
        const Factor &factor = rule.factors[dims[dim][0]];
        if (factor.kind == FactorKind::Exchanged || factor.halo)
          EXPECT_LE(factor.size, shape[dim]) << labelOf(theCase);
        else if (factor.kind == FactorKind::Reduction && factor.block > 1)
          EXPECT_EQ(factor.size % shape[dim], 0) << labelOf(theCase);
        else if (factor.kind != FactorKind::Blocked)
          EXPECT_EQ(factor.size, shape[dim]) << labelOf(theCase);
        if (factor.kind == FactorKind::Replicated)
          EXPECT_FALSE(factor.reason.empty());
      }
    };
    for (size_t i = 0; i < rule.operands.size(); ++i)
      check(rule.operands[i], shapeOfType(op->getOperand(i).getType()));
    for (size_t i = 0; i < rule.results.size(); ++i)
      check(rule.results[i], shapeOfType(op->getResult(i).getType()));
  }
}

TEST(Operators, CostWhatTheirFormulasSay) {
  NetContext context;
  TestNetwork network(context);
  auto product =
      cast<CostInterface>(network.op("MatMul", {network.input("a", "16x32xf32"), network.input("b", "32x8xf32")}));
  OperatorCost cost = product.cost({{4, 16}, {16, 8}}, {{4, 8}});
  EXPECT_EQ(cost.flops, 2.0 * 4 * 8 * 16);
  EXPECT_EQ(cost.bytesRead, 4.0 * (4 * 16 + 16 * 8));
  EXPECT_EQ(cost.bytesWritten, 4.0 * 4 * 8);
  auto compare =
      cast<CostInterface>(network.op("Greater", {network.input("c", "10xf64"), network.input("d", "10xf64")}));
  cost = compare.cost({{10}, {10}}, {{10}});
  EXPECT_EQ(cost.flops, 10);
  EXPECT_EQ(cost.bytesRead, 160);
  EXPECT_EQ(cost.bytesWritten, 10); // bool takes one byte
  auto view = cast<CostInterface>(network.op("Reshape", {network.input("e", "2x3xf64")}, "{shape = array<i64: 6>}"));
  EXPECT_EQ(view.cost({{2, 3}}, {{6}}).bytesRead, 0);
}

//===-- numbers: gradients ------------------------------------------------===//

bool holdsF64(Value value) { return cast<RankedTensorType>(value.getType()).getElementType().isF64(); }

/// "3x4xf64".
std::string typeTextOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  std::string text;
  for (int64_t size : type.getShape())
    text += std::to_string(size) + "x";
  return text + textOf(type.getElementType());
}

/// sum(y * weights) over one result, whose derivative with respect to every operand is asked for.
struct WeightedSum {
  TestNetwork network;
  reference::Tensors given;

  WeightedSum(NetContext &context, const OperatorCase &theCase, unsigned result, uint64_t seed) : network(context) {
    Operation *op = buildCase(network, theCase, /*asParams=*/true);
    Value y = op->getResult(result);
    Value weights = network.input("weights", typeTextOf(y));
    Value product = network.value("Mul", {y, weights});
    Value sum = network.value("ReduceSum", {product}, "", "loss");
    network.results(sum, {"loss"});
    std::mt19937_64 random(seed);
    for (int draw = 0; draw < 20; ++draw) { // a segment without elements has no finite extremum
      for (Value operand : op->getOperands())
        given[getValueName(operand).str()] = randomTensor(operand.getType(), theCase.domain, random);
      given["weights"] = randomTensor(weights.getType(), Domain::Any, random);
      if (std::isfinite(loss(given)))
        break;
    }
  }

  double loss(const reference::Tensors &at) {
    return reference::Interpreter().run(network.network, at)->outputs.at("loss").values[0];
  }
};

/// Compares a gradient with central differences of the loss, of fourth order: an error of h * h times the third derivative is as large as
/// what is allowed where a norm divides by a small variance.
void checkDifferences(WeightedSum &sum, const std::string &param, const Tensor &gradient, const std::string &label) {
  constexpr double h = 1e-5;
  for (size_t i = 0; i < gradient.values.size(); ++i) {
    auto across = [&](double step) {
      reference::Tensors above = sum.given, below = sum.given;
      above[param].values[i] += step;
      below[param].values[i] -= step;
      return sum.loss(above) - sum.loss(below);
    };
    double slope = (8 * across(h) - across(2 * h)) / (12 * h);
    ASSERT_NEAR(gradient.values[i], slope, 1e-8 * std::max(1.0, std::fabs(slope)))
        << label << " " << param << " element " << i;
  }
}

TEST(Operators, HaveGradientsThatMatchDifferences) {
  NetContext context;
  size_t checked = 0;
  std::set<std::string> operators, refused; // refused: operator and number of the result
  for (const OperatorCase &theCase : operatorCases()) {
    TestNetwork alone(context);
    Operation *op = buildCase(alone, theCase);
    if (withoutGradient().count(theCase.op) || !llvm::any_of(op->getOperands(), holdsF64))
      continue;
    for (unsigned result = 0; result < op->getNumResults(); ++result) {
      if (!holdsF64(op->getResult(result)))
        continue;
      const std::string label = labelOf(theCase) + " result " + std::to_string(result);
      WeightedSum sum(context, theCase, result, 100 + checked);
      FailureOr<autodiff::ParameterGradients> gradients = autodiff::buildBackward(sum.network.network, "loss");
      if (failed(gradients)) {
        refused.insert(theCase.op + std::string(" ") + std::to_string(result));
        EXPECT_FALSE(context.diagnostics.empty()) << label << " is refused without a word";
        context.diagnostics.clear();
        continue;
      }
      ASSERT_TRUE(succeeded(verify(*sum.network.module))) << label;
      FailureOr<reference::Step> step = reference::Interpreter().run(sum.network.network, sum.given);
      ASSERT_TRUE(succeeded(step)) << label;
      for (ParamOp param : sum.network.network.getBody().front().getOps<ParamOp>()) {
        if (!holdsF64(param.getValue()))
          continue;
        Value gradient = gradients->lookup(param.getValue());
        // No gradient means zero everywhere.
        Tensor values = gradient ? step->values[gradient] : Tensor(shapeOfType(param.getValue().getType()));
        checkDifferences(sum, param.getName().str(), values, label);
        if (HasFatalFailure())
          return;
        ++checked;
        operators.insert(theCase.op);
      }
    }
  }
  EXPECT_GE(checked, 100u);
  EXPECT_EQ(refused, (std::set<std::string>{"BatchNorm 1", "BatchNorm 2", "ScaledDotProductAttention 1"})); // statistics
  std::set<std::string> others; // that have a gradient: 0, or one in another type
  for (RegisteredOperationName name : registeredOperators(context.get()))
    if (const std::string op = name.stripDialect().str(); !withoutGradient().count(op) && !operators.count(op))
      others.insert(op);
  EXPECT_EQ(others, (std::set<std::string>{"Cast", "Equal", "Greater", "GreaterEqual", "IsFinite", "IsInf", "IsNan", "Less", "LessEqual", "LogicalAnd",
                                           "LogicalNot", "LogicalOr", "LogicalXor", "NotEqual", "ReduceAll", "ReduceAny"}));
}

TEST(Operators, WithBoolOrIntegerResultsGiveZeroGradients) {
  NetContext context;
  for (const char *op : {"Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"}) {
    TestNetwork network(context);
    Value x = network.param("x", "4xf64");
    Operation *compare = network.op(op, {x, network.input("y", "4xf64")});
    SmallVector<Value> gradients(2);
    llvm::SmallBitVector wanted(2, true);
    ASSERT_TRUE(succeeded(cast<net::Gradient>(compare).buildGradient(network.builder, Value(), wanted, gradients)));
    EXPECT_FALSE(gradients[0] || gradients[1]) << op;
  }
}

//===-- numbers: lowering -------------------------------------------------===//

bool isExpanded(Operation *op) {
  return cast<Lower>(op).loweringKind() == LoweringKind::Expanded;
}

/// What the operators in the place of an expanded one compute.
std::vector<Tensor> evaluateParts(const reference::Interpreter &interpreter, Operation *op,
                                  const std::vector<Tensor> &operands) {
  llvm::DenseMap<Value, Tensor> values;
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), operands))
    values[operand] = tensor;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  SmallVector<Value> results = cast<Lower>(op).expand(builder, op->getOperands());
  for (Operation *part = op->getNextNode(); part; part = part->getNextNode()) {
    if (auto constant = dyn_cast<ConstantOp>(part)) {
      values[constant.getValue()] = Tensor({}, constant.getSplat().convertToDouble());
      continue;
    }
    std::vector<Tensor> inputs;
    for (Value operand : part->getOperands())
      inputs.push_back(values[operand]);
    for (auto [value, tensor] : llvm::zip(part->getResults(), interpreter.evaluate(part, inputs)))
      values[value] = tensor;
  }
  std::vector<Tensor> tensors;
  for (auto [result, value] : llvm::zip(op->getResults(), results)) {
    EXPECT_EQ(result.getType(), value.getType()) << op->getName().getStringRef().str();
    tensors.push_back(values[value]);
  }
  return tensors;
}

/// What the regions of an operator copy on one rank, which has its part of the dimensions in which nothing moves.
std::vector<Tensor> copied(Operation *op, const std::vector<Tensor> &operands,
                           const std::vector<std::vector<int64_t>> &shapes) {
  RegionCopy copy = regionCopyOf(op);
  std::vector<bool> moved = copy.movedDimensions();
  std::vector<Tensor> results;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Tensor &result = results.emplace_back(shapes[i], cast<RegionsInterface>(op).fillValue());
    for (const CopyRegion &region : copy.regions[i]) {
      std::vector<int64_t> sizes;
      for (size_t dim = 0; dim < moved.size(); ++dim)
        sizes.push_back(moved[dim] ? region.ranges[dim].size : shapes[i][dim]);
      reference::forEachIndex(sizes, [&](const std::vector<int64_t> &at) {
        std::vector<int64_t> from, to;
        for (size_t dim = 0; dim < at.size(); ++dim) {
          const CopyRange &range = region.ranges[dim];
          from.push_back(range.source + at[dim] * range.sourceStride);
          to.push_back(range.target + at[dim] * range.targetStride);
        }
        result.at(to) = operands[region.operand].at(from);
      });
    }
  }
  return results;
}

std::vector<Tensor> lowered(const reference::Interpreter &interpreter, Operation *op,
                            const std::vector<Tensor> &operands, const std::vector<std::vector<int64_t>> &shapes) {
  if (isa<CommunicationInterface>(op)) // of ranks that have equal tensors
    return interpreter.evaluate(op, operands);
  switch (cast<Lower>(op).loweringKind()) {
  case LoweringKind::View:
    return {Tensor(shapes[0], operands[0].values)};
  case LoweringKind::MatMul:
  case LoweringKind::Library:
    return interpreter.evaluate(op, operands);
  case LoweringKind::Regions:
    return copied(op, operands, shapes);
  case LoweringKind::Expanded:
    return evaluateParts(interpreter, op, operands);
  case LoweringKind::Generic:
    break;
  }
  FailureOr<std::vector<Tensor>> results = reference::runLowered(op, operands, shapes);
  EXPECT_TRUE(succeeded(results)) << op->getName().getStringRef().str();
  return succeeded(results) ? *results : interpreter.evaluate(op, operands);
}

TEST(Operators, LowerToWhatTheReferenceComputes) {
  NetContext context;
  reference::Interpreter interpreter;
  for (const OperatorCase &theCase : operatorCases()) {
    TestNetwork network(context);
    Operation *op = buildCase(network, theCase);
    std::vector<Tensor> operands = randomOperands(op, theCase, 7);
    std::vector<std::vector<int64_t>> shapes;
    for (Type type : op->getResultTypes())
      shapes.push_back(shapeOfType(type));
    std::vector<Tensor> expected = interpreter.evaluate(op, operands);
    std::vector<Tensor> actual = lowered(interpreter, op, operands, shapes);
    for (size_t i = 0; i < expected.size(); ++i)
      expectNear(actual[i], expected[i], 1e-13, labelOf(theCase));
    if (HasFatalFailure())
      return;
  }
}

double identityOf(ReduceKind kind) {
  static const double identities[] = {0, 1, INFINITY, -INFINITY};
  return identities[static_cast<int>(kind)];
}

double combined(ReduceKind kind, double a, double b) {
  switch (kind) {
  case ReduceKind::Prod:
    return a * b;
  case ReduceKind::Min:
    return std::min(a, b);
  case ReduceKind::Max:
    return std::max(a, b);
  default:
    return a + b;
  }
}

/// What a rank has of the operands when it has gathered what it needs: the other rows and columns are NaN. Where the leader is
/// an operand, a partial result is wanted, and what the rank does not sum over is zero.
std::vector<Tensor> withHalos(HaloInterface op, const ShardingRule &rule, const Assignment &assignment,
                              const std::vector<Tensor> &operands, int64_t rank) {
  std::vector<Tensor> local;
  Value leader = op.haloLeader();
  bool isResult = leader == op->getResult(0);
  unsigned leading = isResult ? 0 : llvm::find(op->getOperands(), leader) - op->operand_begin();
  std::vector<int64_t> leaderShape = shapeOfType(leader.getType());
  Box own = (isResult ? resultSharding(rule, assignment, 0) : operandSharding(rule, assignment, leading)).localBox(leaderShape, rank);
  for (unsigned i = 0; i < operands.size(); ++i) {
    Box box = operandSharding(rule, assignment, i).localBox(operands[i].shape, rank);
    std::vector<int64_t> shape = sizes(box);
    for (unsigned dim = 2; dim < 4; ++dim) {
      if (rule.operands[i][dim].empty() || !rule.factors[rule.operands[i][dim][0]].halo)
        continue;
      shape[dim] = operands[i].shape[dim];
      if (op->getOperand(i) != leader)
        box[dim] = own[dim].size() == 0 ? msc::Range{0, 0} : op.neededIndices(i, dim)(own[dim]);
    }
    Tensor &tensor = local.emplace_back(shape, isResult ? std::nan("") : 0);
    Box target = box;
    for (size_t dim = 0; dim < target.size(); ++dim)
      if (shape[dim] != operands[i].shape[dim])
        target[dim] = {0, shape[dim]};
    paste(tensor, target, slice(operands[i], box));
  }
  return local;
}

/// The rank's part of images that were computed with all rows and columns.
Tensor ownRows(const Tensor &image, const Box &box) {
  Box part;
  for (size_t dim = 0; dim < box.size(); ++dim)
    part.push_back(image.shape[dim] == box[dim].size() ? msc::Range{0, box[dim].size()} : box[dim]);
  return slice(image, part);
}

/// Runs an operator on the shards of `assignment` and puts the results together.
std::vector<Tensor> runSharded(const reference::Interpreter &interpreter, Operation *op, const ShardingRule &rule,
                               const Assignment &assignment, const std::vector<Tensor> &operands,
                               const std::vector<Tensor> &whole) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < whole.size(); ++i) {
    msc::Sharding sharding = resultSharding(rule, assignment, i);
    double start = sharding.isPartial() ? identityOf(sharding.partial[0].kind) : std::nan("");
    results.emplace_back(whole[i].shape, start);
  }
  int64_t devices = elementCount(assignment.matrix);
  for (int64_t rank = 0; rank < devices; ++rank) {
    std::vector<Tensor> local;
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < operands.size(); ++i)
      local.push_back(slice(operands[i], operandSharding(rule, assignment, i).localBox(operands[i].shape, rank)));
    for (size_t i = 0; i < whole.size(); ++i)
      shapes.push_back(resultSharding(rule, assignment, i).localShape(whole[i].shape, rank));
    std::vector<Tensor> parts;
    if (auto reaches = dyn_cast<HaloInterface>(op))
      parts = {ownRows(interpreter.evaluate(op, withHalos(reaches, rule, assignment, operands, rank))[0],
                       resultSharding(rule, assignment, 0).localBox(whole[0].shape, rank))};
    else
      parts = lowered(interpreter, op, local, shapes);
    for (size_t i = 0; i < whole.size(); ++i) {
      msc::Sharding sharding = resultSharding(rule, assignment, i);
      Box box = sharding.localBox(whole[i].shape, rank);
      if (sharding.isPartial()) {
        Tensor sofar = slice(results[i], box);
        for (size_t e = 0; e < sofar.values.size(); ++e)
          parts[i].values[e] = combined(sharding.partial[0].kind, sofar.values[e], parts[i].values[e]);
      }
      paste(results[i], box, parts[i]);
    }
  }
  return results;
}

/// True if the rule allows to cut the factor into so many pieces, and every rank then computes its share alone.
bool mayCut(const Factor &factor, int64_t pieces) {
  if (factor.kind == FactorKind::Exchanged)
    return false; // ranks exchange elements: test/passes/partition
  if (factor.kind == FactorKind::Blocked)
    return factor.size % (pieces * factor.block) == 0;
  return factor.kind != FactorKind::Replicated;
}

/// Kernels that have to know which part of a tensor a rank holds, not only how much of it. Random networks prove them on
/// every split: test/e2e.
bool knowsItsPlace(Operation *op) {
  return isa<GatherOp, EmbeddingLookupOp, GatherGradOp, UnsortedSegmentSumOp, GatherDOp, GatherDGradOp,
             ScaledDotProductAttentionOp, ScaledDotProductAttentionGradOp, ScaledDotProductAttentionMaskGradOp,
             UnsortedSegmentMaxOp, UnsortedSegmentMinOp, CumSumPiecesOp>(op);
}

TEST(Operators, ComputeTheirShareOnShards) {
  NetContext context;
  reference::Interpreter interpreter;
  size_t uneven = 0, partial = 0, empty = 0;
  for (const OperatorCase &theCase : operatorCases()) {
    TestNetwork network(context);
    Operation *op = buildCase(network, theCase);
    if (isExpanded(op) || knowsItsPlace(op))
      continue; // its parts are what ranks compute: test/passes/partition
    ShardingRule rule = cast<ShardingRuleInterface>(op).shardingRule();
    std::vector<Tensor> operands = randomOperands(op, theCase, 11);
    std::vector<Tensor> whole = interpreter.evaluate(op, operands);
    for (size_t first = 0; first < rule.factors.size(); ++first)
      for (size_t second = first; second < rule.factors.size(); ++second)
        for (int64_t pieces : {2, 3, 5}) {
          // Two factors cut at once, or one into pieces * 2 by two axes.
          if (!mayCut(rule.factors[first], pieces) || !mayCut(rule.factors[second], 2) ||
              (first == second && !mayCut(rule.factors[first], 2 * pieces)))
            continue;
          Assignment assignment{{pieces, 2}, std::vector<std::vector<int32_t>>(rule.factors.size())};
          assignment.factors[first].push_back(0);
          assignment.factors[second].push_back(1);
          uneven += rule.factors[first].size % pieces != 0;
          empty += rule.factors[first].size < pieces;
          partial += resultSharding(rule, assignment, 0).isPartial();
          SCOPED_TRACE(labelOf(theCase) + " " + rule.factors[first].name + " by " + std::to_string(pieces) + ", " + rule.factors[second].name + " by 2");
          std::vector<Tensor> joined = runSharded(interpreter, op, rule, assignment, operands, whole);
          for (size_t i = 0; i < whole.size(); ++i)
            expectNear(joined[i], whole[i], 1e-12, labelOf(theCase) + " " + rule.factors[first].name);
          if (HasFatalFailure())
            return;
        }
  }
  EXPECT_GE(uneven, 300u);
  EXPECT_GE(partial, 50u);
  EXPECT_GE(empty, 100u);
}

} // namespace
