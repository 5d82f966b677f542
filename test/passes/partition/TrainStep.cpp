#include "test/passes/partition/TrainStep.h"

#include "passes/autodiff/Passes.h"
#include "passes/optimize/Passes.h"
#include "passes/partition/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace msc::test {

void loadDist(NetContext &context) {
  context.get()->loadDialect<dist::DistDialect>();
}

static net::ParamOp momentsOf(OpBuilder &builder, net::ParamOp param) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(param);
  auto zeros = builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr("zeros"))});
  auto state = builder.create<net::ParamOp>(param.getLoc(), param.getValue().getType(),
                                            ("moments." + param.getName()).str(), zeros);
  state.setTrained(false);
  state.setStateOf(param.getName());
  return state;
}

bool addTraining(TestNetwork &test) {
  auto gradients = autodiff::buildBackward(test.network, "loss");
  if (failed(gradients))
    return false;
  OpBuilder builder(net::getReturn(test.network));
  DenseMap<Type, Value> rates;
  for (auto [parameter, gradient] : *gradients) {
    auto param = parameter.getDefiningOp<net::ParamOp>();
    Type element = cast<RankedTensorType>(parameter.getType()).getElementType();
    Value &rate = rates[element];
    if (!rate) {
      auto schedule = builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr("constant")),
                                                 builder.getNamedAttr("values", builder.getF64ArrayAttr({0.2}))});
      rate =
          builder.create<net::ScalarOp>(param.getLoc(), RankedTensorType::get({}, element), "learning_rate", schedule);
    }
    OperationState state(param.getLoc(), "net.ApplyMomentum");
    state.addOperands({parameter, momentsOf(builder, param).getValue(), rate, gradient});
    state.addAttributes(test.context.attributes("{momentum = 0.1}").getValue());
    if (failed(net::inferResultTypes(state)))
      return false;
    Operation *step = builder.create(state);
    net::setPhase(step, net::Phase::Update);
    net::setScope(step, "Default/optimizer-Momentum");
    net::setInstanceName(step, ("update." + param.getName()).str());
    for (unsigned i = 0; i < 2; ++i) {
      auto update = builder.create<net::UpdateOp>(param.getLoc(), step->getOperand(i), step->getResult(i));
      net::setPhase(update, net::Phase::Update);
    }
  }
  autodiff::removeDeadOperators(test.network);
  return true;
}

static bool run(TestNetwork &test, llvm::function_ref<void(PassManager &)> build) {
  PassManager manager(test.context.get());
  build(manager);
  return succeeded(manager.run(*test.module));
}

bool assignStrategies(TestNetwork &test, const passes::AssignStrategiesPassOptions &options) {
  return run(test, [&](PassManager &manager) { manager.addPass(passes::createAssignStrategiesPass(options)); });
}

bool partitionAssigned(TestNetwork &test) {
  return run(test, [](PassManager &manager) {
    manager.addPass(passes::createPartitionPass());
    manager.addPass(passes::createPlanReshardsPass());
  });
}

bool optimizeMoves(TestNetwork &test) {
  return run(test, [](PassManager &manager) { manager.addPass(passes::createPlanMovesPass()); });
}

bool keepPartials(TestNetwork &test) {
  return run(test, [](PassManager &manager) { manager.addPass(passes::createKeepPartialsPass()); });
}

bool fuseCollectives(TestNetwork &test) {
  return run(test, [](PassManager &manager) { manager.addPass(passes::createFuseCollectivesPass({})); });
}

bool partitionNetwork(TestNetwork &test, const passes::AssignStrategiesPassOptions &options) {
  return assignStrategies(test, options) && addTraining(test) && partitionAssigned(test);
}

} // namespace msc::test
