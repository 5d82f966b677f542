#include "test/reference/Interpreter.h"

using namespace msc::net;

namespace msc::reference {

static std::vector<int64_t> resultShape(mlir::Operation *op) {
  llvm::ArrayRef<int64_t> shape = llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType()).getShape();
  return {shape.begin(), shape.end()};
}

void addMovement(Table &table) {
  for (const char *view : {"Reshape", "ExpandDims", "Squeeze", "Flatten", "Print"})
    table[view] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
      return {Tensor(resultShape(op), x[0].values)};
    };
  table["OneHot"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto hot = llvm::cast<OneHotOp>(op);
    Tensor result(resultShape(op), hot.getOffValue().convertToDouble());
    forEachIndex(result.shape, [&](const auto &index) {
      std::vector<int64_t> from = index;
      from.erase(from.begin() + hot.dimension());
      if (x[0].at(from) == static_cast<double>(index[hot.dimension()]))
        result.at(index) = hot.getOnValue().convertToDouble();
    });
    return {result};
  };
  table["BroadcastTo"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    Tensor result(resultShape(op));
    forEachIndex(result.shape, [&](const auto &index) { result.at(index) = broadcastAt(x[0], index); });
    return {result};
  };
  table["Transpose"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    llvm::ArrayRef<int64_t> perm = llvm::cast<TransposeOp>(op).getPerm();
    auto dimOf = [&](size_t i) { return perm[i] < 0 ? perm[i] + x[0].rank() : perm[i]; };
    std::vector<int64_t> shape;
    for (size_t i = 0; i < perm.size(); ++i)
      shape.push_back(x[0].shape[dimOf(i)]);
    Tensor result(shape);
    forEachIndex(shape, [&](const auto &index) {
      std::vector<int64_t> from(index.size());
      for (size_t i = 0; i < index.size(); ++i)
        from[dimOf(i)] = index[i];
      result.at(index) = x[0].at(from);
    });
    return {result};
  };
}

} // namespace msc::reference
