// nn.mir: parameters as PyTorch names and draws them, and numbers against plain formulas.
#include "Reading.h"

#include "frontend/PrintValues.h"
#include "test/reference/Interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace msc;
using namespace mlir;
using reference::Tensor;
using reference::Tensors;
using test::Reading;

namespace {

frontend::ParseOptions withLibrary() {
  frontend::ParseOptions options;
  options.layerLibrary = FRONTEND_LIBRARY;
  return options;
}

/// One layer on inputs, as `%y`, or `%y, %z` with two results.
struct Layer {
  Layer(const std::string &inputs, const std::string &call, const std::string &results = "%y")
      : reading("import \"nn.mir\"\nnetwork n(" + inputs + ") {\n  " + results + " = " + call + " @ \"l\"\n  return y: %y" +
                    (results == "%y" ? "" : ", z: %z") + "\n}\n",
                withLibrary()) {
    EXPECT_TRUE(reading.module) << reading.said;
  }

  net::NetworkOp network() { return *reading.module->getOps<net::NetworkOp>().begin(); }

  /// "weight 5x4 Uniform(0.5)", one per line.
  std::string parameters() {
    std::string text;
    llvm::raw_string_ostream os(text);
    for (auto param : network().getBody().getOps<net::ParamOp>()) {
      os << param.getName() << ' ';
      llvm::interleave(cast<RankedTensorType>(param.getValue().getType()).getShape(), os, "x");
      os << ' ' << frontend::initializerText(param.getInitializer()) << '\n';
    }
    return text;
  }

  /// Runs on random inputs and parameters, which are kept in `given`.
  Tensor run(const std::string &result = "y") {
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    auto draw = [&](StringRef name, Value value) {
      ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
      Tensor tensor(std::vector<int64_t>(shape.begin(), shape.end()));
      for (double &element : tensor.values)
        element = normal(random);
      given[name.str()] = tensor;
    };
    for (BlockArgument input : network().getBody().getArguments())
      draw(net::getValueName(input), input);
    for (auto param : network().getBody().getOps<net::ParamOp>())
      draw(param.getName(), param.getValue());
    FailureOr<reference::Step> step = reference::Interpreter().run(network(), given);
    EXPECT_TRUE(succeeded(step)) << reading.said;
    return step->outputs.at(result);
  }

  Reading reading;
  Tensors given;
};

void expectNear(const Tensor &found, const Tensor &expected) {
  ASSERT_EQ(found.shape, expected.shape);
  for (size_t i = 0; i < found.values.size(); ++i)
    ASSERT_NEAR(found.values[i], expected.values[i], 1e-12) << "element " << i;
}

/// x W^T + b, rows of the last dimension.
Tensor linear(const Tensor &x, const Tensor &weight, const Tensor &bias) {
  std::vector<int64_t> shape = x.shape;
  int64_t out = weight.shape[0], in = weight.shape[1];
  shape.back() = out;
  Tensor y(shape);
  for (size_t row = 0; row < x.values.size() / in; ++row)
    for (int64_t o = 0; o < out; ++o) {
      double sum = bias.values.empty() ? 0 : bias.values[o];
      for (int64_t i = 0; i < in; ++i)
        sum += x.values[row * in + i] * weight.values[o * in + i];
      y.values[row * out + o] = sum;
    }
  return y;
}

TEST(Library, ParametersAreThoseOfPyTorch) {
  EXPECT_EQ(Layer("%x: f32[2, 4]", "Linear(%x, out: 5)").parameters(), "l.weight 5x4 Uniform(0.5)\nl.bias 5 Uniform(0.5)\n");
  EXPECT_EQ(Layer("%x: f32[2, 3, 4]", "Dense(%x, out: 5, bias: false)").parameters(), "l.weight 5x4 Uniform(0.5)\n");
  EXPECT_EQ(Layer("%x: f32[2, 3, 4]", "LayerNorm(%x)").parameters(), "l.weight 4 Ones()\nl.bias 4 Zeros()\n");
  EXPECT_EQ(Layer("%x: f32[2, 3, 4]", "RMSNorm(%x)").parameters(), "l.weight 4 Ones()\n");
  EXPECT_EQ(Layer("%x: f32[2, 4]", "MLP(%x, hidden: 16)").parameters(),
            "l.fc1.weight 16x4 Uniform(0.5)\nl.fc1.bias 16 Uniform(0.5)\n"
            "l.fc2.weight 4x16 Uniform(0.25)\nl.fc2.bias 4 Uniform(0.25)\n");
  EXPECT_EQ(Layer("%x: f32[2, 4]", "GatedMLP(%x, hidden: 16)").parameters(),
            "l.gate_proj.weight 16x4 Uniform(0.5)\nl.up_proj.weight 16x4 Uniform(0.5)\nl.down_proj.weight 4x16 Uniform(0.25)\n");
  EXPECT_EQ(Layer("%x: f32[2, 3, 4]", "TransformerBlock(%x, heads: 2, hidden: 16)").parameters(),
            "l.self_attn.q_proj.weight 4x4 XavierUniform()\nl.self_attn.q_proj.bias 4 Zeros()\n"
            "l.self_attn.k_proj.weight 4x4 XavierUniform()\nl.self_attn.k_proj.bias 4 Zeros()\n"
            "l.self_attn.v_proj.weight 4x4 XavierUniform()\nl.self_attn.v_proj.bias 4 Zeros()\n"
            "l.self_attn.out_proj.weight 4x4 Uniform(0.5)\nl.self_attn.out_proj.bias 4 Zeros()\n"
            "l.norm1.weight 4 Ones()\nl.norm1.bias 4 Zeros()\n"
            "l.linear1.weight 16x4 Uniform(0.5)\nl.linear1.bias 16 Uniform(0.5)\n"
            "l.linear2.weight 4x16 Uniform(0.25)\nl.linear2.bias 4 Uniform(0.25)\n"
            "l.norm2.weight 4 Ones()\nl.norm2.bias 4 Zeros()\n");
}

TEST(Library, LinearAndDenseAreProducts) {
  for (const char *call : {"Linear(%x, out: 5)", "Dense(%x, out: 5)"}) {
    Layer layer("%x: f32[2, 3, 4]", call);
    Tensor y = layer.run();
    expectNear(y, linear(layer.given["x"], layer.given["l.weight"], layer.given["l.bias"]));
  }
}

/// Calls change(row, i) for the rows of the last dimension.
template <typename Change> Tensor byRow(const Tensor &x, Change change) {
  Tensor y(x.shape);
  int64_t width = x.shape.back();
  for (size_t start = 0; start < x.values.size(); start += width) {
    std::vector<double> row(x.values.begin() + start, x.values.begin() + start + width);
    for (int64_t i = 0; i < width; ++i)
      y.values[start + i] = change(row, i);
  }
  return y;
}

double meanOf(const std::vector<double> &row) {
  double sum = 0;
  for (double value : row)
    sum += value;
  return sum / row.size();
}

double meanSquare(const std::vector<double> &row, double around) {
  double sum = 0;
  for (double value : row)
    sum += (value - around) * (value - around);
  return sum / row.size();
}

Tensor softmax(const Tensor &x) {
  return byRow(x, [](const std::vector<double> &row, int64_t i) {
    double sum = 0;
    for (double value : row)
      sum += std::exp(value);
    return std::exp(row[i]) / sum;
  });
}

TEST(Library, NormsAndSoftmax) {
  Layer norm("%x: f32[2, 3, 4]", "LayerNorm(%x, eps: 0.5)");
  Tensor y = norm.run();
  expectNear(y, byRow(norm.given["x"], [&](const std::vector<double> &row, int64_t i) {
               double mean = meanOf(row);
               return (row[i] - mean) / std::sqrt(meanSquare(row, mean) + 0.5) * norm.given["l.weight"].values[i] +
                      norm.given["l.bias"].values[i];
             }));
  Layer rms("%x: f32[2, 3, 4]", "RMSNorm(%x, eps: 0.5)");
  y = rms.run();
  expectNear(y, byRow(rms.given["x"], [&](const std::vector<double> &row, int64_t i) {
               return row[i] / std::sqrt(meanSquare(row, 0) + 0.5) * rms.given["l.weight"].values[i];
             }));
  Layer soft("%x: f32[2, 3, 4]", "Softmax(%x)");
  y = soft.run();
  expectNear(y, softmax(soft.given["x"]));
}

TEST(Library, GroupNormNormalisesGroupsOfChannels) {
  Layer layer("%x: f32[2, 4, 3]", "GroupNorm(%x, num_groups: 2, eps: 0.5)");
  EXPECT_EQ(layer.parameters(), "l.weight 4 Ones()\nl.bias 4 Zeros()\n");
  Tensor y = layer.run();
  const Tensor &x = layer.given["x"];
  for (int64_t batch = 0; batch < 2; ++batch)
    for (int64_t channel = 0; channel < 4; ++channel) {
      auto start = x.values.begin() + batch * 12 + channel / 2 * 6;
      std::vector<double> group(start, start + 6);
      double mean = meanOf(group), rstd = 1 / std::sqrt(meanSquare(group, mean) + 0.5);
      for (int64_t i = 0; i < 3; ++i)
        EXPECT_NEAR(y.at({batch, channel, i}),
                    (x.at({batch, channel, i}) - mean) * rstd * layer.given["l.weight"].values[channel] + layer.given["l.bias"].values[channel],
                    1e-12);
    }
}

TEST(Library, RotaryEmbeddingTurnsPairsByTheirPosition) {
  Layer layer("%x: f32[2, 3, 8]", "RotaryEmbedding(%x, heads: 2, base: 100.0)");
  Tensor y = layer.run();
  const Tensor &x = layer.given["x"];
  for (int64_t batch = 0; batch < 2; ++batch)
    for (int64_t position = 0; position < 3; ++position)
      for (int64_t i = 0; i < 8; ++i) {
        int64_t pair = i % 2, partner = i % 4 < 2 ? i + 2 : i - 2;
        double angle = static_cast<double>(position) * std::pow(100.0, -2.0 * static_cast<double>(pair) / 4);
        double turned = x.at({batch, position, i}) * std::cos(angle) + (i % 4 < 2 ? -1 : 1) * x.at({batch, position, partner}) * std::sin(angle);
        EXPECT_NEAR(y.at({batch, position, i}), turned, 1e-6);
      }
}

TEST(Library, AttentionMixesHeadByHead) {
  Layer layer("%x: f32[2, 3, 4]", "MultiHeadAttention(%x, heads: 2)");
  Tensor y = layer.run();
  const Tensor &x = layer.given["x"];
  auto projected = [&](const std::string &name) {
    return linear(x, layer.given["l." + name + ".weight"], layer.given["l." + name + ".bias"]);
  };
  Tensor q = projected("q_proj"), k = projected("k_proj"), v = projected("v_proj"), mixed(x.shape);
  for (int64_t batch = 0; batch < 2; ++batch)
    for (int64_t head = 0; head < 2; ++head) {
      Tensor scores({3, 3});
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 3; ++j)
          for (int64_t d = 0; d < 2; ++d)
            scores.at({i, j}) += q.at({batch, i, 2 * head + d}) * k.at({batch, j, 2 * head + d}) / std::sqrt(2.0);
      Tensor weights = softmax(scores);
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 3; ++j)
          for (int64_t d = 0; d < 2; ++d)
            mixed.at({batch, i, 2 * head + d}) += weights.at({i, j}) * v.at({batch, j, 2 * head + d});
    }
  expectNear(y, linear(mixed, layer.given["l.out_proj.weight"], layer.given["l.out_proj.bias"]));
}

TEST(Library, LSTMCellIsThatOfPyTorch) {
  const char *inputs = "%x: f32[2, 3], %h: f32[2, 4], %c: f32[2, 4]";
  Layer layer(inputs, "LSTMCell(%x, %h, %c)", "%y, %z");
  Tensor h = layer.run("y"), c = layer.run("z");
  auto gate = [&](const std::string &name) {
    std::string l = "l." + name + ".";
    Tensor sum = linear(layer.given["x"], layer.given[l + "weight_i"], layer.given[l + "bias_i"]);
    Tensor other = linear(layer.given["h"], layer.given[l + "weight_h"], layer.given[l + "bias_h"]);
    for (size_t i = 0; i < sum.values.size(); ++i)
      sum.values[i] += other.values[i];
    return sum;
  };
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  Tensor i = gate("i"), f = gate("f"), g = gate("g"), o = gate("o"), nextC({2, 4}), nextH({2, 4});
  for (size_t at = 0; at < nextC.values.size(); ++at) {
    nextC.values[at] = sigmoid(f.values[at]) * layer.given["c"].values[at] + sigmoid(i.values[at]) * std::tanh(g.values[at]);
    nextH.values[at] = sigmoid(o.values[at]) * std::tanh(nextC.values[at]);
  }
  expectNear(h, nextH);
  expectNear(c, nextC);
}

/// Token by token: those of a sequence queue up at each expert, the best choice of a token first.
TEST(Library, ExpertsTakeTokensInTurn) {
  const int64_t batch = 2, length = 5, width = 3, experts = 4, hidden = 6, chosen = 2;
  for (int64_t capacity : {1, 2, 10}) {
    Layer layer("%x: f32[2, 5, 3]", "MixtureOfExperts(%x, experts: 4, hidden: 6, capacity: " + std::to_string(capacity) + ")", "%y, %z");
    Tensor y = layer.run("y"), balance = layer.run("z");
    const Tensor &x = layer.given["x"], &w1 = layer.given["l.w1"], &w2 = layer.given["l.w2"], &w3 = layer.given["l.w3"];
    Tensor scores = linear(x, layer.given["l.gate.weight"], Tensor()), expected(x.shape);
    std::vector<double> asked(experts), wanted(experts);
    int64_t late = 0;
    for (int64_t b = 0; b < batch; ++b) {
      std::vector<int64_t> taken(experts);
      for (int64_t t = 0; t < length; ++t) {
        std::vector<double> p(experts);
        double sum = 0;
        for (int64_t e = 0; e < experts; ++e)
          sum += p[e] = std::exp(scores.at({b, t, e}));
        std::vector<int64_t> order(experts);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return p[i] > p[j]; });
        for (int64_t e = 0; e < experts; ++e)
          wanted[e] += p[e] / sum / (batch * length);
        for (int64_t choice = 0; choice < chosen; ++choice) {
          const int64_t e = order[choice];
          asked[e] += 1.0 / (batch * length * chosen);
          if (taken[e]++ >= capacity) {
            ++late;
            continue;
          }
          for (int64_t h = 0; h < hidden; ++h) {
            double g = 0, u = 0;
            for (int64_t i = 0; i < width; ++i) {
              g += x.at({b, t, i}) * w1.at({e, i, h});
              u += x.at({b, t, i}) * w3.at({e, i, h});
            }
            for (int64_t i = 0; i < width; ++i)
              expected.at({b, t, i}) += p[e] / (p[order[0]] + p[order[1]]) * g / (1 + std::exp(-g)) * u * w2.at({e, h, i});
          }
        }
      }
    }
    EXPECT_EQ(late == 0, capacity == 10);
    expectNear(y, expected);
    double even = 0;
    for (int64_t e = 0; e < experts; ++e)
      even += experts * asked[e] * wanted[e];
    EXPECT_NEAR(balance.values[0], even, 1e-12);
  }
  for (const char *wrong : {"capacity: 0", "capacity: 4, chosen: 5"}) {
    Reading reading(std::string("import \"nn.mir\"\nnetwork n(%x: f32[2, 3, 8]) {\n  %y, %z = MixtureOfExperts(%x, experts: 4, hidden: 6, ") +
                        wrong + ")\n  return y: %y, z: %z\n}\n",
                    withLibrary());
    EXPECT_NE(reading.said.find("of 4 experts, capacity "), std::string::npos) << reading.said;
    EXPECT_EQ(reading.diagnostics->errors(), 1u) << reading.said;
  }
}

TEST(Library, HeadsDivideTheWidth) {
  for (const char *heads : {"3", "0"}) {
    Reading wrong(std::string("import \"nn.mir\"\nnetwork n(%x: f32[2, 3, 8]) {\n  %y = MultiHeadAttention(%x, heads: ") + heads +
                      ")\n  return y: %y\n}\n",
                  withLibrary());
    EXPECT_NE(wrong.said.find(std::string("error: heads ") + heads + " does not divide width 8\n"), std::string::npos) << wrong.said;
    EXPECT_EQ(wrong.diagnostics->errors(), 1u) << wrong.said;
  }
}

TEST(Library, ActivationsByName) {
  for (const char *kind : {"relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid", "none"})
    Layer("%x: f32[2, 4]", std::string("Activation(%x, kind: ") + kind + ")");
  Layer exact("%x: f32[2, 4]", "Activation(%x, kind: gelu)");
  Tensor y = exact.run(), expected = exact.given["x"];
  for (double &x : expected.values)
    x *= 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
  expectNear(y, expected);
  Reading wrong("import \"nn.mir\"\nnetwork n(%x: f32[2, 4]) {\n  %y = MLP(%x, hidden: 8, activation: gelo)\n  return y: %y\n}\n",
                withLibrary());
  EXPECT_EQ(wrong.said.substr(wrong.said.find("error: "), wrong.said.find('\n') - wrong.said.find("error: ")),
            "error: unknown activation 'gelo': expected relu, gelu, gelu_tanh, silu, tanh, sigmoid or none");
  EXPECT_NE(wrong.said.find("net.mir:3:8: note: in this call of 'MLP'"), std::string::npos) << wrong.said;
}

TEST(Library, IsFoundByItsName) {
  EXPECT_EQ(Reading("import \"nm.mir\"\nnetwork n(%x: f32[2, 4]) { return y: %x }\n", withLibrary(), "no/net.mir").said,
            "no/net.mir:1:8: error: cannot read 'no/nm.mir': No such file or directory\n"
            "    1 | import \"nm.mir\"\n"
            "      |        ^~~~~~~~\n"
            "help: did you mean 'nn.mir'?\n");
  EXPECT_EQ(Reading("network n(%x: f32[2, 4]) {\n  %y = Linear(%x, out: 4)\n  return y: %y\n}\n", withLibrary()).said,
            "net.mir:2:8: error: unknown operator 'Linear'\n"
            "    2 |   %y = Linear(%x, out: 4)\n"
            "      |        ^~~~~~\n"
            "help: add 'import \"nn.mir\"' at the top of the file\n");
}

} // namespace
