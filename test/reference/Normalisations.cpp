// Softmax, normalisations and cross entropy, row by row.
#include "test/reference/Interpreter.h"

#include <algorithm>
#include <cmath>

using namespace msc::net;

namespace msc::reference {

/// The index with 0 in the dimensions from `first` to `last`, which are folded into one element.
static std::vector<int64_t> folded(std::vector<int64_t> index, int64_t first, int64_t last) {
  std::fill(index.begin() + first, index.begin() + last + 1, 0);
  return index;
}

/// The shape with size 1 in the dimensions from `first` to `last`.
static std::vector<int64_t> keptShape(std::vector<int64_t> shape, int64_t first, int64_t last) {
  std::fill(shape.begin() + first, shape.begin() + last + 1, 1);
  return shape;
}

/// sum over the dimensions from `first` to `last` of f(x), kept with size 1.
static Tensor sumOf(const Tensor &x, int64_t first, int64_t last, const std::function<double(double)> &f) {
  Tensor sum(keptShape(x.shape, first, last));
  forEachIndex(x.shape, [&](const auto &index) { sum.at(folded(index, first, last)) += f(x.at(index)); });
  return sum;
}

/// log of the sum of exponentials along a dimension, kept with size 1.
static Tensor logSumExp(const Tensor &x, int64_t dim) {
  Tensor largest(keptShape(x.shape, dim, dim), -std::numeric_limits<double>::infinity());
  forEachIndex(x.shape, [&](const auto &index) {
    double &sofar = largest.at(folded(index, dim, dim));
    sofar = std::max(sofar, x.at(index));
  });
  Tensor sum(largest.shape);
  forEachIndex(x.shape, [&](const auto &index) {
    std::vector<int64_t> row = folded(index, dim, dim);
    sum.at(row) += std::exp(x.at(index) - largest.at(row));
  });
  for (size_t i = 0; i < sum.values.size(); ++i)
    sum.values[i] = largest.values[i] + std::log(sum.values[i]);
  return sum;
}

static Tensor logSoftmax(Tensor x, int64_t dim) {
  Tensor total = logSumExp(x, dim);
  Tensor result = x;
  forEachIndex(x.shape, [&](const auto &index) { result.at(index) = x.at(index) - total.at(folded(index, dim, dim)); });
  return result;
}

static std::vector<Tensor> layerNorm(LayerNormOp op, const std::vector<Tensor> &x) {
  auto axis = static_cast<int64_t>(op.getBeginNormAxis());
  int64_t rank = x[0].rank(), first = axis < 0 ? axis + rank : axis;
  auto count = static_cast<double>(x[0].values.size());
  Tensor mean = sumOf(x[0], first, rank - 1, [](double v) { return v; });
  count /= static_cast<double>(mean.values.size());
  for (double &value : mean.values)
    value /= count;
  Tensor variance(mean.shape), y(x[0].shape);
  forEachIndex(x[0].shape, [&](const auto &index) {
    std::vector<int64_t> row = folded(index, first, rank - 1);
    variance.at(row) += std::pow(x[0].at(index) - mean.at(row), 2) / count;
  });
  forEachIndex(x[0].shape, [&](const auto &index) {
    std::vector<int64_t> row = folded(index, first, rank - 1);
    double normalised = (x[0].at(index) - mean.at(row)) / std::sqrt(variance.at(row) + op.getEpsilon().convertToDouble());
    y.at(index) = normalised * broadcastAt(x[1], index) + broadcastAt(x[2], index);
  });
  return {y, mean, variance};
}

static std::vector<Tensor> rmsNorm(RmsNormOp op, const std::vector<Tensor> &x) {
  int64_t rank = x[0].rank(), first = rank - x[1].rank();
  Tensor rstd = sumOf(x[0], first, rank - 1, [](double v) { return v * v; }), y(x[0].shape);
  auto count = static_cast<double>(x[1].values.size());
  for (double &value : rstd.values)
    value = 1 / std::sqrt(value / count + op.getEpsilon().convertToDouble());
  forEachIndex(x[0].shape, [&](const auto &index) {
    y.at(index) = x[0].at(index) * rstd.at(folded(index, first, rank - 1)) * broadcastAt(x[1], index);
  });
  return {y, rstd};
}

static std::vector<Tensor> batchNorm(BatchNormOp op, const std::vector<Tensor> &x) {
  auto channel = [](const std::vector<int64_t> &index) { return std::vector<int64_t>{index[1]}; };
  double channels = static_cast<double>(x[1].values.size()), count = static_cast<double>(x[0].values.size()) / channels;
  Tensor mean = x[3], variance = x[4], y(x[0].shape), newMean = x[3], newVariance = x[4];
  if (op.getIsTraining().value_or(false)) {
    mean = variance = Tensor(x[3].shape);
    forEachIndex(x[0].shape, [&](const auto &index) { mean.at(channel(index)) += x[0].at(index) / count; });
    forEachIndex(x[0].shape, [&](const auto &index) {
      variance.at(channel(index)) += std::pow(x[0].at(index) - mean.at(channel(index)), 2) / count;
    });
    double momentum = op.getMomentum().convertToDouble(), sample = count > 1 ? count / (count - 1) : 1;
    for (size_t c = 0; c < mean.values.size(); ++c) {
      newMean.values[c] += momentum * (mean.values[c] - newMean.values[c]);
      newVariance.values[c] += momentum * (variance.values[c] * sample - newVariance.values[c]);
    }
  }
  forEachIndex(x[0].shape, [&](const auto &index) {
    auto c = channel(index);
    double normalised = (x[0].at(index) - mean.at(c)) / std::sqrt(variance.at(c) + op.getEpsilon().convertToDouble());
    y.at(index) = normalised * x[1].at(c) + x[2].at(c);
  });
  return {y, newMean, newVariance};
}

static std::vector<Tensor> groupNorm(GroupNormOp op, const std::vector<Tensor> &x) {
  auto groups = static_cast<int64_t>(op.getNumGroups());
  int64_t each = x[0].shape[1] / groups;
  auto group = [&](const std::vector<int64_t> &index) { return std::vector<int64_t>{index[0], index[1] / each}; };
  Tensor mean(std::vector<int64_t>{x[0].shape[0], groups}), rstd(mean.shape), y(x[0].shape);
  double count = static_cast<double>(x[0].values.size()) / static_cast<double>(mean.values.size());
  forEachIndex(x[0].shape, [&](const auto &index) { mean.at(group(index)) += x[0].at(index) / count; });
  forEachIndex(x[0].shape, [&](const auto &index) {
    rstd.at(group(index)) += std::pow(x[0].at(index) - mean.at(group(index)), 2) / count;
  });
  for (double &value : rstd.values)
    value = 1 / std::sqrt(value + op.getEps().convertToDouble());
  forEachIndex(x[0].shape, [&](const auto &index) {
    double normalised = (x[0].at(index) - mean.at(group(index))) * rstd.at(group(index));
    y.at(index) = normalised * x[1].at({index[1]}) + x[2].at({index[1]});
  });
  return {y, mean, rstd};
}

static Tensor crossEntropy(bool sparse, llvm::StringRef reduction, const std::vector<Tensor> &x) {
  int64_t classes = x[0].rank() - 1;
  Tensor logs = logSoftmax(x[0], classes);
  Tensor rows(std::vector<int64_t>(x[0].shape.begin(), x[0].shape.end() - 1));
  forEachIndex(logs.shape, [&](const auto &index) {
    std::vector<int64_t> row(index.begin(), index.end() - 1);
    double label = sparse ? (x[1].at(row) == static_cast<double>(index.back()) ? 1 : 0) : x[1].at(index);
    rows.at(row) -= label * logs.at(index);
  });
  if (reduction == "none")
    return rows;
  double sum = 0;
  for (double value : rows.values)
    sum += value;
  return Tensor(std::vector<int64_t>{}, reduction == "mean" ? sum / static_cast<double>(rows.values.size()) : sum);
}

void addNormalisations(Table &table) {
  table["Softmax"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    Tensor result = logSoftmax(x[0], llvm::cast<SoftmaxOp>(op).dimension());
    for (double &value : result.values)
      value = std::exp(value);
    return {result};
  };
  table["LogSoftmax"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {logSoftmax(x[0], llvm::cast<LogSoftmaxOp>(op).dimension())};
  };
  table["LayerNorm"] = [](mlir::Operation *op, const std::vector<Tensor> &x) { return layerNorm(llvm::cast<LayerNormOp>(op), x); };
  table["RmsNorm"] = [](mlir::Operation *op, const std::vector<Tensor> &x) { return rmsNorm(llvm::cast<RmsNormOp>(op), x); };
  table["BatchNorm"] = [](mlir::Operation *op, const std::vector<Tensor> &x) { return batchNorm(llvm::cast<BatchNormOp>(op), x); };
  table["GroupNorm"] = [](mlir::Operation *op, const std::vector<Tensor> &x) { return groupNorm(llvm::cast<GroupNormOp>(op), x); };
  table["SoftmaxCrossEntropyWithLogits"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    auto loss = llvm::cast<SoftmaxCrossEntropyWithLogitsOp>(op);
    return {crossEntropy(loss.getSparse(), loss.getReduction(), x)};
  };
  table["SparseSoftmaxCrossEntropyWithLogits"] = [](mlir::Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {crossEntropy(true, "mean", x)};
  };
  table["LinSpace"] = [](mlir::Operation *op, const std::vector<Tensor> &) -> std::vector<Tensor> {
    auto space = llvm::cast<LinSpaceOp>(op);
    int64_t count = space.getNum();
    double start = space.getStart().convertToDouble(), stop = space.getStop().convertToDouble();
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(count == 1 ? start : start + static_cast<double>(i) * (stop - start) / static_cast<double>(count - 1));
    return {Tensor({count}, std::move(values))};
  };
  table["Fill"] = [](mlir::Operation *op, const std::vector<Tensor> &) -> std::vector<Tensor> {
    auto fill = llvm::cast<FillOp>(op);
    return {Tensor(fill.getShape().vec(), fill.getValue().convertToDouble())};
  };
  table["Range"] = [](mlir::Operation *op, const std::vector<Tensor> &) -> std::vector<Tensor> {
    auto range = llvm::cast<RangeOp>(op);
    std::vector<double> values;
    for (int64_t at = range.getStart(), limit = range.getLimit(), delta = range.getDelta(); delta > 0 ? at < limit : at > limit; at += delta)
      values.push_back(static_cast<double>(at));
    auto count = static_cast<int64_t>(values.size());
    return {Tensor({count}, std::move(values))};
  };
}

} // namespace msc::reference
