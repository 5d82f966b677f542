// Attention, one query at a time, with all its weights in memory.
#include "test/reference/Interpreter.h"

#include <cmath>

using namespace msc::net;

namespace msc::reference {
namespace {

template <typename Op> class Attention {
public:
  Attention(Op op, const std::vector<Tensor> &x)
      : query(x[0]), key(x[1]), value(x[2]), heads(static_cast<int64_t>(op.getHeads())), causal(op.getCausal()) {
    size = query.shape[2] / heads;
    shared = key.shape[2] / size;
    scale = op.getScale() ? op.getScale()->convertToDouble() : 1 / std::sqrt(static_cast<double>(size));
  }

  /// Calls visit(batch, head, head of the keys, query, weights of all keys, logarithm of their sum).
  template <typename Visit> void forQueries(Visit visit) const {
    for (int64_t b = 0; b < query.shape[0]; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < query.shape[1]; ++i) {
          int64_t g = h * shared / heads;
          std::vector<double> weights(key.shape[1]);
          double most = -INFINITY, sum = 0;
          for (int64_t j = 0; j < key.shape[1]; ++j) {
            weights[j] = causal && j > i ? -INFINITY : scale * dot(query, key, b, i, j, h, g);
            most = std::max(most, weights[j]);
          }
          for (double weight : weights)
            sum += std::exp(weight - most);
          for (double &weight : weights)
            weight = std::exp(weight - most) / sum;
          visit(b, h, g, i, weights, most + std::log(sum));
        }
  }

  double dot(const Tensor &left, const Tensor &right, int64_t b, int64_t i, int64_t j, int64_t h, int64_t g) const {
    double sum = 0;
    for (int64_t d = 0; d < size; ++d)
      sum += left.at({b, i, h * size + d}) * right.at({b, j, g * size + d});
    return sum;
  }

  const Tensor &query, &key, &value;
  int64_t heads, shared, size;
  bool causal;
  double scale;
};

std::vector<Tensor> forward(ScaledDotProductAttentionOp op, const std::vector<Tensor> &x) {
  Attention attention(op, x);
  Tensor output(x[0].shape), logsumexp(std::vector<int64_t>{x[0].shape[0], attention.heads, x[0].shape[1]});
  attention.forQueries([&](int64_t b, int64_t h, int64_t g, int64_t i, const auto &weights, double log) {
    logsumexp.at({b, h, i}) = log;
    for (int64_t d = 0; d < attention.size; ++d)
      for (int64_t j = 0; j < x[1].shape[1]; ++j)
        output.at({b, i, h * attention.size + d}) += weights[j] * x[2].at({b, j, g * attention.size + d});
  });
  return {output, logsumexp};
}

/// The kept output and logarithms say what the weights are, as in the kernel: a test may give any.
std::vector<Tensor> backward(ScaledDotProductAttentionGradOp op, const std::vector<Tensor> &x) {
  Attention attention(op, x);
  int64_t size = attention.size;
  const Tensor &output = x[3], &logsumexp = x[4], &dout = x[5];
  Tensor dquery(x[0].shape), dkey(x[1].shape), dvalue(x[2].shape);
  attention.forQueries([&](int64_t b, int64_t h, int64_t g, int64_t i, const auto &, double) {
    double own = attention.dot(dout, output, b, i, i, h, h);
    for (int64_t j = 0; j < x[1].shape[1]; ++j) {
      if (attention.causal && j > i)
        continue;
      double weight = std::exp(attention.scale * attention.dot(x[0], x[1], b, i, j, h, g) - logsumexp.at({b, h, i}));
      double slope = weight * (attention.dot(dout, x[2], b, i, j, h, g) - own) * attention.scale;
      for (int64_t d = 0; d < size; ++d) {
        dquery.at({b, i, h * size + d}) += slope * x[1].at({b, j, g * size + d});
        dkey.at({b, j, g * size + d}) += slope * x[0].at({b, i, h * size + d});
        dvalue.at({b, j, g * size + d}) += weight * dout.at({b, i, h * size + d});
      }
    }
  });
  return {dquery, dkey, dvalue};
}

} // namespace

void addAttention(Table &table) {
  table["ScaledDotProductAttention"] = [](mlir::Operation *op, const std::vector<Tensor> &x) {
    return forward(llvm::cast<ScaledDotProductAttentionOp>(op), x);
  };
  table["ScaledDotProductAttentionGrad"] = [](mlir::Operation *op, const std::vector<Tensor> &x) {
    return backward(llvm::cast<ScaledDotProductAttentionGradOp>(op), x);
  };
}

} // namespace msc::reference
