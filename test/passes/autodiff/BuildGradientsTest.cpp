// Backward and update of whole networks: structure, tags, numbers and messages.
#include "dialects/net/Optimizers.h"
#include "passes/autodiff/Passes.h"
#include "test/dialects/net/TestNetwork.h"
#include "test/reference/Interpreter.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace msc;
using namespace msc::net;
using namespace msc::test;
using reference::Tensor;
using reference::Tensors;

namespace {

TrainConfig trainWith(NetContext &context, StringRef optimizer, double rate, std::map<std::string, double> numbers) {
  TrainConfig train{.optimizer = {.location = UnknownLoc::get(context.get())}, .location = UnknownLoc::get(context.get())};
  train.optimizer.name = optimizer.str();
  train.optimizer.learningRate.values = {rate};
  for (const OptimizerArgument &argument : findOptimizer(optimizer)->arguments)
    train.optimizer.numbers[argument.name.str()] = argument.otherwise.value_or(0);
  for (auto [name, number] : numbers)
    train.optimizer.numbers[name] = number;
  return train;
}

TrainConfig momentum(NetContext &context, double rate = 0.2, double momentum = 0.1) {
  return trainWith(context, "Momentum", rate, {{"momentum", momentum}});
}

std::string nameOf(Operation *op) {
  return op->getName().stripDialect().str();
}

/// Names of the operators of a phase, in order.
std::vector<std::string> operatorsOf(NetworkOp network, Phase phase) {
  std::vector<std::string> names;
  for (Operation &op : network.getBody().front())
    if (getPhase(&op) == phase && (isa<Operator>(op) || isa<UpdateOp>(op)))
      names.push_back(nameOf(&op));
  return names;
}

/// The quickstart: MatMul, ReLU, MatMul, MSELoss.
void buildQuickstart(TestNetwork &network, StringRef element = "f64") {
  auto type = [&](const char *shape) { return shape + element.str(); };
  Value x = network.input("x", type("16x32x")), label = network.input("label", type("16x16x"));
  Value w = network.param("w", type("32x16x")), w2 = network.param("w2", type("16x16x"));
  Value h = network.value("MatMul", {x, w}, "", "h");
  setInstanceName(h.getDefiningOp(), "matmul");
  setScope(h.getDefiningOp(), "Default/network-WithLossCell/_backbone-quickstart");
  Value a = network.value("ReLU", {h}, "", "a");
  Value out = network.value("MatMul", {a, w2}, "", "out");
  Value loss = network.value("MSELoss", {out, label}, "", "loss");
  network.results({loss, out}, {"loss", "out"});
}

TEST(BuildGradients, AppendsBackwardAndUpdateOfTheQuickstart) {
  NetContext context;
  TestNetwork network(context);
  buildQuickstart(network);
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  ASSERT_TRUE(succeeded(verify(*network.module)));
  using Names = std::vector<std::string>;
  EXPECT_EQ(operatorsOf(network.network, Phase::Forward), (Names{"MatMul", "ReLU", "MatMul", "MSELoss"}));
  // Three products, not four: nobody asks for the gradient of the input.
  EXPECT_EQ(operatorsOf(network.network, Phase::Backward),
            (Names{"MSELossGrad", "MatMul", "MatMul", "ReluGrad", "MatMul"}));
  EXPECT_EQ(operatorsOf(network.network, Phase::Update),
            (Names{"ApplyMomentum", "update", "update", "ApplyMomentum", "update", "update"}));
  EXPECT_TRUE(context.diagnostics.empty());
}

TEST(BuildGradients, TagsBackwardOperatorsWithTheirForwardOperator) {
  NetContext context;
  TestNetwork network(context);
  buildQuickstart(network);
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  std::vector<std::pair<int64_t, std::string>> tags;
  for (Operation &op : network.network.getBody().front())
    if (isa<Operator>(op) && getPhase(&op) == Phase::Backward) {
      EXPECT_FALSE(getId(&op));
      tags.emplace_back(*getForwardId(&op), getInstanceName(&op).str());
    }
  EXPECT_EQ(tags, (std::vector<std::pair<int64_t, std::string>>{
                      {3, "grad_loss"}, {2, "grad_out"}, {2, "grad_out.1"}, {1, "grad_a"}, {0, "grad_matmul"}}));
  for (Operation &op : network.network.getBody().front()) {
    if (getForwardId(&op) == 0 && getPhase(&op) == Phase::Backward)
      EXPECT_EQ(getScope(&op), "Gradients/Default/network-WithLossCell/_backbone-quickstart");
    if (getPhase(&op) == Phase::Update)
      EXPECT_EQ(getScope(&op), "Default/optimizer-Momentum");
  }
}

TEST(BuildGradients, DeclaresStateAndLearningRate) {
  NetContext context;
  TestNetwork network(context);
  buildQuickstart(network);
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  std::vector<std::string> params;
  for (ParamOp param : network.network.getBody().front().getOps<ParamOp>()) {
    params.push_back(param.getName().str());
    EXPECT_EQ(param.getTrained(), param.getStateOf().empty());
  }
  EXPECT_EQ(params, (std::vector<std::string>{"w", "w2", "moments.w", "moments.w2"}));
  auto scalars = network.network.getBody().front().getOps<ScalarOp>();
  ASSERT_EQ(std::distance(scalars.begin(), scalars.end()), 1);
  EXPECT_EQ((*scalars.begin()).getName(), "learning_rate");
  EXPECT_EQ((*scalars.begin()).getSchedule(), context.attributes("{kind = \"constant\", values = [0.2]}"));
}

/// Plain loops for the quickstart, without any of our code: what `steps` steps of training do to w and w2.
struct HandTraining {
  static constexpr int B = 16, I = 32, H = 16, O = 16;
  std::vector<double> x, label, w, w2, m, m2;
  double loss = 0;

  static std::vector<double> product(const std::vector<double> &a, const std::vector<double> &b, int m, int k, int n) {
    std::vector<double> c(m * n, 0);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        for (int l = 0; l < k; ++l)
          c[i * n + j] += a[i * k + l] * b[l * n + j];
    return c;
  }
  static std::vector<double> transposed(const std::vector<double> &a, int m, int n) {
    std::vector<double> t(a.size());
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        t[j * m + i] = a[i * n + j];
    return t;
  }
  static void step(std::vector<double> &w, std::vector<double> &m, const std::vector<double> &g) {
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = 0.1 * m[i] + g[i];
      w[i] -= 0.2 * m[i];
    }
  }
  void train() {
    std::vector<double> h = product(x, w, B, I, H), a = h;
    for (double &v : a)
      v = std::max(v, 0.0);
    std::vector<double> out = product(a, w2, B, H, O), d = out;
    loss = 0;
    for (size_t i = 0; i < d.size(); ++i) {
      loss += (out[i] - label[i]) * (out[i] - label[i]) / d.size();
      d[i] = 2 * (out[i] - label[i]) / d.size();
    }
    std::vector<double> dh = product(d, transposed(w2, H, O), B, O, H);
    for (size_t i = 0; i < dh.size(); ++i)
      dh[i] *= h[i] > 0;
    std::vector<double> g = product(transposed(x, B, I), dh, I, B, H), g2 = product(transposed(a, B, H), d, H, B, O);
    step(w, m, g);
    step(w2, m2, g2);
  }
};

TEST(BuildGradients, TrainsTheQuickstartLikePlainLoops) {
  NetContext context;
  TestNetwork network(context);
  buildQuickstart(network);
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  std::mt19937_64 random(1);
  Tensors given;
  for (auto [name, shape] :
       {std::pair{"x", "16x32xf64"}, {"label", "16x16xf64"}, {"w", "32x16xf64"}, {"w2", "16x16xf64"}})
    given[name] = randomTensor(context.type(shape), Domain::Any, random);
  HandTraining hand{given["x"].values,  given["label"].values,        given["w"].values,
                    given["w2"].values, std::vector<double>(32 * 16), std::vector<double>(16 * 16)};
  double first = 0, last = 0;
  for (int step = 0; step < 10; ++step) {
    FailureOr<reference::Step> result = reference::Interpreter().run(network.network, given);
    ASSERT_TRUE(succeeded(result));
    hand.train();
    last = result->outputs["loss"].values[0];
    first = step == 0 ? last : first;
    ASSERT_NEAR(last, hand.loss, 1e-12 * hand.loss) << "step " << step;
    for (auto &[name, tensor] : result->updated)
      given[name] = tensor;
    for (size_t i = 0; i < hand.w.size(); ++i)
      ASSERT_NEAR(given["w"].values[i], hand.w[i], 1e-12);
    for (size_t i = 0; i < hand.m2.size(); ++i)
      ASSERT_NEAR(given["moments.w2"].values[i], hand.m2[i], 1e-12);
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST(BuildGradients, AddsContributionsOfAllUsers) {
  NetContext context;
  TestNetwork network(context);
  // loss = sum((w * w + w) * x), so d w = x (2 w + 1); the square uses w twice.
  Value w = network.param("w", "3xf64"), x = network.input("x", "3xf64");
  Value square = network.value("Mul", {w, w});
  Value product = network.value("Mul", {network.value("Add", {square, w}), x});
  network.results(network.value("ReduceSum", {product}, "", "loss"), {"loss"});
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context), {"grad:w"})));
  FailureOr<reference::Step> step =
      reference::Interpreter().run(network.network, {{"w", Tensor({3}, {1, 2, -3})}, {"x", Tensor({3}, {1, 10, 100})}});
  EXPECT_EQ(step->outputs.at("grad:w").values, (std::vector<double>{3, 50, -500}));
  std::vector<std::string> backward = operatorsOf(network.network, Phase::Backward);
  EXPECT_EQ(std::count(backward.begin(), backward.end(), "Add"), 2);
}

TEST(BuildGradients, SharesGradientsAmongEqualMaxima) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "4xf64"), v = network.param("v", "4xf64");
  Value top = network.value("ReduceMax", {network.value("Maximum", {w, v})});
  network.results(network.value("ReduceSum", {top}, "", "loss"), {"loss"});
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context), {"grad:w", "grad:v"})));
  FailureOr<reference::Step> step = reference::Interpreter().run(
      network.network, {{"w", Tensor({4}, {1, 5, 2, 5})}, {"v", Tensor({4}, {1, 5, 3, 4})}});
  EXPECT_EQ(step->outputs.at("grad:w").values, (std::vector<double>{0, 0.25, 0, 0.5}));
  EXPECT_EQ(step->outputs.at("grad:v").values, (std::vector<double>{0, 0.25, 0, 0}));
}

TEST(BuildGradients, DoesNotTrainStates) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "3xf64"), frozen = network.param("mean", "3xf64", /*trained=*/false);
  Value loss = network.value("ReduceSum", {network.value("Mul", {w, frozen})}, "", "loss");
  network.results(loss, {"loss"});
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  EXPECT_EQ(operatorsOf(network.network, Phase::Update),
            (std::vector<std::string>{"ApplyMomentum", "update", "update"}));
}

TEST(BuildGradients, WarnsOfParametersWithoutGradient) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "3xf64"), lonely = network.param("lonely", "3xf64"),
        step = network.param("step", "3xf64");
  Value mask = network.value("Cast", {network.value("Greater", {step, w})}, "{dst_type = f64}");
  Value loss = network.value("ReduceSum", {network.value("Mul", {w, mask})}, "", "loss");
  network.results({loss, network.value("Neg", {lonely})}, {"loss", "other"});
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  EXPECT_EQ(
      context.diagnostics,
      (std::vector<std::string>{
          "warning: parameter 'lonely' is not trained: the gradient of the loss 'loss' with respect to it is zero",
          "warning: parameter 'step' is not trained: the gradient of the loss 'loss' with respect to it is zero"}));
  EXPECT_EQ(operatorsOf(network.network, Phase::Update).size(), 3u);
}

TEST(BuildGradients, LeavesUnusedParametersToTheCheckOfTheNetwork) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "3xf64");
  network.value("Exp", {network.param("idle", "3xf64")});
  network.results(network.value("ReduceSum", {w}, "", "loss"), {"loss"});
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  EXPECT_TRUE(context.diagnostics.empty());
}

TEST(BuildGradients, NamesTheOperatorWithoutGradient) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w1", "3xf64"), x = network.input("x", "3xf64");
  Value helper = network.value("TanhGrad", {network.value("Mul", {x, w}), x}, "", "slope");
  network.results(network.value("ReduceSum", {helper}, "", "loss"), {"loss"});
  EXPECT_TRUE(failed(autodiff::buildGradients(network.network, "loss", momentum(context))));
  EXPECT_EQ(context.diagnostics,
            (std::vector<std::string>{"error: 'slope' has no gradient, but 'loss' depends on it through 'w1'",
                                      "note: 'w1' declared here"}));
}

TEST(BuildGradients, IgnoresOperatorsWithoutGradientOffThePath) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "3xf64"), x = network.input("x", "3xf64");
  Value off = network.value("TanhGrad", {x, x});
  Value side = network.value("TanhGrad", {w, x});
  Value loss = network.value("ReduceSum", {network.value("Mul", {off, w})}, "", "loss");
  network.results({loss, side}, {"loss", "side"});
  EXPECT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  EXPECT_TRUE(context.diagnostics.empty());
}

TEST(BuildGradients, ExplainsWhatCannotBeMinimised) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "3xf32");
  Value y = network.value("ReLU", {w}, "", "y");
  network.results(y, {"y"});
  EXPECT_TRUE(failed(autodiff::buildGradients(network.network, "loss", momentum(context))));
  EXPECT_TRUE(failed(autodiff::buildGradients(network.network, "y", momentum(context))));
  EXPECT_EQ(context.diagnostics,
            (std::vector<std::string>{"error: network 'test' has no result 'loss' to minimise; its results are y",
                                      "error: result 'y' cannot be minimised: it is f32 3, not a float scalar",
                                      "note: computed here"}));
}

TEST(BuildGradients, KeepsValuesAndGradientsAsResults) {
  NetContext context;
  TestNetwork network(context);
  buildQuickstart(network);
  ASSERT_TRUE(
      succeeded(autodiff::buildGradients(network.network, "loss", momentum(context), {"%a", "grad:w2", "%out", "%x"})));
  std::vector<std::string> names;
  for (StringRef name : getReturn(network.network).getNames().getAsValueRange<StringAttr>())
    names.push_back(name.str());
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "out", "a", "grad:w2", "x"}));
  EXPECT_TRUE(succeeded(verify(*network.module)));
}

TEST(BuildGradients, SaysWhatCannotBeKept) {
  NetContext context;
  for (const char *name : {"%nothing", "grad:x"}) {
    TestNetwork network(context);
    buildQuickstart(network);
    EXPECT_TRUE(failed(autodiff::buildGradients(network.network, "loss", momentum(context), {name})));
  }
  EXPECT_EQ(context.diagnostics,
            (std::vector<std::string>{"error: cannot keep '%nothing': network 'test' has no such value",
                                      "note: help: there are %learning_rate, %h, %a, %out, %loss",
                                      "error: cannot keep 'grad:x': network 'test' has no such gradient",
                                      "note: help: did you mean 'grad:w'?"}));
}

TEST(BuildGradients, RemovesWhatNobodyUses) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "3xf64");
  network.value("Exp", {network.value("Neg", {w})});
  network.results(network.value("ReduceSum", {w}, "", "loss"), {"loss"});
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", momentum(context))));
  EXPECT_EQ(operatorsOf(network.network, Phase::Forward), (std::vector<std::string>{"ReduceSum"}));
}

TEST(BuildGradients, SparesNormalisationParametersFromWeightDecay) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("fc.weight", "3xf32"), gamma = network.param("bn.gamma", "3xf32");
  Value loss = network.value("ReduceSum", {network.value("Mul", {w, gamma})}, "", "loss");
  network.results(loss, {"loss"});
  TrainConfig config = momentum(context);
  config.optimizer.numbers["weight_decay"] = 0.5;
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", config)));
  std::vector<double> decays;
  for (ApplyMomentumOp step : network.network.getBody().front().getOps<ApplyMomentumOp>())
    decays.push_back(step.getWeightDecay().convertToDouble());
  EXPECT_EQ(decays, (std::vector<double>{0.5, 0}));
}

TEST(BuildGradients, SparesWhatPatternsName) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("fc.gamma", "3xf32"), bias = network.param("fc.bias", "3xf32");
  Value loss = network.value("ReduceSum", {network.value("Mul", {w, bias})}, "", "loss");
  network.results(loss, {"loss"});
  TrainConfig config = trainWith(context, "AdamW", 0.1, {});
  config.optimizer.noDecay = {"*.bias"};
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", config)));
  std::vector<double> decays;
  for (AdamOp step : network.network.getBody().front().getOps<AdamOp>())
    decays.push_back(step.getWeightDecay().convertToDouble());
  EXPECT_EQ(decays, (std::vector<double>{0.01, 0}));
}

TEST(BuildGradients, SharesScalarsBetweenParameters) {
  NetContext context;
  TestNetwork network(context);
  buildQuickstart(network);
  TrainConfig config = trainWith(context, "Adam", 0.1, {});
  config.optimizer.learningRate = {.kind = "cosine", .values = {0.1, 0, 100}, .warmup = 10};
  config.gradients.accumulateSteps = 4;
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", config)));
  ASSERT_TRUE(succeeded(verify(*network.module)));
  std::map<std::string, DictionaryAttr> scalars;
  for (ScalarOp scalar : network.network.getBody().front().getOps<ScalarOp>())
    scalars[scalar.getName().str()] = scalar.getSchedule();
  ASSERT_EQ(scalars.size(), 4u);
  EXPECT_EQ(scalars["accumulation_step"], context.attributes("{kind = \"cycle\", values = [4.0]}"));
  EXPECT_EQ(scalars["beta2_correction"], context.attributes("{every = 4 : i64, kind = \"correction\", values = [0.999]}"));
  EXPECT_EQ(scalars["learning_rate"],
            context.attributes("{every = 4 : i64, kind = \"cosine\", values = [0.1, 0.0, 100.0], warmup = 10 : i64}"));
}

TEST(BuildGradients, StepsPlainSGDWithoutState) {
  NetContext context;
  TestNetwork network(context);
  Value w = network.param("w", "2xf64");
  network.results(network.value("ReduceSum", {network.value("Square", {w})}, "", "loss"), {"loss"});
  ASSERT_TRUE(succeeded(autodiff::buildGradients(network.network, "loss", trainWith(context, "SGD", 0.25, {}))));
  EXPECT_EQ(operatorsOf(network.network, Phase::Update), (std::vector<std::string>{"SGD", "update"}));
  FailureOr<reference::Step> step = reference::Interpreter().run(network.network, {{"w", Tensor({2}, {1, -2})}});
  EXPECT_EQ(step->updated.at("w").values, (std::vector<double>{0.5, -1})); // w - 0.25 * 2 w
}

/// The pass on a whole module, with its messages.
std::vector<std::string> runPass(StringRef optimizer, std::string *printed = nullptr) {
  NetContext context;
  std::string text = (R"(
    net.network @n inputs [] {
      %w = net.param "w" = {kind = "ones"} : tensor<3xf32>
      %loss = net.ReduceSum %w : (tensor<3xf32>) -> tensor<f32>
      net.return %loss names ["loss"] : tensor<f32>
    }
    net.config "train" "" {minimize = "loss", epochs = 1, optimizer = )" +
                      optimizer + R"(} at {}
  )")
                         .str();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
  PassManager manager(context.get());
  manager.addPass(autodiff::createBuildGradients());
  bool done = succeeded(manager.run(*module));
  if (printed && done)
    llvm::raw_string_ostream(*printed) << *module;
  return context.diagnostics;
}

TEST(BuildGradientsPass, ReadsTheTrainBlock) {
  std::string printed;
  EXPECT_TRUE(
      runPass(R"({callee = "SGD", args = [0.5], named = {momentum = 0.9, dampening = 0.25}})", &printed).empty());
  EXPECT_NE(printed.find("net.ApplyMomentum"), std::string::npos);
  EXPECT_NE(printed.find("dampening = 2.500000e-01"), std::string::npos);
  EXPECT_NE(printed.find("Default/optimizer-SGD"), std::string::npos);
}

TEST(BuildGradientsPass, RefusesATrainBlockWithNothingToTrain) {
  NetContext context;
  auto module = parseSourceString<ModuleOp>(R"(
    net.network @n inputs ["x"] {
    ^bb0(%x: tensor<3xf32>):
      %w = net.param "w" = {kind = "Zeros"} {trained = false} : tensor<3xf32>
      %a = net.Mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %l = net.ReduceSum %a : (tensor<3xf32>) -> tensor<f32>
      net.return %l names ["loss"] : tensor<f32>
    }
    net.config "train" "" {optimizer = {callee = "SGD", args = [0.5], named = {}}, minimize = "loss"} at {}
  )", context.get());
  ASSERT_TRUE(module);
  PassManager manager(context.get());
  manager.addPass(autodiff::createBuildGradients());
  EXPECT_TRUE(failed(manager.run(*module)));
  EXPECT_EQ(context.diagnostics,
            (std::vector<std::string>{"error: nothing to train: the network has no trainable parameters",
                                      "note: help: leave out the train block, and the network is evaluated"}));
}

TEST(BuildGradientsPass, RefusesPatternsThatNameNothing) {
  EXPECT_EQ(runPass(R"({callee = "AdamW", args = [0.5], named = {no_decay = ["w", "*.bais"]}})"),
            (std::vector<std::string>{"error: 'no_decay' names no parameter by '*.bais'"}));
}

TEST(BuildGradientsPass, RefusesNesterovWithoutMomentum) {
  EXPECT_EQ(runPass(R"({callee = "SGD", args = [0.5], named = {nesterov = true}})"),
            (std::vector<std::string>{"error: nesterov needs a momentum above 0 and no dampening, but they are "
                                      "0.000000e+00 and 0.000000e+00"}));
}

} // namespace
