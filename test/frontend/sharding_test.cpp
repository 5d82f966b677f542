// `sharding:` of values, parameters and cell results: which strategies it becomes, and what is wrong with it.
#include "ErrorText.h"

#include "dialects/net/Network.h"

using namespace msc;
using namespace msc::test;
using namespace mlir;

namespace {

/// The statements under `mesh (data: 2, model: 4)`.
std::string onMesh(const std::string &statements) { return "mesh (data: 2, model: 4)\n" + networkOf(statements); }

/// Of the operators that have one the strategy, of those that shardings leave open in part what is fixed (cutText), in order.
std::string strategiesOf(const std::string &text) {
  Reading reading(text);
  EXPECT_TRUE(reading.module) << reading.said;
  std::string all;
  if (reading.module)
    reading.module->walk([&](net::Operator op) {
      if (std::string cut = cutText(op); !cut.empty())
        all += (all.empty() ? "" : " ") + net::getInstanceName(op).str() + cut;
    });
  return all;
}

TEST(Sharding, OfAResultCutsTheFactorsOfItsDimensions) {
  EXPECT_EQ(strategiesOf(onMesh(R"(  param %w: f32[32, 16] = Zeros()
  %a = MatMul(%x, %w) {sharding: (data, model)}
  return out: %a
)")),
            "a=((2, 1), (1, 4))");
}

TEST(Sharding, MeshesThatDoNotFitAreIgnoredWhereStrategiesAre) {
  std::string text = "mesh (d: 2, m: devices / 2)\nmesh inner (k: 4)\n" +
                     networkOf("  %a = ReLU(%x) {sharding: (d, m)}\n  return out: %a\n");
  auto notes = [&](frontend::ParseOptions options, const std::string &block = "") {
    Reading reading(text + block, options);
    EXPECT_TRUE(reading.module);
    return reading.said.substr(0, reading.said.find('\n'));
  };
  EXPECT_EQ(notes({.devices = 1}), "net.mir:1:1: note: the mesh is ignored on one device");
  EXPECT_EQ(notes({.devices = 6, .parallelMode = "data_parallel"}), "net.mir:2:1: note: the mesh is ignored in data_parallel mode");
  EXPECT_EQ(notes({.devices = 3}, "context {parallel_mode: stand_alone}\n"),
            "net.mir:1:1: note: the mesh is ignored in stand_alone mode");
  EXPECT_EQ(notes({.devices = 4}), "");
}

TEST(Sharding, OfAParameterCutsItsUsers) {
  EXPECT_EQ(strategiesOf(onMesh(R"(  param %w: f32[32, 16] = Zeros() {sharding: (model, None)}
  %a = MatMul(%x, %w)
  %b = MatMul(%label, %w, transpose_b: true)
  return out: %a, b: %b
)")),
            "a~(auto, 4, 1) b~(auto, 1, 4)");
}

TEST(Sharding, PartialCutsWhatIsSummed) {
  EXPECT_EQ(strategiesOf(onMesh(R"(  param %w: f32[32, 16] = Zeros()
  %a = MatMul(%x, %w) {sharding: (data, None, partial: (sum: model))}
  return out: %a
)")),
            "a=((2, 4), (4, 1))");
}

TEST(Sharding, AxesMayShareADimension) {
  EXPECT_EQ(strategiesOf(onMesh("  %a = ReLU(%x) {sharding: (data.model, None)}\n  return out: %a\n")), "a=((8, 1))");
}

TEST(Sharding, FactorsThatNothingNamesFollowTheOperands) {
  auto strategies = [](const std::string &cut) {
    return strategiesOf(onMesh(R"(  param %w: f32[32, 16] = Zeros()
  param %bias: f32[16] = Zeros() {sharding: (model)}
  param %w2: f32[16, 32] = Zeros() {sharding: (model, None)}
  %a = MatMul(%x, %w) {)" + cut + R"(}
  %b = BiasAdd(%a, %bias)
  %c = ReLU(%b)
  %d = MatMul(%c, %w2)
  return out: %d
)"));
  };
  EXPECT_EQ(strategies("sharding: (data, model)"), "a=((2, 1), (1, 4)) b=((2, 4), (4)) d=((2, 4), (4, 1))");
  // A strategy is one of many for its operator: what it cuts is open behind it.
  EXPECT_EQ(strategies("in_strategy: ((2, 1), (1, 4))"), "a=((2, 1), (1, 4)) b~(auto, 4) d~(auto, 4, 1)");
  // Where a sharding says the rest, what is summed follows it, through what nothing names, too.
  for (std::string between : {"  %b = ReLU(%a)\n", "  %c = ReLU(%a)\n  %b = ReLU(%c)\n"})
    EXPECT_EQ(strategiesOf(onMesh("  param %w: f32[32, 16] = Zeros()\n  param %w2: f32[16, 32] = Zeros()\n"
                                  "  %a = MatMul(%x, %w) {in_strategy: ((2, 1), (1, 4))}\n" + between +
                                  "  %d = MatMul(%b, %w2) {sharding: (data, None)}\n  return out: %d\n")),
              "a=((2, 1), (1, 4)) d=((2, 4), (4, 1))");
}

TEST(Sharding, AutoLeavesADimensionOpen) {
  std::string cell = R"(cell C(%x, cut: string = "auto") {
  param %w: f32[dim(%x, 1), 16] = Zeros() {sharding: (auto, cut)}
  %y = MatMul(%x, %w)
  return %y
}
)";
  std::string head = "  %h = ReLU(%x) {sharding: (data, auto)}\n";
  EXPECT_EQ(strategiesOf(cell + onMesh(head + "  %a = C(%h)\n  return out: %a\n")), "h~(2, auto)");
  EXPECT_EQ(strategiesOf(cell + onMesh(head + "  %a = C(%h, cut: model)\n  return out: %a\n")),
            "h~(2, auto) a.y~(2, auto, 4)");
}

TEST(Sharding, OfACellIsThatOfItsResult) {
  EXPECT_EQ(strategiesOf("cell C(%x) {\n  %r = ReLU(%x)\n  %y = Tanh(%r)\n  return %y\n}\n" +
                         onMesh("  %a = C(%x) {sharding: (None, model)}\n  return out: %a\n")),
            "a.y=((1, 4))");
}

TEST(Sharding, OfAnOutStrategyAloneIsNotLost) {
  EXPECT_EQ(strategiesOf(networkOf("  %a = ReLU(%x) {out_strategy: ((2, 4))}\n  return out: %a\n")), "a=((2, 4))");
}

TEST(Sharding, SeveralMeshesNameTheSameDevices) {
  EXPECT_EQ(strategiesOf("mesh flat (all: 8)\n" + onMesh(R"(  %a = ReLU(%x) {sharding: (all, None)}
  %b = ReLU(%a) {sharding: (data, model)}
  return out: %b
)")),
            "a=((8, 1)) b=((2, 4))");
}

TEST(Repeat, OneRoundMayBePinned) {
  EXPECT_EQ(strategiesOf(onMesh(R"(  %h = repeat i in 0..3 with %u = %x {
    %v = if i == 1 {
      %p = ReLU(%u) {sharding: (data, model)}
      yield %p
    } else {
      %p = ReLU(%u)
      yield %p
    }
    yield %v
  }
  return out: %h
)")),
            "p.1=((2, 4))");
}

const std::vector<Mistake> mistakes = {
    {"WithoutMesh", networkOf("  %a = ReLU(%x) {sharding: (data, None)}\n  return out: %a\n"),
     R"T(net.mir:2:29: error: 'sharding' names the axis 'data', but the file has no mesh
    2 |   %a = ReLU(%x) {sharding: (data, None)}
      |                             ^~~~
help: add 'mesh (data: devices)' at the top of the file
)T"},
    {"UnknownAxis", onMesh("  %a = ReLU(%x) {sharding: (dat, None)}\n  return out: %a\n"),
     R"T(net.mir:3:29: error: unknown axis 'dat'
    3 |   %a = ReLU(%x) {sharding: (dat, None)}
      |                             ^~~
help: did you mean 'data'?
)T"},
    {"NoAxis", onMesh("  %a = ReLU(%x) {sharding: (2, None)}\n  return out: %a\n"),
     R"T(net.mir:3:29: error: expected an axis of the mesh, None or auto
    3 |   %a = ReLU(%x) {sharding: (2, None)}
      |                             ^
help: write one of data, model, None, auto
)T"},
    {"NoTuple", onMesh("  %a = ReLU(%x) {sharding: data}\n  return out: %a\n"),
     R"T(net.mir:3:28: error: 'sharding' expects one axis or None per dimension, such as (data, None)
    3 |   %a = ReLU(%x) {sharding: data}
      |                            ^~~~
help: put the axes in brackets, one entry per dimension
)T"},
    {"UnknownKey", onMesh("  %a = ReLU(%x) {sharding: (data, None, partials: (sum: model))}\n  return out: %a\n"),
     R"T(net.mir:3:41: error: unknown key 'partials' of a sharding
    3 |   %a = ReLU(%x) {sharding: (data, None, partials: (sum: model))}
      |                                         ^~~~~~~~
help: did you mean 'partial'?
)T"},
    {"PartialWithoutKind", onMesh("  %a = ReLU(%x) {sharding: (data, None, partial: model)}\n  return out: %a\n"),
     R"T(net.mir:3:50: error: 'partial' expects (sum: axis), (max: axis) or (min: axis)
    3 |   %a = ReLU(%x) {sharding: (data, None, partial: model)}
      |                                                  ^~~~~
help: write partial: (sum: data)
)T"},
    {"NothingPartial", onMesh("  %a = ReLU(%x) {sharding: (data, None, partial: (sum: model))}\n  return out: %a\n"),
     R"T(net.mir:3:28: error: 'a' has no partial result of this kind
    3 |   %a = ReLU(%x) {sharding: (data, None, partial: (sum: model))}
      |                            ^
)T"},
    {"PartialParameter", onMesh("  param %w: f32[16, 32] = Zeros() {sharding: (data, None, partial: (sum: model))}\n  %a = Add(%x, %w)\n  return out: %a\n"),
     R"T(net.mir:3:59: error: 'partial' says how an operator sums, but this is a parameter
    3 |   param %w: f32[16, 32] = Zeros() {sharding: (data, None, partial: (sum: model))}
      |                                                           ^~~~~~~
help: leave it out here, or write it behind the operator whose sum is meant
)T"},
    {"PartialInput", onMesh("  %a = Same(%x) {sharding: (data, None, partial: (sum: model))}\n  return out: %a\n") + "cell Same(%h) {\n  return %h\n}\n",
     R"T(net.mir:3:41: error: 'partial' says how an operator sums, but no operator gives this value
    3 |   %a = Same(%x) {sharding: (data, None, partial: (sum: model))}
      |                                         ^~~~~~~
help: leave it out here, or write it behind the operator whose sum is meant
)T"},
    {"AxisCalledAuto", "mesh (auto: 2, model: 4)\n" + networkOf("  return out: %x\n"),
     R"T(net.mir:1:7: error: an axis cannot be called 'auto': in a sharding this word leaves a dimension open
    1 | mesh (auto: 2, model: 4)
      |       ^~~~
help: give it another name, such as 'data'
)T"},
    {"AxisCalledNone", "mesh (data: 2, None: 4)\n" + networkOf("  return out: %x\n"),
     R"T(net.mir:1:16: error: an axis cannot be called 'None': in a sharding this word leaves a dimension whole
    1 | mesh (data: 2, None: 4)
      |                ^~~~
help: give it another name, such as 'data'
)T"},
    {"TooFewDimensions", onMesh("  %a = ReLU(%x) {sharding: (data)}\n  return out: %a\n"),
     R"T(net.mir:3:28: error: 'sharding' has 1 entry, but the tensor, (16, 32) Float32, has 2 dimensions
    3 |   %a = ReLU(%x) {sharding: (data)}
      |                            ^
help: write one entry per dimension, and None for a dimension that is not cut
)T"},
    {"AxisTwice", onMesh("  %a = ReLU(%x) {sharding: (data, data.model)}\n  return out: %a\n"),
     R"T(net.mir:3:28: error: axis 'data' stands twice in this sharding
    3 |   %a = ReLU(%x) {sharding: (data, data.model)}
      |                            ^
help: write it once, and None for a dimension that is not cut
)T"},
    {"AxesOfTwoMeshes", "mesh flat (all: 8)\n" + onMesh("  %a = ReLU(%x) {sharding: (data, all)}\n  return out: %a\n"),
     R"T(net.mir:4:28: error: 'data' and 'all' are axes of different meshes
    4 |   %a = ReLU(%x) {sharding: (data, all)}
      |                            ^
help: name axes of one mesh
)T"},
    {"MorePiecesThanElements", onMesh(R"T(  param %w: f32[32, 3] = Zeros()
  %a = MatMul(%x, %w) {sharding: (data, model)}
  return out: %a
)T"),
     R"T(net.mir:4:34: error: 'sharding' cuts dimension 1 into 4 pieces, its size is 3
    4 |   %a = MatMul(%x, %w) {sharding: (data, model)}
      |                                  ^
help: write None there, or axes that make at most 3 pieces
)T"},
    {"BroadcastDimension", onMesh(R"T(  param %s: f32[1, 32] = Ones() {sharding: (data, None)}
  %a = Mul(%x, %s)
  return out: %a
)T"),
     R"T(net.mir:3:44: error: dimension 0 has one element for 'Mul' and cannot be cut into 2
    3 |   param %s: f32[1, 32] = Ones() {sharding: (data, None)}
      |                                            ^
)T"},
    {"TwoShardingsThatDiffer", onMesh(R"T(  param %w: f32[32, 16] = Zeros() {sharding: (None, data)}
  %a = MatMul(%x, %w) {sharding: (None, model)}
  return out: %a
)T"),
     R"T(net.mir:3:46: error: 'a' cannot follow both shardings: they cut dimension 1 differently
    3 |   param %w: f32[32, 16] = Zeros() {sharding: (None, data)}
      |                                              ^
net.mir:4:34: note: the other one is here
    4 |   %a = MatMul(%x, %w) {sharding: (None, model)}
      |                                  ^
net.mir:4:8: note: the operator is here
    4 |   %a = MatMul(%x, %w) {sharding: (None, model)}
      |        ^~~~~~
help: write the same axes in both, or take one of them out; an out_strategy leaves a result cut otherwise than it was computed
)T"},
    {"AxisForTwoFactors", onMesh(R"T(  param %w: f32[32, 16] = Zeros() {sharding: (data, None)}
  %a = MatMul(%x, %w) {sharding: (data, None)}
  return out: %a
)T"),
     R"T(net.mir:3:46: error: axis 'data' would cut two dimensions of 'a' that do not belong together
    3 |   param %w: f32[32, 16] = Zeros() {sharding: (data, None)}
      |                                              ^
net.mir:4:34: note: the other one is named here
    4 |   %a = MatMul(%x, %w) {sharding: (data, None)}
      |                                  ^
)T"},
    {"StrategyThatDiffers", onMesh(R"T(  param %w: f32[32, 16] = Zeros() {sharding: (model, None)}
  %a = MatMul(%x, %w) {in_strategy: ((2, 2), (2, 1))}
  return out: %a
)T"),
     R"T(net.mir:3:46: error: 'in_strategy' of 'a' cuts dimension 1 of operand 0 into 2 pieces, the sharding into 4
    3 |   param %w: f32[32, 16] = Zeros() {sharding: (model, None)}
      |                                              ^
net.mir:4:8: note: the operator is here
    4 |   %a = MatMul(%x, %w) {in_strategy: ((2, 2), (2, 1))}
      |        ^~~~~~
help: leave one of them away
)T"},
    {"InputOfTheNetwork", "cell C(%x) { return %x }\n" + onMesh("  %a = C(%x) {sharding: (data, None)}\n  return out: %a\n"),
     R"T(net.mir:4:25: error: this value is an input of the network, which the dataset cuts
    4 |   %a = C(%x) {sharding: (data, None)}
      |                         ^
help: write dataset_strategy in the context block
)T"},
    {"CellResultThatDiffers", "cell C(%x) {\n  %y = ReLU(%x) {sharding: (model, None)}\n  return %y\n}\n" +
                                  onMesh("  %a = C(%x) {sharding: (data, None)}\n  return out: %a\n"),
     R"T(net.mir:7:25: error: this sharding differs from the one that the value already has
    7 |   %a = C(%x) {sharding: (data, None)}
      |                         ^
net.mir:2:28: note: first given here
    2 |   %y = ReLU(%x) {sharding: (model, None)}
      |                            ^
)T"},
    {"OtherAttributeOfACell", "cell C(%x) { %y = ReLU(%x) return %y }\n" +
                                  onMesh("  %a = C(%x) {sharing: (data, None)}\n  return out: %a\n"),
     R"T(net.mir:4:15: error: unknown attribute 'sharing' of a cell's result
    4 |   %a = C(%x) {sharing: (data, None)}
      |               ^~~~~~~
help: did you mean 'sharding'?
)T"},
    {"StrategyOfACell", "cell C(%x) { %y = ReLU(%x) return %y }\n" +
                            onMesh("  %a = C(%x) {in_strategy: ((2, 1))}\n  return out: %a\n"),
     R"T(net.mir:4:15: error: unknown attribute 'in_strategy' of a cell's result
    4 |   %a = C(%x) {in_strategy: ((2, 1))}
      |               ^~~~~~~~~~~
help: the operators in a cell have strategies: --strategy-save FILE writes them by name, --strategy-load FILE reads them
)T"},
    {"AxisOfAnotherMesh", "mesh flat (data: 8)\n" + onMesh("  return out: %x\n"),
     R"T(net.mir:2:7: error: axis 'data' is an axis of another mesh already
    2 | mesh (data: 2, model: 4)
      |       ^~~~
net.mir:1:12: note: it is given here
    1 | mesh flat (data: 8)
      |            ^~~~
)T"},
    {"SecondMeshWithoutName", "mesh (a: 8)\n" + onMesh("  return out: %x\n"),
     R"T(net.mir:2:1: error: a second mesh needs a name, such as 'mesh inner (x: 2)'
    2 | mesh (data: 2, model: 4)
      | ^~~~
net.mir:1:1: note: the first one is here
    1 | mesh (a: 8)
      | ^~~~
)T"},
    {"MeshTwice", "mesh m (a: 8)\nmesh m (b: 8)\n" + networkOf("  return out: %x\n"),
     R"T(net.mir:2:1: error: mesh 'm' is defined twice
    2 | mesh m (b: 8)
      | ^~~~
net.mir:1:1: note: the first one is here
    1 | mesh m (a: 8)
      | ^~~~
)T"},
};

class ShardingText : public ErrorText {};
TEST_P(ShardingText, IsExact) { check(); }
INSTANTIATE_TEST_SUITE_P(Sharding, ShardingText, testing::ValuesIn(mistakes), mistakeName);

} // namespace
