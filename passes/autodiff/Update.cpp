// From gradients to new parameters: one step of the optimizer per parameter.
#include "passes/autodiff/Passes.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

namespace {

class Update {
public:
  Update(NetworkOp network, const OptimizerConfig &optimizer)
      : block(network.getBody().front()), optimizer(optimizer), builder(getReturn(network)) {
    for (Operation &op : block)
      if (isa<ParamOp>(op) || !lastParam)
        lastParam = &op;
  }

  void add(ParamOp param, Value gradient) {
    Operation *last = &*std::prev(builder.getInsertionPoint());
    if (optimizer.momentum != 0 || optimizer.kind == OptimizerConfig::Kind::Momentum)
      applyMomentum(param, gradient);
    else
      applySGD(param, gradient);
    StringRef scope =
        optimizer.kind == OptimizerConfig::Kind::Momentum ? "Default/optimizer-Momentum" : "Default/optimizer-SGD";
    for (Operation *op = last->getNextNode(); op != &*builder.getInsertionPoint(); op = op->getNextNode()) {
      setPhase(op, Phase::Update);
      setScope(op, scope);
      setInstanceName(op, ("update." + param.getName()).str());
      if (std::optional<int64_t> id = forwardIdOf(param))
        setForwardId(op, *id);
    }
  }

private:
  FloatAttr number(double value) { return builder.getF64FloatAttr(value); }

  /// MindSpore leaves normalisation parameters alone.
  FloatAttr decayOf(ParamOp param) {
    bool spared = param.getName().contains("beta") || param.getName().contains("gamma");
    return number(spared ? 0 : optimizer.weightDecay);
  }

  void applyMomentum(ParamOp param, Value gradient) {
    ParamOp accum = state(param);
    auto step =
        builder.create<ApplyMomentumOp>(param.getLoc(), param.getValue(), accum.getValue(), learningRate(param),
                                        gradient, number(optimizer.momentum), builder.getBoolAttr(optimizer.nesterov),
                                        decayOf(param), number(optimizer.lossScale), number(optimizer.dampening));
    builder.create<UpdateOp>(param.getLoc(), param.getValue(), step.getNewVar());
    builder.create<UpdateOp>(param.getLoc(), accum.getValue(), step.getNewAccum());
  }

  void applySGD(ParamOp param, Value gradient) {
    auto step = builder.create<SGDOp>(param.getLoc(), param.getValue(), learningRate(param), gradient, decayOf(param),
                                      number(optimizer.lossScale));
    builder.create<UpdateOp>(param.getLoc(), param.getValue(), step.getNewVar());
  }

  /// The running direction of a parameter, behind all parameters and states so far.
  ParamOp state(ParamOp param) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastParam);
    auto zeros = builder.getDictionaryAttr({builder.getNamedAttr("a", number(0)), builder.getNamedAttr("b", number(0)),
                                            builder.getNamedAttr("kind", builder.getStringAttr("zeros"))});
    auto state = builder.create<ParamOp>(param.getLoc(), param.getValue().getType(),
                                         builder.getStringAttr("moments." + param.getName()), zeros,
                                         builder.getBoolAttr(false), param.getNameAttr(), builder.getStringAttr(""));
    lastParam = state;
    return state;
  }

  /// The learning rate in the element type of the parameter: a scalar that the runtime writes before each step.
  Value learningRate(ParamOp param) {
    Type element = cast<RankedTensorType>(param.getValue().getType()).getElementType();
    Type own = isa<Float64Type>(element) ? element : builder.getF32Type();
    Value rate = rates[own];
    if (!rate) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfter(lastParam);
      auto schedule = builder.getDictionaryAttr(
          {builder.getNamedAttr("kind", builder.getStringAttr("constant")),
           builder.getNamedAttr("values", builder.getArrayAttr(number(optimizer.learningRate)))});
      StringRef name = rates.size() == 1 ? "learning_rate" : "learning_rate.2"; // one per precision
      rate = builder.create<ScalarOp>(param.getLoc(), RankedTensorType::get({}, own), name, schedule);
      rates[own] = rate;
    }
    return own == element ? rate : builder.create<CastOp>(param.getLoc(), rate, element);
  }

  /// The first forward operator that reads the parameter.
  static std::optional<int64_t> forwardIdOf(ParamOp param) {
    std::optional<int64_t> first;
    for (Operation *user : param.getValue().getUsers())
      if (getPhase(user) == Phase::Forward && getId(user) && (!first || *getId(user) < *first))
        first = getId(user);
    return first;
  }

  Block &block;
  const OptimizerConfig &optimizer;
  OpBuilder builder;
  Operation *lastParam = nullptr; ///< states and scalars follow it
  DenseMap<Type, Value> rates;
};

} // namespace

void msc::autodiff::buildUpdate(NetworkOp network, const ParameterGradients &gradients,
                                const OptimizerConfig &optimizer) {
  Update update(network, optimizer);
  for (auto [parameter, gradient] : gradients)
    update.add(parameter.getDefiningOp<ParamOp>(), gradient);
}

LogicalResult msc::autodiff::buildStateUpdates(NetworkOp network) {
  OpBuilder builder(getReturn(network));
  llvm::DenseMap<Value, Operation *> writers;
  LogicalResult result = success();
  network.walk([&](StateInterface op) {
    for (auto [from, to] : op.newStates()) {
      auto param = op->getOperand(to).getDefiningOp<ParamOp>();
      if (!param || param.getTrained())
        continue;
      if (!writers.try_emplace(param.getValue(), op).second) {
        result = op->emitError("state '") << param.getName() << "' gets a new value twice in one step: '"
                                          << getInstanceName(writers[param.getValue()]) << "' and '" << getInstanceName(op)
                                          << "' share it";
        continue;
      }
      auto update = builder.create<UpdateOp>(op->getLoc(), param.getValue(), op->getResult(from));
      setPhase(update, Phase::Update);
      setInstanceName(update, ("update." + param.getName()).str());
    }
  });
  return result;
}
