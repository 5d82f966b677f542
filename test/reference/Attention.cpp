// Attention, one query at a time, with all its weights in memory; what transformers put around it.
#include "test/reference/Interpreter.h"

#include <cmath>

using namespace msc::net;

namespace msc::reference {
namespace {

template <typename Op> class Attention {
public:
  Attention(Op op, const std::vector<Tensor> &x)
      : query(x[0]), key(x[1]), value(x[2]), mask(op.getAttnMask() ? &x.back() : nullptr), heads(static_cast<int64_t>(op.getHeads())), causal(op.getCausal()) {
    size = query.shape[2] / heads;
    shared = key.shape[2] / size;
    isBool = mask && llvm::cast<mlir::RankedTensorType>(op.getAttnMask().getType()).getElementType().isInteger(1);
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
            weights[j] = score(b, h, g, i, j);
            most = std::max(most, weights[j]);
          }
          if (most == -INFINITY) { // attends to no key
            visit(b, h, g, i, std::vector<double>(weights.size()), most);
            continue;
          }
          for (double weight : weights)
            sum += std::exp(weight - most);
          for (double &weight : weights)
            weight = std::exp(weight - most) / sum;
          visit(b, h, g, i, weights, most + std::log(sum));
        }
  }

  double score(int64_t b, int64_t h, int64_t g, int64_t i, int64_t j) const {
    double own = scale * dot(query, key, b, i, j, h, g);
    if (causal && j > i)
      return -INFINITY;
    if (!mask)
      return own;
    double given = broadcastAt(*mask, {b, h, i, j});
    return !isBool ? own + given : given != 0 ? own : -INFINITY;
  }

  double dot(const Tensor &left, const Tensor &right, int64_t b, int64_t i, int64_t j, int64_t h, int64_t g) const {
    double sum = 0;
    for (int64_t d = 0; d < size; ++d)
      sum += left.at({b, i, h * size + d}) * right.at({b, j, g * size + d});
    return sum;
  }

  const Tensor &query, &key, &value, *mask; // null: there is none
  int64_t heads, shared, size;
  bool causal, isBool;
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

/// Calls visit(batch, head, head of the keys, query, key, weight, gradient of the score). The kept output and logarithms say
/// what the weights are, as in the kernel: a test may give any.
template <typename Op, typename Visit> void forSlopes(const Attention<Op> &attention, const std::vector<Tensor> &x, Visit visit) {
  const Tensor &output = x[3], &logsumexp = x[4], &dout = x[5];
  attention.forQueries([&](int64_t b, int64_t h, int64_t g, int64_t i, const auto &, double) {
    double own = attention.dot(dout, output, b, i, i, h, h), normal = logsumexp.at({b, h, i});
    for (int64_t j = 0; j < x[1].shape[1]; ++j) {
      double score = attention.score(b, h, g, i, j), weight = std::isinf(score) || std::isinf(normal) ? 0 : std::exp(score - normal);
      visit(b, h, g, i, j, weight, weight * (attention.dot(dout, x[2], b, i, j, h, g) - own));
    }
  });
}

std::vector<Tensor> backward(ScaledDotProductAttentionGradOp op, const std::vector<Tensor> &x) {
  Attention attention(op, x);
  int64_t size = attention.size;
  Tensor dquery(x[0].shape), dkey(x[1].shape), dvalue(x[2].shape);
  forSlopes(attention, x, [&](int64_t b, int64_t h, int64_t g, int64_t i, int64_t j, double weight, double slope) {
    for (int64_t d = 0; d < size; ++d) {
      dquery.at({b, i, h * size + d}) += attention.scale * slope * x[1].at({b, j, g * size + d});
      dkey.at({b, j, g * size + d}) += attention.scale * slope * x[0].at({b, i, h * size + d});
      dvalue.at({b, j, g * size + d}) += weight * x[5].at({b, i, h * size + d});
    }
  });
  return {dquery, dkey, dvalue};
}

std::vector<Tensor> maskBackward(ScaledDotProductAttentionMaskGradOp op, const std::vector<Tensor> &x) {
  Attention attention(op, x);
  auto size = [&](int64_t dim) { return x[6].rank() < 4 - dim ? 1 : x[6].shape[dim - 4 + x[6].rank()]; };
  Tensor dmask(std::vector<int64_t>{size(0), attention.heads, size(2), x[1].shape[1]});
  forSlopes(attention, x, [&](int64_t b, int64_t h, int64_t, int64_t i, int64_t j, double, double slope) {
    dmask.at({dmask.shape[0] == 1 ? 0 : b, h, dmask.shape[2] == 1 ? 0 : i, j}) += slope;
  });
  return {dmask};
}

/// The first half of a dimension gates the second.
Tensor swiglu(int64_t dim, const Tensor &x) {
  std::vector<int64_t> shape = x.shape;
  int64_t half = shape[dim] /= 2;
  Tensor result(shape);
  forEachIndex(shape, [&](std::vector<int64_t> at) {
    double &element = result.at(at), gate = x.at(at);
    at[dim] += half;
    element = gate / (1 + std::exp(-gate)) * x.at(at);
  });
  return result;
}

/// A pair (a, b) becomes (a cos - b sin, b cos + a sin).
Tensor rotary(bool neighbours, const Tensor &x, const Tensor &cos, const Tensor &sin) {
  Tensor result(x.shape);
  int64_t half = x.shape.back() / 2;
  forEachIndex(x.shape, [&](const std::vector<int64_t> &at) {
    std::vector<int64_t> partner = at;
    bool isFirst = neighbours ? at.back() % 2 == 0 : at.back() < half;
    partner.back() += (isFirst ? 1 : -1) * (neighbours ? 1 : half);
    result.at(at) = x.at(at) * broadcastAt(cos, at) + (isFirst ? -1 : 1) * x.at(partner) * broadcastAt(sin, at);
  });
  return result;
}

} // namespace

void addAttention(Table &table) {
  table["Swiglu"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {swiglu(llvm::cast<SwigluOp>(op).dimension(), x[0])};
  };
  table["RotaryPositionEmbedding"] = [](mlir::Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {rotary(llvm::cast<RotaryPositionEmbeddingOp>(op).getMode() == 1, x[0], x[1], x[2])};
  };
  table["ScaledDotProductAttention"] = [](mlir::Operation *op, const std::vector<Tensor> &x) {
    return forward(llvm::cast<ScaledDotProductAttentionOp>(op), x);
  };
  table["ScaledDotProductAttentionGrad"] = [](mlir::Operation *op, const std::vector<Tensor> &x) {
    return backward(llvm::cast<ScaledDotProductAttentionGradOp>(op), x);
  };
  table["ScaledDotProductAttentionMaskGrad"] = [](mlir::Operation *op, const std::vector<Tensor> &x) {
    return maskBackward(llvm::cast<ScaledDotProductAttentionMaskGradOp>(op), x);
  };
}

} // namespace msc::reference
