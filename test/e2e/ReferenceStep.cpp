#include "test/e2e/ReferenceStep.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/Recompute.h"

#include "passes/autodiff/Passes.h"
#include "test/e2e/Reading.h"
#include "test/reference/Images.h"
#include "test/reference/Interpreter.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace msc::e2e {
using reference::Tensor;

namespace {

std::vector<int64_t> shapeOf(mlir::Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return {shape.begin(), shape.end()};
}

/// Numbers that the element type holds exactly.
Tensor draw(mlir::Value value, double bound, Random &random) {
  Tensor tensor(shapeOf(value));
  bool narrow = cast<RankedTensorType>(value.getType()).getElementType().isF32();
  for (double &element : tensor.values) {
    element = random.real(-bound, bound);
    if (narrow)
      element = static_cast<float>(element);
  }
  return tensor;
}

double largest(const Tensor &tensor) {
  double most = 0;
  for (double value : tensor.values)
    most = std::max(most, std::abs(value));
  return most;
}

/// Smallest distance of two operands relative to their size, elements that are exactly equal left out.
double gapBetween(const Tensor &x, const Tensor &y, const std::vector<int64_t> &shape) {
  double scale = std::max({largest(x), largest(y), 1e-30}), gap = 1;
  reference::forEachIndex(shape, [&](const std::vector<int64_t> &index) {
    double distance = std::abs(reference::broadcastAt(x, index) - reference::broadcastAt(y, index)) / scale;
    if (distance > 0)
      gap = std::min(gap, distance);
  });
  return gap;
}

/// Distance of the extremum of each group to the next element.
template <typename Op> double gapOfExtremum(Op op, const Tensor &x, const Tensor &most) {
  std::vector<int64_t> kept = x.shape;
  if (op.getAxis().empty())
    std::fill(kept.begin(), kept.end(), 1);
  for (int64_t axis : op.getAxis())
    kept[static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)] = 1;
  return gapBetween(x, Tensor(kept, most.values), x.shape);
}

/// Distance of the maximum of each window to the next smaller element in it.
double gapOfWindows(net::MaxPoolOp op, const Tensor &x, const Tensor &most) {
  double scale = std::max(largest(x), 1e-30), gap = 1;
  reference::forEachIndex(most.shape, [&](const std::vector<int64_t> &at) {
    Box box{{at[0], at[0] + 1}, {at[1], at[1] + 1}};
    for (int d : {0, 1}) {
      reference::Slide slide = reference::slideOf(d, x.shape[2 + d], op.getKernelSize(), op.getStrides(), {1}, op.getPadMode(), op.getPad());
      int64_t begin = slide.under(at[2 + d], 0);
      box.push_back({std::max<int64_t>(begin, 0), std::min(begin + slide.kernel, x.shape[2 + d])});
    }
    for (double value : reference::slice(x, box).values)
      if (double distance = (most.at(at) - value) / scale; distance > 0)
        gap = std::min(gap, distance);
  });
  return gap;
}

/// Distance of the chosen elements along a dimension to the others.
double gapOfChoice(const Tensor &x, const Tensor &index, int64_t dim) {
  std::vector<int64_t> kept = x.shape;
  kept[static_cast<size_t>(dim)] = 1;
  Tensor places(kept, index.values), chosen(kept);
  reference::forEachIndex(kept, [&](const std::vector<int64_t> &at) {
    std::vector<int64_t> from = at;
    from[static_cast<size_t>(dim)] = static_cast<int64_t>(places.at(at));
    chosen.at(at) = x.at(from);
  });
  return gapBetween(x, chosen, x.shape);
}

/// Distance of the rows to the extremum of their segment.
double gapOfSegments(const Tensor &x, const Tensor &ids, const Tensor &most) {
  Tensor chosen = x;
  auto rows = static_cast<int64_t>(ids.values.size());
  int64_t each = rows == 0 ? 0 : static_cast<int64_t>(x.values.size()) / rows;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < each; ++i)
      if (double id = ids.values[row]; id >= 0 && id < static_cast<double>(most.shape[0]))
        chosen.values[row * each + i] = most.values[static_cast<int64_t>(id) * each + i];
  return gapBetween(x, chosen, x.shape);
}

/// Smallest distance of two elements of a row that are not equal.
double gapWithin(const Tensor &x) {
  double scale = std::max(largest(x), 1e-30), gap = 1;
  int64_t length = std::max<int64_t>(x.shape.back(), 1);
  for (size_t row = 0; row < x.values.size(); row += static_cast<size_t>(length)) {
    std::vector<double> sorted(x.values.begin() + static_cast<long>(row), x.values.begin() + static_cast<long>(row) + length);
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 1; i < sorted.size(); ++i)
      if (double distance = (sorted[i] - sorted[i - 1]) / scale; distance > 0)
        gap = std::min(gap, distance);
  }
  return gap;
}

/// The places where a function of one element has a kink or a step.
std::vector<double> kinksOf(Operation *op) {
  if (isa<net::ReLUOp, net::AbsOp, net::SignOp, net::EluOp, net::SeLUOp, net::LeakyReLUOp>(op))
    return {0};
  if (isa<net::ReLU6Op>(op))
    return {0, 6};
  if (isa<net::HSigmoidOp, net::HSwishOp>(op))
    return {-3, 3};
  std::vector<double> kinks;
  if (isa<net::FloorOp, net::CeilOp, net::TruncOp, net::RoundOp>(op))
    for (double at = -16; at <= 16; ++at)
      kinks.push_back(isa<net::RoundOp>(op) ? at + 0.5 : at);
  return kinks;
}

/// Distance to these places; 1 where there are none.
double gapOfPieces(Operation *op, const Tensor &x) {
  double gap = 1;
  for (double kink : kinksOf(op))
    gap = std::min(gap, gapBetween(x, Tensor({}, kink), x.shape));
  return gap;
}

/// Has a kink where its operands are equal.
bool comparesOperands(Operation *op) {
  return isa<net::MaximumOp, net::MinimumOp, net::L1LossOp, net::GreaterOp, net::GreaterEqualOp, net::LessOp, net::LessEqualOp,
             net::EqualOp, net::NotEqualOp>(op);
}

/// Distance of quotients to whole numbers.
double gapOfQuotients(const Tensor &x, const Tensor &y, const std::vector<int64_t> &shape) {
  double gap = 1;
  reference::forEachIndex(shape, [&](const std::vector<int64_t> &index) {
    double quotient = reference::broadcastAt(x, index) / reference::broadcastAt(y, index);
    if (double distance = std::abs(quotient - std::round(quotient)); distance > 0)
      gap = std::min(gap, distance / std::max(1.0, std::abs(quotient)));
  });
  return gap;
}

/// How far a step is from another side of any kink; 1 at most.
double kinkDistance(net::NetworkOp network, const reference::Step &step) {
  double gap = 1;
  for (Operation &op : network.getBody().front()) {
    auto operand = [&](unsigned i) -> const Tensor & { return step.values.find(op.getOperand(i))->second; };
    auto result = [&](unsigned i) -> const Tensor & { return step.values.find(op.getResult(i))->second; };
    if (op.getNumOperands() > 0 && op.getNumResults() > 0)
      gap = std::min(gap, gapOfPieces(&op, operand(0)));
    if (op.getNumOperands() > 0 && isa<IntegerType>(cast<RankedTensorType>(op.getOperand(0).getType()).getElementType()))
      continue; // whole numbers do not round; what they come from is looked at there
    if (comparesOperands(&op))
      gap = std::min(gap, gapBetween(operand(0), operand(1), isa<net::L1LossOp>(op) ? operand(0).shape : shapeOf(op.getResult(0))));
    else if (isa<net::FloorDivOp, net::FloorModOp, net::ModOp>(op) &&
             isa<FloatType>(cast<RankedTensorType>(op.getResult(0).getType()).getElementType()))
      gap = std::min(gap, gapOfQuotients(operand(0), operand(1), shapeOf(op.getResult(0))));
    else if (auto most = dyn_cast<net::ReduceMaxOp>(op))
      gap = std::min(gap, gapOfExtremum(most, operand(0), result(0)));
    else if (auto least = dyn_cast<net::ReduceMinOp>(op))
      gap = std::min(gap, gapOfExtremum(least, operand(0), result(0)));
    else if (auto pool = dyn_cast<net::MaxPoolOp>(op))
      gap = std::min(gap, gapOfWindows(pool, operand(0), result(0)));
    else if (isa<net::UnsortedSegmentMaxOp, net::UnsortedSegmentMinOp>(op))
      gap = std::min(gap, gapOfSegments(operand(0), operand(1), result(0)));
    else if (isa<net::TopKOp>(op)) // which elements are chosen, and in which order
      gap = std::min(gap, gapWithin(operand(0)));
    else
      TypeSwitch<Operation *>(&op).Case<net::ArgMaxWithValueOp, net::ArgMinWithValueOp, net::ArgmaxOp, net::ArgminOp>(
          [&](auto search) { gap = std::min(gap, gapOfChoice(operand(0), result(0), search.dimension())); });
  }
  return gap;
}

/// Bound of the elements of a parameter: products with it keep the size of the other factor.
double boundOf(mlir::Value parameter) {
  for (Operation *user : parameter.getUsers())
    if (isa<net::Conv2DOp, net::Conv2DTransposeOp>(user) && user->getOperand(1) == parameter) {
      std::vector<int64_t> shape = shapeOf(parameter);
      return 1.5 / std::sqrt(static_cast<double>(std::max<int64_t>(1, shape[1] * shape[2] * shape[3])));
    }
  for (Operation *user : parameter.getUsers())
    if (auto product = dyn_cast<net::MatMulOp>(user); product && product.getX2() == parameter) {
      std::vector<int64_t> shape = shapeOf(parameter);
      return 1.5 / std::sqrt(static_cast<double>(shape[shape.size() - (product.getTransposeB() ? 1 : 2)]));
    }
  return 1;
}

/// Means of squares are larger than the squares of means; a loss scale is above 0.
bool holdsSquares(net::ParamOp param) {
  for (StringRef prefix : {"moment2.", "adam_v.", "lamb_v.", "mean_square.", "accum.", "loss_scale", "beta1_correction", "beta2_correction"})
    if (!param.getTrained() && param.getName().starts_with(prefix))
      return true;
  return false;
}

Tensor drawParameter(net::ParamOp param, Random &random) {
  if (isa<IntegerType>(cast<RankedTensorType>(param.getValue().getType()).getElementType()))
    return Tensor(shapeOf(param.getValue()), static_cast<double>(random.below(int64_t{1} << 40))); // counts steps
  if (!holdsSquares(param))
    return draw(param.getValue(), param.getStateOf().empty() ? boundOf(param.getValue()) : 0.5, random);
  Tensor tensor = draw(param.getValue(), 0.125, random);
  bool narrow = cast<RankedTensorType>(param.getValue().getType()).getElementType().isF32();
  for (double &value : tensor.values)
    value = narrow ? static_cast<float>(value + 0.375) : value + 0.375;
  return tensor;
}

std::map<std::string, Tensor> drawState(net::NetworkOp network, Random &random) {
  std::map<std::string, Tensor> state;
  for (BlockArgument input : network.getBody().getArguments())
    state[net::getValueName(input).str()] = draw(input, 1, random);
  for (auto param : network.getBody().getOps<net::ParamOp>())
    state[param.getName().str()] = drawParameter(param, random);
  return state;
}

/// Moves every element by up to one unit in the last place of the element type, or of `least` where that is larger; whole
/// numbers stay.
void disturb(Tensor &tensor, Type element, Random &random, double least = 0) {
  if (!isa<FloatType>(element))
    return;
  double unit = element.isF32() ? 0x1p-23 : 0x1p-52;
  for (double &value : tensor.values)
    value += std::max(std::abs(value), least) * random.real(-unit, unit);
}

/// Operators that move or choose elements and round nothing; what they repeat must stay equal.
bool isExact(Operation *op) {
  if (auto lower = dyn_cast<net::Lower>(op);
      lower && llvm::is_contained({net::LoweringKind::View, net::LoweringKind::Regions}, lower.loweringKind()))
    return true;
  return isa<net::ReduceMaxOp, net::ReduceMinOp, net::ArgMaxWithValueOp, net::ArgMinWithValueOp, net::FloorOp, net::CeilOp,
             net::RoundOp, net::TruncOp, net::FloorDivOp, net::MaskedFillOp, net::ReLU6Op, net::ZerosLikeOp, net::OnesLikeOp,
             net::OneHotOp, net::MaxPoolOp, net::MaximumOp, net::MinimumOp, net::SelectOp, net::SelectEqualOp, net::TransposeOp, net::StridedSliceOp,
             net::TileOp, net::StackOp, net::UnstackOp, net::TriuOp, net::TrilOp,
             net::GatherOp, net::GatherNdOp, net::EmbeddingLookupOp, net::GatherDOp, net::TopKOp,
             net::TensorScatterUpdateOp, net::UnsortedSegmentMaxOp, net::UnsortedSegmentMinOp,
             net::BroadcastToOp, net::NegOp, net::AbsOp, net::ReLUOp, net::SignOp>(op);
}

/// Operators that add up terms: the sum of terms that cancel is as wrong as the terms are large, so rounding moves each
/// term, not only the sum.
bool addsTerms(Operation *op) {
  return isa<net::MatMulOp, net::ReduceSumOp, net::ReduceMeanOp, net::MSELossOp, net::L1LossOp, net::SmoothL1LossOp,
             net::KLDivLossOp, net::NLLLossOp, net::BCEWithLogitsLossOp, net::BinaryCrossEntropyOp, net::GatherGradOp, net::GatherDGradOp,
             net::UnsortedSegmentSumOp, net::ScatterAddOp, net::CumSumOp, net::ScaledDotProductAttentionOp,
             net::ScaledDotProductAttentionGradOp, net::ScaledDotProductAttentionMaskGradOp, net::GroupNormOp,
             net::TensorScatterAddOp, net::BatchMatMulOp, net::DenseOp, net::AddNOp, net::RotaryPositionEmbeddingOp,
             net::AvgPoolOp, net::AdaptiveAvgPool2DOp, net::Conv2DOp, net::Conv2DTransposeOp, net::Conv2DBackpropInputOp,
             net::Conv2DBackpropFilterOp, net::BatchNormOp>(op);
}

/// Operators whose results are about one before what they have in common with one goes: 1 + t in a logarithm, a probability
/// less its label. Of t rounding leaves a unit of one.
bool subtractsFromOne(Operation *op) {
  return isa<net::SoftmaxCrossEntropyWithLogitsOp, net::SparseSoftmaxCrossEntropyWithLogitsOp, net::LogSoftmaxOp>(op);
}

/// The step again, with rounding noise on every result. What is computed again has that of the first time: it is the same to the bit.
reference::Step disturbedStep(net::NetworkOp network, const reference::Step &step, Random &random) {
  reference::Interpreter interpreter;
  reference::Step noisy = step;
  llvm::DenseMap<int64_t, Operation *> byId;
  for (Operation &op : network.getBody().front()) {
    if (std::optional<int64_t> id = net::getId(&op))
      byId[*id] = &op;
    if (std::optional<int64_t> id = net::getForwardId(&op); id && net::isCopy(&op)) {
      for (auto [value, first] : llvm::zip(op.getResults(), byId.lookup(*id)->getResults()))
        noisy.values[value] = noisy.values[first];
      continue;
    }
    if (auto update = dyn_cast<net::UpdateOp>(op)) {
      noisy.updated[update.getParameter().getDefiningOp<net::ParamOp>().getName().str()] = noisy.values[update.getNewValue()];
    } else if (auto results = dyn_cast<net::ReturnOp>(op)) {
      for (auto [value, name] : llvm::zip(results.getValues(), results.getNames().getAsValueRange<StringAttr>()))
        noisy.outputs[name.str()] = noisy.values[value];
    } else if (interpreter.knows(op.getName().stripDialect())) {
      std::vector<Tensor> operands = reference::Interpreter::inputsOf(&op, noisy.values);
      if (addsTerms(&op))
        for (auto [operand, tensor] : llvm::zip(op.getOperands(), operands))
          disturb(tensor, cast<RankedTensorType>(operand.getType()).getElementType(), random);
      for (auto [value, tensor] : llvm::zip(op.getResults(), interpreter.evaluate(&op, operands))) {
        if (!isExact(&op))
          disturb(tensor, cast<RankedTensorType>(value.getType()).getElementType(), random, subtractsFromOne(&op) ? 1 : 0);
        noisy.values[value] = tensor;
      }
    }
  }
  return noisy;
}

/// Does noise move a difference by half of it, where its sign decides?
bool mayCross(const Tensor &x, const Tensor &y, const Tensor &noisyX, const Tensor &noisyY, const std::vector<int64_t> &shape) {
  bool crosses = false;
  reference::forEachIndex(shape, [&](const std::vector<int64_t> &index) {
    double distance = reference::broadcastAt(x, index) - reference::broadcastAt(y, index);
    double noise = reference::broadcastAt(noisyX, index) - reference::broadcastAt(noisyY, index) - distance;
    crosses |= distance != 0 && std::abs(noise) >= 0.5 * std::abs(distance);
  });
  return crosses;
}

/// The same of any kink: an element may be far from it relative to its size, and its rounding be larger than it. Log(Exp(1e-9)) is 0 in f32.
bool mayCrossKinks(net::NetworkOp network, const reference::Step &step, const reference::Step &noisy) {
  for (Operation &op : network.getBody().front()) {
    if (op.getNumOperands() == 0 || op.getNumResults() == 0 ||
        isa<IntegerType>(cast<RankedTensorType>(op.getOperand(0).getType()).getElementType()))
      continue;
    auto of = [&](const reference::Step &run, unsigned i) -> const Tensor & { return run.values.find(op.getOperand(i))->second; };
    for (double kink : kinksOf(&op))
      if (Tensor at({}, kink); mayCross(of(step, 0), at, of(noisy, 0), at, of(step, 0).shape))
        return true;
    if (comparesOperands(&op) && mayCross(of(step, 0), of(step, 1), of(noisy, 0), of(noisy, 1),
                                          isa<net::L1LossOp>(op) ? of(step, 0).shape : shapeOf(op.getResult(0))))
      return true;
  }
  return false;
}

bool hasNaN(const std::map<std::string, Tensor> &tensors) {
  return llvm::any_of(tensors, [](const auto &entry) { return llvm::any_of(entry.second.values, [](double value) { return std::isnan(value); }); });
}

void measureNoise(const std::map<std::string, Tensor> &clean, const std::map<std::string, Tensor> &noisy,
                  std::map<std::string, double> &noise) {
  for (const auto &[name, tensor] : clean)
    for (size_t i = 0; i < tensor.values.size(); ++i)
      noise[name] = std::max(noise[name], std::abs(tensor.values[i] - noisy.at(name).values[i]));
}

/// Names of the values to keep: those of the case and all gradients of updated parameters.
std::vector<std::string> keptNames(const Case &test) {
  Reading reading(test.text, test.devices);
  std::vector<std::string> names = test.keep;
  auto gradients = autodiff::buildBackward(reading.network(), "loss");
  if (succeeded(gradients))
    for (auto [parameter, gradient] : *gradients)
      names.push_back("grad:" + parameter.getDefiningOp<net::ParamOp>().getName().str());
  return names;
}

} // namespace

Result<ReferenceStep> computeReference(const Case &test) {
  Reading reading(test.text, test.devices);
  if (!reading.module)
    return Error{ExitCode::Internal, "the case is no network:\n" + reading.said, ""};
  ReferenceStep result;
  result.keep = keptNames(test);
  for (Operation &op : reading.network().getBody().front())
    result.forwardNodes += op.getNumOperands() > 0 && op.getNumResults() > 0;
  PassManager manager(&reading.context);
  manager.enableVerifier(false);
  autodiff::BuildGradientsOptions options;
  options.loss = "loss";
  options.keep = result.keep;
  manager.addPass(autodiff::createBuildGradients(options));
  if (failed(manager.run(*reading.module)))
    return Error{ExitCode::Internal, "no gradients for the reference:\n" + reading.said, ""};
  for (Operation &op : reading.network().getBody().front())
    ++result.operators[op.getName().stripDialect().str()];

  const double margin = test.type == "f32" ? 2e-5 : 1e-9;
  for (uint64_t attempt = 0; attempt < 200; ++attempt) {
    Random random(test.seed * 1000 + attempt);
    result.given = drawState(reading.network(), random);
    FailureOr<reference::Step> step = reference::Interpreter().run(reading.network(), result.given);
    if (failed(step))
      return Error{ExitCode::Internal, "the reference cannot run:\n" + reading.said, ""};
    if (kinkDistance(reading.network(), *step) < margin)
      continue;
    std::vector<reference::Step> noisySteps;
    for (int run = 0; run < 4; ++run)
      noisySteps.push_back(disturbedStep(reading.network(), *step, random));
    if (llvm::any_of(noisySteps, [&](const reference::Step &noisy) { return mayCrossKinks(reading.network(), *step, noisy); }))
      continue;
    if (!hasNaN(step->outputs) && llvm::any_of(noisySteps, [](const reference::Step &noisy) { return hasNaN(noisy.outputs); }))
      return Error{ExitCode::Internal, "rounding noise makes NaN of numbers: it moves what is equal whatever is rounded", ""};
    result.outputs = step->outputs;
    result.updated = step->updated;
    for (const reference::Step &noisy : noisySteps) {
      measureNoise(result.outputs, noisy.outputs, result.noise);
      measureNoise(result.updated, noisy.updated, result.noise);
    }
    return result;
  }
  return Error{ExitCode::Failed, "every drawn state lies on a kink", ""};
}

} // namespace msc::e2e
