#include "test/reference/Interpreter.h"

using namespace msc::net;

namespace msc::reference {

/// What every squared difference is divided by: the global number of elements for a mean.
template <typename Op> static double divisor(Op op) {
  auto type = llvm::cast<mlir::RankedTensorType>(op.getLogits().getType());
  return op.getReduction() == "mean" ? static_cast<double>(type.getNumElements()) : 1;
}

void addLosses(Table &table) {
  table["MSELoss"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto loss = llvm::cast<MSELossOp>(op);
    Tensor squares = x[0];
    double sum = 0;
    for (size_t i = 0; i < squares.values.size(); ++i) {
      squares.values[i] = (x[0].values[i] - x[1].values[i]) * (x[0].values[i] - x[1].values[i]);
      sum += squares.values[i];
    }
    if (loss.getReduction() == "none")
      return {squares};
    return {Tensor(std::vector<int64_t>{}, sum / divisor(loss))};
  };
  table["MSELossGrad"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto gradient = llvm::cast<MSELossGradOp>(op);
    Tensor result = x[0];
    for (size_t i = 0; i < result.values.size(); ++i) {
      double dloss = x[2].values[x[2].rank() == 0 ? 0 : i];
      result.values[i] = dloss * 2 * (x[0].values[i] - x[1].values[i]) / divisor(gradient);
    }
    return {result};
  };
}

} // namespace msc::reference
