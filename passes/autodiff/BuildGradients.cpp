// The pass `msc-build-gradients`.
#include "passes/autodiff/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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

LogicalResult msc::autodiff::keepValues(NetworkOp network, const ParameterGradients &gradients,
                                        ArrayRef<std::string> names) {
  ReturnOp results = getReturn(network);
  SmallVector<Attribute> resultNames(results.getNames().getValue());
  Builder builder(network.getContext());
  for (StringRef name : names) {
    Value value = findKept(network, gradients, name);
    if (!value)
      return network.emitError("cannot keep '") << name << "': network '" << network.getSymName() << "' has no such "
                                                << (name.starts_with("grad:") ? "gradient" : "value");
    name.consume_front("%");
    if (llvm::is_contained(resultNames, builder.getStringAttr(name)))
      continue;
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

LogicalResult msc::autodiff::buildGradients(NetworkOp network, StringRef loss, const Optimizer &optimizer,
                                            ArrayRef<std::string> keep) {
  FailureOr<ParameterGradients> gradients = buildBackward(network, loss);
  if (failed(gradients))
    return failure();
  nameGradients(*gradients);
  buildUpdate(network, *gradients, optimizer);
  if (failed(keepValues(network, *gradients, keep)))
    return failure();
  removeDeadOperators(network);
  return success();
}

namespace {

/// Options of the pass with what the `train` block says filled in.
struct Request {
  std::string loss;
  DictionaryAttr optimizer;
  Location location;
};

struct BuildGradientsPass : autodiff::impl::BuildGradientsBase<BuildGradientsPass> {
  using BuildGradientsBase::BuildGradientsBase;

  void runOnOperation() override {
    Request request = read();
    if (request.loss.empty() || !request.optimizer)
      return;
    FailureOr<autodiff::Optimizer> how = autodiff::readOptimizer(request.optimizer, request.location);
    if (failed(how))
      return signalPassFailure();
    std::vector<std::string> kept(keep.begin(), keep.end());
    for (NetworkOp network : getOperation().getOps<NetworkOp>())
      if (failed(autodiff::buildGradients(network, request.loss, *how, kept)))
        return signalPassFailure();
  }

private:
  Request read() {
    Request request{loss, {}, getOperation().getLoc()};
    if (!optimizer.empty())
      request.optimizer = dyn_cast_or_null<DictionaryAttr>(parseAttribute(optimizer, &getContext()));
    for (ConfigOp config : getOperation().getOps<ConfigOp>()) {
      if (config.getKind() != "train")
        continue;
      request.location = config.getLoc();
      if (auto place = config.getLocations().getAs<LocationAttr>("optimizer"))
        request.location = place;
      auto minimize = config.getFields().getAs<StringAttr>("minimize");
      if (request.loss.empty() && minimize)
        request.loss = minimize.str();
      if (!request.optimizer)
        request.optimizer = config.getFields().getAs<DictionaryAttr>("optimizer");
    }
    return request;
  }
};

} // namespace
