#include "test/reference/Interpreter.h"

#include <cmath>
#include <functional>

using namespace msc::net;

namespace msc::reference {

/// What every squared difference is divided by: the global number of elements for a mean.
template <typename Op> static double divisor(Op op) {
  auto type = llvm::cast<mlir::RankedTensorType>(op.getLogits().getType());
  return op.getReduction() == "mean" ? static_cast<double>(type.getNumElements()) : 1;
}

/// A scalar out of the terms of a loss, or the terms themselves.
static Tensor reduced(Tensor terms, llvm::StringRef reduction) {
  if (reduction == "none")
    return terms;
  double sum = 0;
  for (double term : terms.values)
    sum += term;
  if (reduction == "mean")
    sum /= static_cast<double>(terms.values.size());
  if (reduction == "batchmean")
    sum /= static_cast<double>(terms.shape[0]);
  return Tensor(std::vector<int64_t>{}, sum);
}

/// A loss with one term per element, from the elements of all operands.
template <typename Op> static void addTerms(Table &table, std::function<double(Op, const std::vector<double> &)> term) {
  table[Op::getOperationName().drop_front(4)] = [=](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto loss = llvm::cast<Op>(op);
    Tensor terms(x[0].shape);
    std::vector<double> elements(x.size());
    forEachIndex(terms.shape, [&](const auto &index) {
      for (size_t i = 0; i < x.size(); ++i)
        elements[i] = broadcastAt(x[i], index);
      terms.at(index) = term(loss, elements);
    });
    return {reduced(terms, loss.getReduction())};
  };
}

static double softplus(double x) {
  return x > 30 ? x + std::exp(-x) : std::log1p(std::exp(x));
}

static void addElementLosses(Table &table) {
  using Elements = std::vector<double>;
  addTerms<L1LossOp>(table, [](L1LossOp, const Elements &x) { return std::fabs(x[0] - x[1]); });
  addTerms<SmoothL1LossOp>(table, [](SmoothL1LossOp op, const Elements &x) {
    double beta = op.getBeta().convertToDouble(), d = std::fabs(x[0] - x[1]);
    return d < beta ? 0.5 * d * d / beta : d - 0.5 * beta;
  });
  addTerms<BinaryCrossEntropyOp>(table, [](BinaryCrossEntropyOp, const Elements &x) {
    auto log = [](double p) { return std::log(std::max(p, 1e-12)); };
    return -x[2] * (x[1] * log(x[0]) + (1 - x[1]) * log(1 - x[0]));
  });
  addTerms<BCEWithLogitsLossOp>(table, [](BCEWithLogitsLossOp, const Elements &x) {
    return x[2] * (x[3] * x[1] * softplus(-x[0]) + (1 - x[1]) * softplus(x[0]));
  });
  addTerms<KLDivLossOp>(table, [](KLDivLossOp, const Elements &x) {
    return (x[1] == 0 ? 0 : x[1] * std::log(x[1])) - x[1] * x[0];
  });
}

static std::vector<Tensor> nllLoss(NLLLossOp op, const std::vector<Tensor> &x) {
  auto ignored = static_cast<int64_t>(op.getIgnoreIndex());
  Tensor losses(x[1].shape);
  double total = 0;
  forEachIndex(losses.shape, [&](const auto &index) {
    auto label = static_cast<int64_t>(x[1].at(index));
    if (label == ignored || label < 0 || label >= x[0].shape.back())
      return;
    std::vector<int64_t> at = index;
    at.push_back(label);
    losses.at(index) = -x[2].values[label] * x[0].at(at);
    total += x[2].values[label];
  });
  Tensor loss = reduced(losses, op.getReduction() == "mean" ? "sum" : op.getReduction());
  if (op.getReduction() == "mean")
    loss.values[0] /= total;
  return {loss, Tensor(std::vector<int64_t>{}, total)};
}

void addLosses(Table &table) {
  addElementLosses(table);
  table["NLLLoss"] = [](mlir::Operation *op, const std::vector<Tensor> &x) { return nllLoss(llvm::cast<NLLLossOp>(op), x); };
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
