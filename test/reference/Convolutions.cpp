// Convolutions by the definition: one product per output, input channel and position of the kernel.
#include "test/reference/Images.h"
#include "test/reference/Interpreter.h"

using namespace msc::net;

namespace msc::reference {

using Index = std::vector<int64_t>;

/// Calls visit(element of x, element of w, element of y) for every product of a convolution.
template <typename Conv>
static void forProducts(Conv op, const Index &x, const Index &w, const std::function<void(const Index &, const Index &, const Index &)> &visit) {
  auto slide = [&](int d) {
    return slideOf(d, x[2 + d], {w[2 + d]}, op.getStride(), op.getDilation(), op.getPadMode(), op.getPad());
  };
  Slide rows = slide(0), columns = slide(1);
  int64_t perGroup = w[1] == 0 ? 1 : w[0] / std::max<int64_t>(1, x[1] / w[1]); // output channels of a group, on this rank
  forEachIndex({x[0], w[0], rows.count, columns.count}, [&](const Index &y) {
    for (int64_t c = 0; c < w[1]; ++c)
      for (int64_t s = 0; s < w[2]; ++s)
        for (int64_t t = 0; t < w[3]; ++t)
          if (rows.covers(y[2], s) && columns.covers(y[3], t))
            visit({y[0], y[1] / perGroup * w[1] + c, rows.under(y[2], s), columns.under(y[3], t)}, {y[1], c, s, t}, y);
  });
}

/// Rows or columns of the result: where a kernel of one element goes over a part of them, so many as that part has.
static int64_t resultSize(mlir::Operation *op, const Tensor &operand, size_t dim) {
  auto sizeOf = [&](mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()).getDimSize(dim); };
  return operand.shape[dim] == sizeOf(op->getOperand(0)) ? sizeOf(op->getResult(0)) : operand.shape[dim];
}

static std::vector<Tensor> conv(Conv2DOp op, const Tensor &x, const Tensor &w) {
  Tensor y({x.shape[0], w.shape[0], resultSize(op, x, 2), resultSize(op, x, 3)});
  forProducts(op, x.shape, w.shape, [&](const Index &a, const Index &b, const Index &c) { y.at(c) += x.at(a) * w.at(b); });
  return {y};
}

/// How many channels of the input there are for the output channels of `y`, which may be a rank's.
template <typename Conv> static int64_t inputChannels(Conv op, const Tensor &w) {
  int64_t group = op.getGroup(), outputs = llvm::cast<mlir::RankedTensorType>(op.getW().getType()).getDimSize(0);
  return group == 1 ? w.shape[1] : w.shape[1] * group * w.shape[0] / outputs;
}

template <typename Conv> static std::vector<Tensor> convToInput(Conv op, const Tensor &y, const Tensor &w) {
  Tensor x({y.shape[0], inputChannels(op, w), resultSize(op, y, 2), resultSize(op, y, 3)});
  forProducts(op, x.shape, w.shape, [&](const Index &a, const Index &b, const Index &c) { x.at(a) += y.at(c) * w.at(b); });
  return {x};
}

static std::vector<Tensor> convToFilter(Conv2DBackpropFilterOp op, const Tensor &y, const Tensor &x) {
  llvm::ArrayRef<int64_t> filter = op.getFilterSize();
  int64_t inputs = static_cast<int64_t>(op.getGroup()) == 1 ? x.shape[1] : filter[1];
  Tensor w({y.shape[1], inputs, filter[2], filter[3]});
  forProducts(op, x.shape, w.shape, [&](const Index &a, const Index &b, const Index &c) { w.at(b) += y.at(c) * x.at(a); });
  return {w};
}

void addConvolutions(Table &table) {
  using Operands = const std::vector<Tensor> &;
  table["Conv2D"] = [](mlir::Operation *op, Operands x) { return conv(llvm::cast<Conv2DOp>(op), x[0], x[1]); };
  table["Conv2DTranspose"] = [](mlir::Operation *op, Operands x) { return convToInput(llvm::cast<Conv2DTransposeOp>(op), x[0], x[1]); };
  table["Conv2DBackpropInput"] = [](mlir::Operation *op, Operands x) {
    return convToInput(llvm::cast<Conv2DBackpropInputOp>(op), x[0], x[1]);
  };
  table["Conv2DBackpropFilter"] = [](mlir::Operation *op, Operands x) {
    return convToFilter(llvm::cast<Conv2DBackpropFilterOp>(op), x[0], x[1]);
  };
}

} // namespace msc::reference
