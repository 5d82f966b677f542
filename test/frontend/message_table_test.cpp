// The first lines of messages that have no row elsewhere: one mistake, one error, at its place.
#include "ErrorText.h"

using namespace msc::test;

namespace {

const std::vector<Mistake> mistakes = {
    {"AxisOfSizeZero", R"T(mesh (data: 0)
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:13: error: axis 'data' cannot have size 0)T"},
    {"InitMissing", R"T(#IR entry : @g
%para1_w : <Ref[Tensor[Float32]], (2), ref_key=:w>
subgraph @g(%para1_w) {
  Return(%para1_w)
}
parameters {"w": {requires_grad: true}}
)T",
     R"T(net.mir:6:13: error: parameter 'w' has no 'init')T"},
    {"ItemOfNoValue", R"T(#IR entry : @g
%para1_x : <Tensor[Float32], (2)>
subgraph @g(%para1_x) {
  %0 = Load(3, U)
  Return(%para1_x)
}
)T",
     R"T(net.mir:4:13: error: expected a value such as %x)T"},
    {"AlikeOfNoNumbers", R"T(#IR entry : @g
%para1_x : <Tensor[Float32], (2)>
subgraph @g(%para1_x) {
  %0 = ReLU(%para1_x) cnode_attrs: {alike: first}
  Return(%0)
}
)T",
     R"T(net.mir:4:44: error: 'alike' expects a tuple of whole numbers, found 'first')T"},
    {"ParametersMisspelt", R"T(#IR entry : @g
#attrs :
stage : step_parallel_begin
%para1_w : <Ref[Tensor[Float32]], (2), ref_key=:w>
subgraph @g(%para1_w) {
  Return(%para1_w)
}
parameterz {"w": {init: Zeros()}}
)T",
     R"T(net.mir:8:1: error: unknown block 'parameterz')T"},
    {"EntryMissing", R"T(#IR entry : @g
%para1_x : <Tensor[Float32], (2)>
)T",
     R"T(net.mir:1:1: error: the dump names the graph 'g', but does not hold it)T"},
    {"TypeOfNoTensor", R"T(#IR entry : @g
%para1_x : <Tuple[Int64]>
subgraph @g(%para1_x) {
  Return(%para1_x)
}
)T",
     R"T(net.mir:2:12: error: expected a tensor type, found '<Tuple[Int64]>')T"},
    {"InitializerOfAWord", R"T(network n(%x: f32[16, 32]) {
  param %w: f32[2] = Normal(small)
  return out: %x
}
)T",
     R"T(net.mir:2:29: error: 'Normal' expects a number, found 'small')T"},
    {"TooManyArgumentsOfACell", R"T(cell C(%x) { return %x }
network n(%x: f32[16, 32]) {
  %y = C(%x, 3)
  return out: %x
}
)T",
     R"T(net.mir:3:14: error: 'C' takes 1 argument, but more are given)T"},
    {"NumberForAValue", R"T(cell C(%x) { return %x }
network n(%x: f32[16, 32]) {
  %y = C(3)
  return out: %x
}
)T",
     R"T(net.mir:3:10: error: 'x' of 'C' expects a value such as %x)T"},
    {"InstanceNameOfACell", R"T(cell C(%x) { return %x }
network n(%x: f32[16, 32]) {
  %y = C(%x) @ "a b"
  return out: %x
}
)T",
     R"T(net.mir:3:16: error: the instance name 'a b' of a cell may hold letters, digits, '_' and dots between them)T"},
    {"TooManyRounds", R"T(network n(%x: f32[16, 32]) {
  %y = repeat i in 0..1000000 with %h = %x { yield %h }
  return out: %x
}
)T",
     R"T(net.mir:2:8: error: repeat has more than 100000 rounds)T"},
    {"TupleOfNoValues", R"T(network n(%x: f32[16, 32]) {
  %y = Add((%x, 3))
  return out: %x
}
)T",
     R"T(net.mir:2:17: error: expected a value such as %x)T"},
    {"NoValueAmongOperands", R"T(network n(%x: f32[16, 32]) {
  %y = Add(1, 2)
  return out: %x
}
)T",
     R"T(net.mir:2:8: error: 'Add' needs at least one value among its operands)T"},
    {"NumberTooLong", R"T(const a = 99999999999999999999
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:11: error: the number 99999999999999999999 does not fit into 64 bits)T"},
    {"NumberTooLarge", R"T(const a = 1e999
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:11: error: the number 1e999 is too large)T"},
    {"GraphAsAValue", R"T(const a = @g
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:11: error: a graph's name cannot stand here)T"},
    {"NameInATuple", R"T(const a = (b: 3)
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:12: error: an element of a tuple has no name, found 'b')T"},
    {"BlockFieldWithoutName", R"T(const a = f(1)
train {optimizer: SGD(0.1), minimize: out, a: {b: 1, b: 2}}
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:2:54: error: 'b' is given twice)T"},
    {"RootOfNothing", R"T(const a = sqrt()
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:11: error: expected sqrt(x))T"},
    {"RootOfANegativeNumber", R"T(const a = sqrt(-1)
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:16: error: the root of -1.0 is not a number)T"},
    {"FailWithoutText", R"T(const a = fail(3)
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:11: error: expected fail("what is wrong"))T"},
    {"DimWithoutIndex", R"T(network n(%x: f32[16, 32]) {
  const a = dim(%x)
  return out: %x
}
)T",
     R"T(net.mir:2:13: error: expected dim(%x, k))T"},
    {"RankOfANumber", R"T(network n(%x: f32[16, 32]) {
  const a = rank(3)
  return out: %x
}
)T",
     R"T(net.mir:2:13: error: expected rank(%x))T"},
    {"StringInASum", R"T(const a = 1 + "b"
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:15: error: expected a number, found 'b')T"},
    {"DimensionOfAString", R"T(network n(%x: f32["a"]) { return out: %x }
)T",
     R"T(net.mir:1:19: error: dimension 0 has to be a whole number, found 'a')T"},
    {"SumTooLong", R"T(const a = 9223372036854775807 + 1
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:31: error: the result of '+' does not fit into 64 bits)T"},
    {"QuotientTooLong", R"T(const a = (-9223372036854775807 - 1) / (-1)
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:38: error: the result of '/' does not fit into 64 bits)T"},
    {"ProductNotFinite", R"T(const a = 1e300 * 1e300
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:17: error: the result of '*' is not finite)T"},
    {"DebugNameOpen", R"T(network n(%x: f32[16, 32]) {
  %y(h = ReLU(%x)
  return out: %x
}
)T",
     R"T(net.mir:2:5: error: this '(' behind a value opens a debug name that does not end on this line)T"},
    {"OuterOpen", R"T(network n(%x: f32[16, 32]) {
  %y = ReLU($(@g:%x
  return out: %x
}
)T",
     R"T(net.mir:2:13: error: '$(' without ')' on the same line)T"},
    {"NoItem", R"T(= 3
)T",
     R"T(net.mir:1:1: error: expected a network, a cell, a constant or a block such as 'train {...}', found '=')T"},
    {"ImportWithoutPath", R"T(import nn
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:8: error: expected the path of a file in quotes, found 'nn')T"},
    {"FormalIsANumber", R"T(cell C(3) { return %x }
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:8: error: expected a formal such as '%x' or 'channels: int', found '3')T"},
    {"FormalWithoutKind", R"T(cell C(n) { return %x }
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:9: error: expected ':' and int, float, bool or string, found ')')T"},
    {"CellWithoutName", R"T(cell (%x) { return %x }
network n(%x: f32[16, 32]) {
  return out: %x
}
)T",
     R"T(net.mir:1:6: error: expected the name of the cell, found '(')T"},
    {"DumpParameterWithoutType", R"T(#IR entry : @g
%para1_x
)T",
     R"T(net.mir:3:1: error: expected ':' and the type of a dump's parameter before the end of the file)T"},
    {"DumpParameterWithWrongMark", R"T(#IR entry : @g
%para1_x : <Tensor[Float32], (2)> : default
)T",
     R"T(net.mir:2:37: error: expected 'has_default', found 'default')T"},
    {"SubgraphWithoutName", R"T(subgraph g() { }
)T",
     R"T(net.mir:1:10: error: expected '@' and the name of the graph, found 'g')T"},
    {"ParentWithoutWord", R"T(subgraph @g parent: [graph]() { }
)T",
     R"T(net.mir:1:22: error: expected 'subgraph', found 'graph')T"},
    {"ParameterWithoutName", R"T(network n(%x: f32[16, 32]) {
  param w: f32[2] = Zeros()
  return out: %x
}
)T",
     R"T(net.mir:2:9: error: expected the name of a parameter, such as %w, found 'w')T"},
    {"OldNameWithoutQuotes", R"T(network n(%x: f32[16, 32]) {
  param %w: f32[2] = Zeros() @ old
  return out: %x
}
)T",
     R"T(net.mir:2:32: error: expected the old name in quotes behind '@', found 'old')T"},
    {"SecondResultIsNoValue", R"T(network n(%x: f32[16, 32]) {
  %a, b = ReLU(%x)
  return out: %x
}
)T",
     R"T(net.mir:2:7: error: expected the name of a value, such as %y, found 'b')T"},
    {"SignatureWithoutTypes", R"T(network n(%x: f32[16, 32]) {
  %a = ReLU(%x) : 3
  return out: %x
}
)T",
     R"T(net.mir:2:19: error: expected '(' and types, found '3')T"},
    {"TypeIsANumber", R"T(network n(%x: f32[16, 32]) {
  param %w: 3 = Zeros()
  return out: %x
}
)T",
     R"T(net.mir:2:13: error: expected a type such as f32[16, 32], found '3')T"},
    {"TypeWithoutSizes", R"T(network n(%x: f32[16, 32]) {
  param %w: f32 = Zeros()
  return out: %x
}
)T",
     R"T(net.mir:2:17: error: expected '[' and the sizes of the dimensions, found '=')T"},
    {"RepeatWithoutCounter", R"T(network n(%x: f32[16, 32]) {
  %a = repeat 3 in 0..2 with %h = %x { yield %h }
  return out: %x
}
)T",
     R"T(net.mir:2:15: error: expected the name of the counter, found '3')T"},
    {"RepeatCarriesAWord", R"T(network n(%x: f32[16, 32]) {
  %a = repeat i in 0..2 with h = %x { yield %h }
  return out: %x
}
)T",
     R"T(net.mir:2:30: error: expected a value such as %h, found 'h')T"},
    {"RepeatStartsFromAWord", R"T(network n(%x: f32[16, 32]) {
  %a = repeat i in 0..2 with %h = x { yield %h }
  return out: %x
}
)T",
     R"T(net.mir:2:35: error: expected a value such as %h0, found 'x')T"},
    {"ShardingOfTooManyEntries", R"T(mesh (data: 2)
network n(%x: f32[16, 32]) {
  %a = ReLU(%x) {sharding: (data, None, None)}
  return out: %x
}
)T",
     R"T(net.mir:3:28: error: 'sharding' has 3 entries, but the tensor, (16, 32) Float32, has 2 dimensions)T"},
    {"ArgumentWithoutName", R"T(network n(%x: f32[16, 32]) {
  param %w: f32[2] = Uniform(1, 2)
  return out: %x
}
)T",
     R"T(net.mir:2:33: error: 'Uniform' takes 1 number, but 2 are given)T"},
};

class MessageTable : public testing::TestWithParam<Mistake> {};

TEST_P(MessageTable, IsExact) {
  Reading reading(GetParam().text, {}, "net.mir", /*withConfig=*/false);
  EXPECT_EQ(reading.diagnostics->errors(), 1u) << reading.said;
  EXPECT_EQ(reading.said.substr(0, reading.said.find('\n')), GetParam().said);
  expectInCatalogue(reading.said);
}

INSTANTIATE_TEST_SUITE_P(Frontend, MessageTable, testing::ValuesIn(mistakes), mistakeName);

/// Changes that a limit on memory asks for stand one behind the other, and each is translated.
TEST(MessageTable, TranslatesEveryChange) {
  auto found = msc::messages::find("write {recompute: true} behind 'h.{i}' (net.mir:29); and write amp_level: O2, amp_dtype: bf16 in the train "
                                   "block; and pass -D batch=1 and write accumulate_steps: 8 in the train block; and pass --machine h100-32 "
                                   "--devices 32: a rank then needs 1 MiB, 2 MiB less, and a batch takes 3.0 us, 4.0 us more than without the limit");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->chinese, "在 'h.{i}' (net.mir:29) 后写 {recompute: true}；并且在 train 块中写 amp_level: O2, amp_dtype: bf16；并且传入 -D batch=1，并在 train "
                            "块中写 accumulate_steps: 8；并且传入 --machine h100-32 --devices 32：此时每个 rank 需要 1 MiB，减少 2 MiB，每个批次需 3.0 us，比无限制时多 4.0 us");
}

} // namespace
