#include "passes/sharding/cost/UpdateWork.h"

#include "dialects/net/NetOps.h"
#include "passes/autodiff/Passes.h"
#include "passes/sharding/Convert.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;

namespace msc::passes {

/// The work of each operator that belongs to the update of a parameter of so many elements.
static std::vector<net::OperatorCost> costsOfUpdate(MLIRContext *context, const net::TrainConfig &train, int64_t elements) {
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
  std::vector<net::OperatorCost> costs;
  auto shapes = [](ValueRange values) {
    std::vector<Shape> list;
    for (Value value : values)
      list.push_back(shapeOf(value));
    return list;
  };
  for (Operation &op : block)
    if (auto cost = dyn_cast<net::CostInterface>(op); cost && net::getInstanceName(&op) != "update") // that of the network
      costs.push_back(cost.cost(shapes(op.getOperands()), shapes(op.getResults())));
  return costs;
}

std::vector<UpdateWork> updateWork(MLIRContext *context, const net::TrainConfig &train) {
  constexpr int64_t few = 1024, many = 2048;
  std::vector<net::OperatorCost> ofFew = costsOfUpdate(context, train, few), ofMany = costsOfUpdate(context, train, many);
  std::vector<UpdateWork> work;
  for (auto [a, b] : llvm::zip(ofFew, ofMany)) {
    auto perElement = [](double ofFewer, double ofMore) { return (ofMore - ofFewer) / static_cast<double>(many - few); };
    UpdateWork &of = work.emplace_back();
    of.flops = perElement(a.flops, b.flops);
    of.bytesRead = perElement(a.bytesRead, b.bytesRead);
    of.bytesWritten = perElement(a.bytesWritten, b.bytesWritten);
    of.fixed = {a.flops - of.flops * few, a.bytesRead - of.bytesRead * few, a.bytesWritten - of.bytesWritten * few};
  }
  return work;
}

} // namespace msc::passes
