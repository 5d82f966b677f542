// The pass `msc-build-gradients`.
#include "passes/autodiff/Passes.h"

#include "dialects/net/Suggest.h"
#include "dialects/net/ops/print/Print.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/GlobPattern.h"

namespace msc::autodiff {
#define GEN_PASS_DEF_BUILDGRADIENTS
#include "passes/autodiff/Passes.h.inc"
} // namespace msc::autodiff

using namespace mlir;
using namespace msc;
using namespace msc::net;

/// The value called "%a" or the gradient called "grad:w"; null if there is none.
static Value findKept(NetworkOp network, const autodiff::ParameterGradients &gradients, StringRef name) {
  if (name.consume_front("grad:")) {
    for (auto [parameter, gradient] : gradients)
      if (getValueName(parameter) == name || parameter.getDefiningOp<ParamOp>().getName() == name)
        return gradient;
    return {};
  }
  name.consume_front("%");
  Block &block = network.getBody().front();
  for (Value input : block.getArguments())
    if (getValueName(input) == name)
      return input;
  for (Operation &op : block)
    for (Value result : op.getResults())
      if (getValueName(result) == name)
        return result;
  return {};
}

/// The names come from the command line, and so does the mistake.
static LogicalResult reportUnknown(NetworkOp network, const autodiff::ParameterGradients &gradients, StringRef name) {
  bool isGradient = name.starts_with("grad:");
  std::vector<std::string> known;
  for (auto [parameter, gradient] : gradients)
    known.push_back("grad:" + parameter.getDefiningOp<ParamOp>().getName().str());
  for (Operation &op : network.getBody().front())
    for (Value result : op.getResults())
      if (!getValueName(result).empty() && !getValueName(result).starts_with("grad:"))
        known.push_back("%" + getValueName(result).str());
  for (StringRef result : getReturn(network).getNames().getAsValueRange<StringAttr>())
    if (std::string named = "%" + result.str(); !llvm::is_contained(known, named))
      known.push_back(std::move(named));
  InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(network.getContext(), "--keep", 0, 0));
  diagnostic << "cannot keep '" << name << "': network '" << network.getSymName() << "' has no such "
             << (isGradient ? "gradient" : "value");
  constexpr size_t most = 12;
  std::vector<std::string> alike; // of which some are named where none is near
  for (const std::string &other : known) {
    const Value value = findKept(network, gradients, other);
    if (StringRef(other).starts_with("grad:") == isGradient && !(value && value.getDefiningOp<ParamOp>()))
      alike.push_back(other);
  }
  const size_t shown = std::min(alike.size(), most);
  const std::string word = isGradient || name.starts_with("%") ? name.str() : "%" + name.str();
  if (name.starts_with("param:"))
    addHelp(diagnostic, "parameters need not be kept: msrun PLAN --fetch " + name + "=FILE.npy");
  else if (shown > 0 && nearest(word, known).empty())
    addHelp(diagnostic, "there are " + llvm::join(ArrayRef(alike).take_front(shown), ", ") +
                            (shown < alike.size() ? " and " + std::to_string(alike.size() - shown) + " more" : ""));
  else
    addSuggestion(diagnostic, word, known);
  return failure();
}

LogicalResult msc::autodiff::keepValues(NetworkOp network, const ParameterGradients &gradients,
                                        ArrayRef<std::string> names) {
  ReturnOp results = getReturn(network);
  SmallVector<Attribute> resultNames(results.getNames().getValue());
  Builder builder(network.getContext());
  for (StringRef name : names) {
    StringRef bare = name;
    bare.consume_front("%");
    if (llvm::is_contained(resultNames, builder.getStringAttr(bare))) // results are kept anyway
      continue;
    Value value = findKept(network, gradients, name);
    if (!value)
      return reportUnknown(network, gradients, name);
    name = bare;
    results.getValuesMutable().append(value);
    resultNames.push_back(builder.getStringAttr(name));
  }
  results.setNamesAttr(builder.getArrayAttr(resultNames));
  return success();
}

void msc::autodiff::removeDeadOperators(NetworkOp network) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(network.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Gradients are called after their parameters, unless they have a name.
static void nameGradients(const autodiff::ParameterGradients &gradients) {
  for (auto [parameter, gradient] : gradients)
    if (Operation *op = gradient.getDefiningOp(); getValueName(gradient).empty() && op->getNumResults() == 1)
      setValueNames(op, StringRef("grad:" + parameter.getDefiningOp<ParamOp>().getName().str()));
}

LogicalResult msc::autodiff::buildGradients(NetworkOp network, StringRef loss, const TrainConfig &train,
                                            ArrayRef<std::string> keep, int64_t ranks) {
  FailureOr<ParameterGradients> gradients = buildBackward(network, loss, train.gradients.lossScale);
  if (failed(gradients))
    return failure();
  meanOverRanks(network, loss, *gradients, ranks);
  nameGradients(*gradients);
  recomputeForward(network);
  buildUpdate(network, *gradients, train);
  if (failed(buildStateUpdates(network, ranks)))
    return failure();
  if (failed(keepValues(network, *gradients, keep)))
    return failure();
  removeDeadOperators(network);
  return success();
}

/// Reads the blocks of the module without their warnings: who read them first has given those.
static FailureOr<Config> readQuietly(ModuleOp module) {
  ScopedDiagnosticHandler handler(module.getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
  });
  return readConfig(module);
}

/// What no step of an optimizer can mean.
static LogicalResult checkOptimizer(const OptimizerConfig &optimizer) {
  if (optimizer.name != "SGD" && optimizer.name != "Momentum")
    return success();
  double momentum = optimizer.number("momentum"), dampening = optimizer.name == "SGD" ? optimizer.number("dampening") : 0;
  if (!optimizer.flag("use_nesterov") || (momentum > 0 && dampening == 0))
    return success();
  return emitError(optimizer.location, "nesterov needs a momentum above 0 and no dampening, but they are ")
         << momentum << " and " << dampening;
}

/// A pattern that spares no parameter is misspelt.
static LogicalResult checkNoDecay(NetworkOp network, const OptimizerConfig &optimizer) {
  for (const std::string &pattern : optimizer.noDecay.value_or(std::vector<std::string>())) {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
    bool matches = glob && llvm::any_of(network.getBody().front().getOps<ParamOp>(), [&](ParamOp param) {
      return param.getTrained() && glob->match(param.getName());
    });
    llvm::consumeError(glob.takeError());
    if (matches)
      continue;
    return emitError(optimizer.location) << "'no_decay' names no parameter by '" << pattern << "'";
  }
  return success();
}

/// A train block asks for something to train.
static LogicalResult checkTrained(NetworkOp network, const TrainConfig &train) {
  if (llvm::any_of(network.getBody().front().getOps<ParamOp>(), [](ParamOp param) { return param.getTrained(); }))
    return success();
  InFlightDiagnostic diagnostic = emitError(train.location)
                                  << "nothing to train: the network has no trainable parameters";
  addHelp(diagnostic, "leave out the train block, and the network is evaluated");
  return diagnostic;
}

/// Gradients come with a train block only.
static LogicalResult keepForwardValues(NetworkOp network, ArrayRef<std::string> names) {
  for (StringRef name : names)
    if (name.starts_with("grad:")) {
      InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(network.getContext(), "--keep", 0, 0))
                                      << "cannot keep '" << name << "': the network is not trained";
      addHelp(diagnostic, "add a train block");
      return diagnostic;
    }
  if (failed(autodiff::keepValues(network, {}, names)))
    return failure();
  autodiff::removeDropouts(network);
  autodiff::removeDeadOperators(network); // nothing is moved for them
  return success();
}

namespace {
struct BuildGradientsPass : autodiff::impl::BuildGradientsBase<BuildGradientsPass> {
  using BuildGradientsBase::BuildGradientsBase;

  void runOnOperation() override {
    FailureOr<Config> config = readQuietly(getOperation());
    if (failed(config))
      return signalPassFailure();
    std::vector<std::string> kept(keep.begin(), keep.end());
    if (config->train && failed(checkOptimizer(config->train->optimizer)))
      return signalPassFailure();
    for (NetworkOp network : getOperation().getOps<NetworkOp>()) {
      returnPrinted(network);
      if (failed(config->train ? train(network, *config->train, kept) : keepForwardValues(network, kept)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult train(NetworkOp network, const TrainConfig &config, ArrayRef<std::string> kept) {
    if (failed(checkTrained(network, config)))
      return failure();
    network.walk([](StateInterface op) { op.beginTraining(); });
    autodiff::beginDropouts(network, config.seed, rankTensors);
    if (failed(checkNoDecay(network, config.optimizer)))
      return failure();
    return autodiff::buildGradients(network, loss.empty() ? config.minimize : loss, config, kept, rankTensors);
  }
};
} // namespace
