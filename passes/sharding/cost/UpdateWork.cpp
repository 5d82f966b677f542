#include "passes/sharding/cost/UpdateWork.h"

#include "dialects/net/NetOps.h"
#include "passes/autodiff/Passes.h"
#include "passes/sharding/Convert.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;

namespace msc::passes {

namespace {

/// The update of a parameter of so many elements.
struct BuiltUpdate {
  std::vector<net::OperatorCost> costs; ///< of each operator that belongs to it
  int64_t states = 0, scalars = 0;
};

} // namespace

static BuiltUpdate built(MLIRContext *context, const net::TrainConfig &train, int64_t elements) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  Location location = builder.getUnknownLoc();
  auto network = builder.create<net::NetworkOp>(location, builder.getStringAttr("update"), builder.getArrayAttr({builder.getStringAttr("gradient")}));
  Block &block = network.getBody().emplaceBlock();
  auto type = RankedTensorType::get({elements}, builder.getF32Type());
  Value gradient = block.addArgument(type, location);
  builder.setInsertionPointToEnd(&block);
  auto initial = builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr("zeros"))});
  auto param = builder.create<net::ParamOp>(location, type, builder.getStringAttr("parameter"), initial, builder.getBoolAttr(true),
                                            builder.getStringAttr(""), builder.getStringAttr(""));
  builder.create<net::ReturnOp>(location, ValueRange(), builder.getArrayAttr({}));
  autodiff::ParameterGradients gradients;
  gradients.insert({param.getValue(), gradient});
  autodiff::buildUpdate(network, gradients, train);
  BuiltUpdate made;
  auto shapes = [](ValueRange values) {
    std::vector<Shape> list;
    for (Value value : values)
      list.push_back(shapeOf(value));
    return list;
  };
  for (Operation &op : block) {
    if (auto cost = dyn_cast<net::CostInterface>(op); cost && net::getInstanceName(&op) != "update") // that of the network
      made.costs.push_back(cost.cost(shapes(op.getOperands()), shapes(op.getResults())));
    if (auto state = dyn_cast<net::ParamOp>(op); state && state != param)
      ++(cast<RankedTensorType>(state.getType()).getRank() == 0 ? made.scalars : made.states);
    made.scalars += isa<net::ScalarOp>(op);
  }
  return made;
}

UpdateFacts updateFacts(MLIRContext *context, const net::TrainConfig &train) {
  constexpr int64_t few = 1024, many = 2048;
  const BuiltUpdate ofFew = built(context, train, few), ofMany = built(context, train, many);
  UpdateFacts facts{.work = {}, .states = ofFew.states, .scalars = ofFew.scalars};
  for (auto [a, b] : llvm::zip(ofFew.costs, ofMany.costs)) {
    auto perElement = [](double ofFewer, double ofMore) { return (ofMore - ofFewer) / static_cast<double>(many - few); };
    UpdateWork &of = facts.work.emplace_back();
    of.flops = perElement(a.flops, b.flops);
    of.bytesRead = perElement(a.bytesRead, b.bytesRead);
    of.bytesWritten = perElement(a.bytesWritten, b.bytesWritten);
    of.fixed = {a.flops - of.flops * few, a.bytesRead - of.bytesRead * few, a.bytesWritten - of.bytesWritten * few};
  }
  return facts;
}

} // namespace msc::passes
