// Training where every rank has tensors of its own: all of them take the same step.
#include "dialects/net/NetOps.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "passes/autodiff/Passes.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

Value msc::autodiff::meanOverRanks(OpBuilder &builder, Value value, int64_t ranks, StringRef name) {
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  if (ranks == 1 || !isa<FloatType>(element))
    return value;
  Location loc = value.getLoc();
  auto sum = builder.create<AllReduceOp>(loc, value, "sum", "nccl_world_group", DenseI64ArrayAttr(), ranks);
  auto share = builder.create<ConstantOp>(loc, RankedTensorType::get({}, element), llvm::APFloat(1.0 / static_cast<double>(ranks)));
  auto mean = builder.create<MulOp>(loc, sum, share);
  setPhase(sum, Phase::Backward);
  for (Operation *op : {share.getOperation(), mean.getOperation()})
    setPhase(op, Phase::Update);
  for (Operation *op : {sum.getOperation(), mean.getOperation()})
    setInstanceName(op, name);
  return mean;
}

void msc::autodiff::meanOverRanks(NetworkOp network, StringRef loss, ParameterGradients &gradients, int64_t ranks) {
  if (ranks == 1)
    return;
  ReturnOp results = getReturn(network);
  OpBuilder builder(results);
  for (auto &[parameter, gradient] : gradients) {
    Value sum = gradient;
    gradient = meanOverRanks(builder, sum, ranks, ("mean." + parameter.getDefiningOp<ParamOp>().getName()).str());
  }
  for (auto [index, name] : llvm::enumerate(results.getNames().getAsValueRange<StringAttr>()))
    if (name == loss)
      results->setOperand(index, meanOverRanks(builder, results->getOperand(index), ranks, "mean." + loss.str()));
}
