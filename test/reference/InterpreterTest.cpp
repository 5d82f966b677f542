// The reference against numbers worked out by hand, and what it says when something is missing.
#include "test/reference/Interpreter.h"
#include "test/dialects/net/TestNetwork.h"
#include "test/reference/LinalgInterpreter.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace msc::net;
using namespace msc::test;
using namespace msc::reference;

namespace {

using Numbers = std::vector<double>;

/// Values of the first result of one operator.
Numbers valuesOf(StringRef op, std::vector<std::pair<const char *, Numbers>> operands, StringRef attributes = "",
                 bool lowered = false) {
  NetContext context;
  TestNetwork network(context);
  std::vector<Value> values;
  std::vector<Tensor> tensors;
  for (auto &[type, numbers] : operands) {
    values.push_back(network.input("x" + std::to_string(values.size()), type));
    tensors.emplace_back(shapeOfType(values.back().getType()), numbers);
  }
  Operation *made = network.op(op, values, attributes);
  if (!lowered)
    return Interpreter().evaluate(made, tensors)[0].values;
  return (*runLowered(made, tensors, {shapeOfType(made->getResult(0).getType())}))[0].values;
}

TEST(Interpreter, MultipliesMatrices) {
  Numbers a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, 1, 0, 3};
  EXPECT_EQ(valuesOf("MatMul", {{"2x3xf64", a}, {"3x2xf64", b}}), (Numbers{5, 11, 14, 23}));
  EXPECT_EQ(valuesOf("MatMul", {{"2x3xf64", a}, {"2x3xf64", b}}, "{transpose_b = true}"), (Numbers{7, 10, 16, 22}));
  EXPECT_EQ(valuesOf("MatMul", {{"3x2xf64", a}, {"3x2xf64", b}}, "{transpose_a = true}"), (Numbers{7, 18, 10, 22}));
  EXPECT_EQ(valuesOf("MatMul", {{"2x1x2xf64", {1, 2, 3, 4}}, {"2x1xf64", {10, 1}}}), (Numbers{12, 34}));
}

TEST(Interpreter, BroadcastsReducesAndMoves) {
  EXPECT_EQ(valuesOf("Sub", {{"2x1xf64", {10, 20}}, {"3xf64", {1, 2, 3}}}), (Numbers{9, 8, 7, 19, 18, 17}));
  EXPECT_EQ(valuesOf("BiasAdd", {{"1x2x2xf64", {1, 2, 3, 4}}, {"2xf64", {10, 20}}}), (Numbers{11, 22, 13, 24}));
  EXPECT_EQ(valuesOf("BiasAdd", {{"1x2x1x2xf64", {1, 2, 3, 4}}, {"2xf64", {10, 20}}}), (Numbers{11, 12, 23, 24}));
  Numbers x = {1, 5, 3, 4, 2, 6};
  EXPECT_EQ(valuesOf("ReduceSum", {{"2x3xf64", x}}, "{axis = array<i64: 0>}"), (Numbers{5, 7, 9}));
  EXPECT_EQ(valuesOf("ReduceMean", {{"2x3xf64", x}}, "{axis = array<i64: 1>}"), (Numbers{3, 4}));
  EXPECT_EQ(valuesOf("ReduceMax", {{"2x3xf64", x}}, "{axis = array<i64: -1>, keep_dims = true}"), (Numbers{5, 6}));
  EXPECT_EQ(valuesOf("Transpose", {{"2x3xf64", x}}, "{perm = array<i64: 1, 0>}"), (Numbers{1, 4, 5, 2, 3, 6}));
  EXPECT_EQ(valuesOf("BroadcastTo", {{"2x1xf64", {7, 8}}}, "{shape = array<i64: 2, 2>}"), (Numbers{7, 7, 8, 8}));
  EXPECT_EQ(valuesOf("Select", {{"2xi1", {1, 0}}, {"2xf64", {1, 2}}, {"2xf64", {3, 4}}}), (Numbers{1, 4}));
  EXPECT_EQ(valuesOf("SelectEqual", {{"3xi32", {0, 1, 2}}, {"i32", {1}}, {"3xf64", {1, 2, 3}}, {"f64", {9}}}), (Numbers{9, 2, 9}));
  EXPECT_EQ(valuesOf("Cast", {{"3xf64", {-1.9, 0, 2.5}}}, "{dst_type = i32}"), (Numbers{-1, 0, 2}));
}

TEST(Interpreter, KnowsKnownValuesOfActivations) {
  auto at = [](StringRef op, double x, StringRef attributes = "") {
    return valuesOf(op, {{"f64", {x}}}, attributes)[0];
  };
  EXPECT_NEAR(at("GeLU", 1, "{approximate = \"none\"}"), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(at("GeLU", 1), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(at("Sigmoid", 2), 0.8807970779778823, 1e-15);
  EXPECT_NEAR(at("SiLU", 2), 1.7615941559557646, 1e-15);
  EXPECT_NEAR(at("Tanh", 0.5), 0.46211715726000973, 1e-15);
  EXPECT_EQ(at("Rsqrt", 4), 0.5);
  EXPECT_EQ(at("ReLU", -3), 0);
}

TEST(Interpreter, ComputesLossesAndSteps) {
  Numbers x = {1, 2, 3, 4}, y = {0, 2, 5, 1};
  EXPECT_EQ(valuesOf("MSELoss", {{"2x2xf64", x}, {"2x2xf64", y}}), (Numbers{3.5}));
  EXPECT_EQ(valuesOf("MSELoss", {{"4xf64", x}, {"4xf64", y}}, "{reduction = \"sum\"}"), (Numbers{14}));
  EXPECT_EQ(valuesOf("MSELoss", {{"4xf64", x}, {"4xf64", y}}, "{reduction = \"none\"}"), (Numbers{1, 0, 4, 9}));
  EXPECT_EQ(valuesOf("MSELossGrad", {{"4xf64", x}, {"4xf64", y}, {"f64", {2}}}), (Numbers{1, 0, -2, 3}));
  // g = 8 / 2 + 0.5 * 1 = 4.5; accum = 0.5 * 2 + 4.5 = 5.5; var = 1 - 0.1 * 5.5.
  std::vector<std::pair<const char *, Numbers>> step = {{"1xf64", {1}}, {"1xf64", {2}}, {"f64", {0.1}}, {"1xf64", {8}}};
  EXPECT_DOUBLE_EQ(valuesOf("ApplyMomentum", step, "{momentum = 0.5, weight_decay = 0.5, loss_scale = 2.0}")[0], 0.45);
  // nesterov: var = 1 - 0.1 * (4.5 + 0.5 * 5.5).
  EXPECT_DOUBLE_EQ(
      valuesOf("ApplyMomentum", step, "{momentum = 0.5, weight_decay = 0.5, loss_scale = 2.0, use_nesterov = true}")[0],
      0.275);
  EXPECT_DOUBLE_EQ(valuesOf("SGD", {{"1xf64", {1}}, {"f64", {0.1}}, {"1xf64", {8}}})[0], 0.2);
}

TEST(Interpreter, LetsNaNPassWhereLoweringsDo) {
  double nan = std::nan("");
  for (bool lowered : {false, true}) {
    EXPECT_TRUE(std::isnan(valuesOf("ReLU", {{"f64", {nan}}}, "", lowered)[0]));
    EXPECT_TRUE(std::isnan(valuesOf("Sign", {{"f64", {nan}}}, "", lowered)[0]));
    EXPECT_TRUE(std::isnan(valuesOf("ReduceMax", {{"3xf64", {1, nan, 2}}}, "", lowered)[0]));
    EXPECT_EQ(valuesOf("ReluGrad", {{"f64", {5}}, {"f64", {nan}}}, "", lowered)[0], 5); // a NaN is not cut off
    for (const char *op : {"Maximum", "Minimum"}) {
      EXPECT_TRUE(std::isnan(valuesOf(op, {{"f64", {nan}}, {"f64", {1}}}, "", lowered)[0]));
      EXPECT_TRUE(std::isnan(valuesOf(op, {{"f64", {1}}, {"f64", {nan}}}, "", lowered)[0]));
    }
    EXPECT_EQ(valuesOf("Greater", {{"f64", {nan}}, {"f64", {1}}}, "", lowered)[0], 0);
    EXPECT_EQ(valuesOf("NotEqual", {{"f64", {nan}}, {"f64", {nan}}}, "", lowered)[0], 1);
  }
}

TEST(Interpreter, WritesIdentitiesForEmptyReductions) {
  for (bool lowered : {false, true}) {
    EXPECT_EQ(valuesOf("ReduceSum", {{"2x0xf64", {}}}, "{axis = array<i64: 1>}", lowered), (Numbers{0, 0}));
    EXPECT_EQ(valuesOf("Exp", {{"2x0xf64", {}}}, "", lowered), Numbers{});
  }
  NetContext context;
  TestNetwork network(context);
  Operation *max = network.op("ReduceMax", {network.input("x", "4xf64")});
  EXPECT_EQ((*runLowered(max, {Tensor({0})}, {{}}))[0].values, (Numbers{-INFINITY}));
}

TEST(Interpreter, SaysWhatIsMissing) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "2xf64");
  network.results(network.value("Mul", {network.input("x", "2xf64"), w}), {"y"});
  EXPECT_TRUE(failed(Interpreter().run(network.network, {{"x", Tensor({2}, 1.0)}})));
  EXPECT_EQ(context.diagnostics.back(), "error: no tensor is given for 'w'");
  EXPECT_TRUE(failed(Interpreter().run(network.network, {{"x", Tensor({3}, 1.0)}, {"w", Tensor({2}, 1.0)}})));
  EXPECT_EQ(context.diagnostics.back(), "error: the tensor given for 'x' has another shape");
  FailureOr<Step> step = Interpreter().run(network.network, {{"x", Tensor({2}, 3.0)}, {"w", Tensor({2}, 2.0)}});
  EXPECT_EQ(step->outputs.at("y").values, (Numbers{6, 6}));
}

} // namespace
