// Exact texts of messages about the form of a text: what is wrong, where, and the repair.
#include "ErrorText.h"

using namespace msc::test;

namespace {

const std::vector<Mistake> mistakes = {
    {"NoCommaBetweenEntries", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l
}
train {
  optimizer: SGD(learning_rate: 0.1)
  minimize: loss
}
)T",
     R"T(net.mir:7:3: error: expected '}', found 'minimize'
    7 |   minimize: loss
      |   ^~~~~~~~
net.mir:5:7: note: to close this '{'
    5 | train {
      |       ^
help: commas separate entries: write ',' in front of minimize
)T"},
    {"NoCommaBetweenArguments", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l
}
train {optimizer: Momentum(learning_rate: 0.1 momentum: 0.9), minimize: loss}
)T",
     R"T(net.mir:5:47: error: expected ')', found 'momentum'
    5 | train {optimizer: Momentum(learning_rate: 0.1 momentum: 0.9), minimize: loss}
      |                                               ^~~~~~~~
net.mir:5:27: note: to close this '('
    5 | train {optimizer: Momentum(learning_rate: 0.1 momentum: 0.9), minimize: loss}
      |                           ^
help: commas separate entries: write ',' in front of momentum
)T"},
    {"NoParenthesesAroundTuples", networkOf(R"T(  %a = MatMul(%x, %label) {transpose_a: true, in_strategy: (2, 1), (2, 1)}
  return out: %a
)T"),
     R"T(net.mir:2:68: error: expected a key, found '('
    2 |   %a = MatMul(%x, %label) {transpose_a: true, in_strategy: (2, 1), (2, 1)}
      |                                                                    ^
help: several tuples take parentheses of their own: write in_strategy: ((2, 1), (2, 1))
)T"},
    {"NoColonBehindAKey", networkOf(R"T(  %a = MatMul(%x, %label) {transpose_a true, transpose_b: false}
  return out: %a
)T"),
     R"T(net.mir:2:44: error: expected ':' behind a key, found ','
    2 |   %a = MatMul(%x, %label) {transpose_a true, transpose_b: false}
      |                                            ^
help: write transpose_a: true
)T"},
    {"ChoiceWithoutResult", networkOf(R"T(  if true {
    %e = ReLU(%x)
  }
  return out: %x
)T"),
     R"T(net.mir:2:3: error: expected a statement, found 'if'
    2 |   if true {
      |   ^~
help: what is chosen gets a name: write %y = if ... { ... yield %a } else { ... yield %b }
)T"},
    {"InputWithoutPercent", "network n(x: f32[8, 4]) {\n  return out: %x\n}\n",
     R"T(net.mir:1:14: error: expected int, float, bool or string, found 'f32'
    1 | network n(x: f32[8, 4]) {
      |              ^~~
help: names of tensors begin with '%': write %x
)T"},
    {"ResultWithoutPercent", networkOf(R"T(  a = ReLU(%x)
  return out: %a
)T"),
     R"T(net.mir:2:3: error: expected a statement, found 'a'
    2 |   a = ReLU(%x)
      |   ^
help: names of values begin with '%': write %a
)T"},
    {"OperandWithoutPercent", networkOf(R"T(  %a = ReLU(x)
  return out: %a
)T"),
     R"T(net.mir:2:13: error: 'ReLU' does not take 'x' without a name
    2 |   %a = ReLU(x)
      |             ^
help: did you mean '%x'?
)T"},
    {"ReturnWithoutPercent", networkOf(R"T(  %a = ReLU(%x)
  return out: a
)T"),
     R"T(net.mir:3:15: error: expected a value such as %y, found 'a'
    3 |   return out: a
      |               ^
help: names of values begin with '%': write %a
)T"},
    {"ArgumentWithEqualSign", networkOf(R"T(  param %w: f32[32, 16] = Normal(sigma=0.1)
  return out: %w
)T"),
     R"T(net.mir:2:39: error: expected ',', found '='
    2 |   param %w: f32[32, 16] = Normal(sigma=0.1)
      |                                       ^
help: names of arguments end in a colon: write sigma: ...
)T"},
    {"BodyWithoutEnd", "network n(%x: f32[8, 4]) {\n  %a = ReLU(%x)\n  return out: %a\ntrain {minimize: out}\n",
     R"T(net.mir:4:1: error: expected '}', found 'train'
    4 | train {minimize: out}
      | ^~~~~
net.mir:1:26: note: to close this '{'
    1 | network n(%x: f32[8, 4]) {
      |                          ^
)T"},
    {"NestedCall", networkOf(R"T(  %y = Add(ReLU(%x), %x)
  return out: %x
)T"),
     R"T(net.mir:2:12: error: 'Add' does not take 'ReLU(...)' without a name
    2 |   %y = Add(ReLU(%x), %x)
      |            ^~~~
help: calls do not nest: write %y = ReLU(...) and pass %y
)T"},
    {"NestedCallInTheOnlyPlace", networkOf(R"T(  %y = ReduceMean(ReLU(%x))
  return out: %y
)T"),
     R"T(net.mir:2:19: error: 'axis' of 'ReduceMean' expects a tuple of whole numbers, found 'ReLU(...)'
    2 |   %y = ReduceMean(ReLU(%x))
      |                   ^~~~
help: calls do not nest: write %y = ReLU(...) and pass %y
)T"},
    {"SignBetweenTensors", networkOf(R"T(  %y = %x + %x
  return out: %x
)T"),
     R"T(net.mir:2:8: error: expected the name of an operator or cell, found '%x'
    2 |   %y = %x + %x
      |        ^~
help: tensors have no signs, such as '+': write %y = Add(%x, %x)
)T"},
    {"SignBehindACall", networkOf(R"T(  %y = ReLU(%x) * %x
  return out: %x
)T"),
     R"T(net.mir:2:17: error: expected a statement, found '*'
    2 |   %y = ReLU(%x) * %x
      |                 ^
help: tensors have no signs, such as '*': write %y = Mul(...) of named values
)T"},
    {"PrefixOfAnImport", networkOf(R"T(  %y = nn.Linear(%x, 3)
  return out: %y
)T"),
     R"T(net.mir:2:8: error: expected the name of an operator or cell, found 'nn.Linear'
    2 |   %y = nn.Linear(%x, 3)
      |        ^~~~~~~~~
help: cells of an import have no prefix: write Linear(...)
)T"},
    {"NameBehindAttributes", networkOf(R"T(  %y = ReLU(%x) {in_strategy: ((1, 1))} @ "r"
  return out: %x
)T"),
     R"T(net.mir:2:41: error: expected a statement, found '@'
    2 |   %y = ReLU(%x) {in_strategy: ((1, 1))} @ "r"
      |                                         ^
help: the instance name stands in front of the attributes: Op(...) @ "name" {...}
)T"},
    {"InitializerWithoutArguments", networkOf(R"T(  param %w: f32[16, 32] = Zeros
  return out: %x
)T"),
     R"T(net.mir:2:27: error: expected an initializer such as Normal(0.01), found 'Zeros'
    2 |   param %w: f32[16, 32] = Zeros
      |                           ^~~~~
help: add its arguments, or (): write Zeros()
)T"},
    {"BlanksAroundMinus", networkOf(R"T(  param %w: f32[8-1] = Zeros()
  return out: %x
)T"),
     R"T(net.mir:2:17: error: '8-1' is one word, not a difference
    2 |   param %w: f32[8-1] = Zeros()
      |                 ^~~
help: put blanks around '-'
)T"},
    {"NoReturn", networkOf(R"T(  %a = ReLU(%x)
)T"),
     R"T(net.mir:3:1: error: this body does not end in 'return'
    3 | }
      | ^
)T"},
    {"BehindReturn", networkOf(R"T(  return out: %x
  %a = ReLU(%x)
)T"),
     R"T(net.mir:2:3: error: nothing may stand behind 'return'
    2 |   return out: %x
      |   ^~~~~~
)T"},
    {"YieldInNetwork", networkOf(R"T(  yield %x
)T"),
     R"T(net.mir:2:3: error: this body has to end in 'return'
    2 |   yield %x
      |   ^~~~~
)T"},
    {"OperatorWithoutResult", networkOf(R"T(  ReLU(%x)
  return out: %x
)T"),
     R"T(net.mir:2:3: error: expected a statement, found 'ReLU'
    2 |   ReLU(%x)
      |   ^~~~
help: give the result a name: %y = ReLU(...)
)T"},
    {"UnclosedParenthesis", networkOf(R"T(  %a = ReLU(%x
  return out: %a
)T"),
     R"T(net.mir:3:3: error: expected ')', found 'return'
    3 |   return out: %a
      |   ^~~~~~
net.mir:2:12: note: to close this '('
    2 |   %a = ReLU(%x
      |            ^
)T"},
    {"MissingEqual", networkOf(R"T(  %a ReLU(%x)
  return out: %a
)T"),
     R"T(net.mir:2:6: error: expected '=', found 'ReLU'
    2 |   %a ReLU(%x)
      |      ^~~~
)T"},
    {"BadCharacter", networkOf(R"T(  %a = ReLU(%x) ;
  return out: %a
)T"),
     R"T(net.mir:2:17: error: unexpected character ';'
    2 |   %a = ReLU(%x) ;
      |                 ^
help: statements need nothing between them: leave out ';'
)T"},
    {"OpenString", networkOf(R"T(  %a = ReLU(%x) @ "relu
  return out: %a
)T"),
     R"T(net.mir:2:19: error: this string does not end on its line
    2 |   %a = ReLU(%x) @ "relu
      |                   ^
)T"},
    {"BadNumber", networkOf(R"T(  param %w: f32[3q] = Zeros()
  return out: %x
)T"),
     R"T(net.mir:2:17: error: cannot read the number '3q'
    2 |   param %w: f32[3q] = Zeros()
      |                 ^
)T"},
    {"IfWithoutElse", networkOf(R"T(  %a = if true { yield %x }
  return out: %a
)T"),
     R"T(net.mir:3:3: error: expected 'else', since both sides give a value, found 'return'
    3 |   return out: %a
      |   ^~~~~~
)T"},
    {"NoNetwork", R"T(const a = 3
)T",
     R"T(net.mir: error: the file holds no network
)T"},
    {"SecondNetwork", R"T(network a(%x: f32[2]) { return out: %x }
network b(%x: f32[2]) { return out: %x }
)T",
     R"T(net.mir:2:9: error: a file holds one network, found a second one, 'b'
    2 | network b(%x: f32[2]) { return out: %x }
      |         ^
net.mir:1:9: note: the first one is 'a'
    1 | network a(%x: f32[2]) { return out: %x }
      |         ^
)T"},
    {"InputWithoutType", R"T(network a(%x) { return out: %x }
)T",
     R"T(net.mir:1:11: error: an input of a network needs a type, such as '%x: f32[16, 32]'
    1 | network a(%x) { return out: %x }
      |           ^~
)T"},
    {"UnfinishedNetwork", R"T(network n(%x: f32[2]) {
  %a = ReLU(%x)
)T",
     R"T(net.mir:3:1: error: expected '}' before the end of the file
    3 | 
      | ^
net.mir:1:23: note: to close this '{'
    1 | network n(%x: f32[2]) {
      |                       ^
)T"},
    {"FunctionInABody", networkOf(R"T(  const half = ceil(7 / 2)
  %y = Mul(%x, half)
  return out: %y
)T"),
     R"T(net.mir:2:16: error: unknown function 'ceil'
    2 |   const half = ceil(7 / 2)
      |                ^~~~
help: did you mean 'fail'?
)T"},
    {"RoundInANameOfAParameter", networkOf(R"T(  %y = repeat i in 0..2 with %t = %x {
    param %w{i}: f32[8, 4] = Normal()
    %m = Mul(%t, %w)
    yield %m
  }
  return out: %y
)T"),
     R"T(net.mir:3:13: error: expected ':' and a type, found '{'
    3 |     param %w{i}: f32[8, 4] = Normal()
      |             ^
help: names of values take no braces: in a repeat every round has a %w of its own
)T"},
    {"EmptyImport", R"T(import ""
network n(%x: f32[2]) { return out: %x }
)T",
     R"T(net.mir:1:8: error: this import names no file
    1 | import ""
      |        ^~
)T"},
    {"EmptyInstanceOfACell", R"T(cell C(%x) { return %x }
network n(%x: f32[2]) {
  %y = C(%x) @ ""
  return out: %y
}
)T",
     R"T(net.mir:3:16: error: the instance name '' of a cell may hold letters, digits, '_' and dots between them
    3 |   %y = C(%x) @ ""
      |                ^~
)T"},
};

INSTANTIATE_TEST_SUITE_P(SyntaxErrorText, ErrorText, testing::ValuesIn(mistakes), mistakeName);

} // namespace
