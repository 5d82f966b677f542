// Exact texts of messages about networks: what is wrong, where, and the repair.
#include "ErrorText.h"

using namespace msc::test;

namespace {

const std::vector<Mistake> mistakes = {
    {"UnknownOperator", networkOf(R"T(  %a = RleU(%x)
  return out: %a
)T"),
     R"T(net.mir:2:8: error: unknown operator 'RleU'
    2 |   %a = RleU(%x)
      |        ^~~~
help: did you mean 'ReLU'?
)T"},
    {"AxisTwice", "mesh (data: 2, data: 2)\n" + networkOf("  return out: %x\n"),
     R"T(net.mir:1:16: error: axis 'data' is given twice
    1 | mesh (data: 2, data: 2)
      |                ^~~~
)T"},
    {"NothingIsSaidBehindABadMesh", R"T(mesh (data: 2, data: 2)
network n(%x: f32[4, 2]) {
  %y = ReLU(%x) {sharding: (data, model)}
  return out: %y
}
)T",
     R"T(net.mir:1:16: error: axis 'data' is given twice
    1 | mesh (data: 2, data: 2)
      |                ^~~~
)T"},
    {"MeshOfHalfADevice", R"T(mesh (data: 2.5)
network n(%x: f32[4, 2]) {
  %y = ReLU(%x) {sharding: (data, None)}
  return out: %y
}
)T",
     R"T(net.mir:1:13: error: the size of axis 'data' has to be a whole number, found '2.5'
    1 | mesh (data: 2.5)
      |             ^~~
)T"},
    {"MeshWithoutDevices", R"T(mesh (data: devices / 4, model: 4)
network n(%x: f32[4, 2]) {
  %y = ReLU(%x) {sharding: (data, None)}
  return out: %y
}
)T",
     R"T(net.mir:1:13: error: axis 'data' cannot have size 0
    1 | mesh (data: devices / 4, model: 4)
      |             ^~~~~~~
help: pass --devices 4: without it 'devices' is 1
)T"},
    {"MeshWithTooFewDevices", R"T(mesh (data: devices / 4, model: 4)
network n(%x: f32[4, 2]) {
  %y = ReLU(%x) {sharding: (data, None)}
  return out: %y
}
context {device_num: 3}
)T",
     R"T(net.mir:1:13: error: axis 'data' cannot have size 0
    1 | mesh (data: devices / 4, model: 4)
      |             ^~~~~~~
help: write device_num: 4
)T"},
    {"FarFromEveryOperator", networkOf(R"T(  %a = Zzyzx(%x)
  return out: %a
)T"),
     R"T(net.mir:2:8: error: unknown operator 'Zzyzx'
    2 |   %a = Zzyzx(%x)
      |        ^~~~~
help: 'msc ops' lists operators and layers
)T"},
    {"OperatorOfPyTorch", networkOf(R"T(  %a = Linear(%x)
  return out: %a
)T"),
     R"T(net.mir:2:8: error: unknown operator 'Linear'
    2 |   %a = Linear(%x)
      |        ^~~~~~
help: here it is MatMul + BiasAdd, or cell Linear of import "nn.mir"; see 'msc ops Linear'
)T"},
    {"OperatorWithoutEquivalent", networkOf(R"T(  %a = Conv3d(%x)
  return out: %a
)T"),
     R"T(net.mir:2:8: error: unknown operator 'Conv3d'
    2 |   %a = Conv3d(%x)
      |        ^~~~~~
help: this version has no equivalent; 'msc ops' lists operators and layers
)T"},
    {"TooManyOperands", networkOf(R"T(  %a = ReLU(%x, %label)
  return out: %a
)T"),
     R"T(net.mir:2:8: error: 'ReLU' takes 1 operand (x), but 2 are given
    2 |   %a = ReLU(%x, %label)
      |        ^~~~
help: write ReLU(%x)
)T"},
    {"TooFewOperands", networkOf(R"T(  %a = MatMul(%x)
  return out: %a
)T"),
     R"T(net.mir:2:8: error: 'MatMul' takes 2 operands (x1, x2), but 1 is given
    2 |   %a = MatMul(%x)
      |        ^~~~~~
help: write MatMul(%x1, %x2)
)T"},
    {"Redefinition", networkOf(R"T(  %a = ReLU(%x)
  %a = ReLU(%x)
  return out: %a
)T"),
     R"T(net.mir:3:3: error: redefinition of '%a'
    3 |   %a = ReLU(%x)
      |   ^~
net.mir:2:3: note: first defined here
    2 |   %a = ReLU(%x)
      |   ^~
)T"},
    {"FractionsOfWholeNumbers", networkOf(R"T(  param %w: i32[16, 32] = Normal(0.1)
  return out: %x
)T"),
     R"T(net.mir:2:27: error: 'Normal' draws fractions, but parameter 'w' holds whole numbers
    2 |   param %w: i32[16, 32] = Normal(0.1)
      |                           ^~~~~~
help: write Zeros(), Ones() or Constant(3), or make it a parameter of floats
)T"},
    {"NegativePieces", networkOf(R"T(  %y = ReLU(%x) {in_strategy: ((2, -1))}
  return out: %x
)T"),
     R"T(net.mir:2:31: error: 'in_strategy' cuts dimension 1 of operand 0 into -1 pieces
    2 |   %y = ReLU(%x) {in_strategy: ((2, -1))}
      |                               ^
help: every number of pieces is 1 or more; 1 leaves the dimension whole
)T"},
    {"UndefinedValue", networkOf(R"T(  %hidden = ReLU(%x)
  %b = ReLU(%hiden)
  %c = ReLU(%b)
  return out: %c
)T"),
     R"T(net.mir:3:13: error: undefined value '%hiden'
    3 |   %b = ReLU(%hiden)
      |             ^~~~~~
help: did you mean '%hidden'?
)T"},
    {"UnknownAttribute", networkOf(R"T(  param %w: f32[32, 16] = Zeros()
  %a = MatMul(%x, %w, transpose_q: true)
  return out: %a
)T"),
     R"T(net.mir:3:23: error: unknown attribute 'transpose_q' of 'MatMul'
    3 |   %a = MatMul(%x, %w, transpose_q: true)
      |                       ^~~~~~~~~~~
help: did you mean 'transpose_a'?
)T"},
    {"AttributeOfWrongKind", networkOf(R"T(  param %w: f32[32, 16] = Zeros()
  %a = MatMul(%x, %w) {transpose_a: 3}
  return out: %a
)T"),
     R"T(net.mir:3:37: error: 'transpose_a' of 'MatMul' expects true or false, found '3'
    3 |   %a = MatMul(%x, %w) {transpose_a: 3}
      |                                     ^
)T"},
    {"AttributeTwice", networkOf(R"T(  param %w: f32[32, 16] = Zeros()
  %a = MatMul(%x, %w, transpose_a: false) {transpose_a: false}
  return out: %a
)T"),
     R"T(net.mir:3:44: error: 'transpose_a' is given twice
    3 |   %a = MatMul(%x, %w, transpose_a: false) {transpose_a: false}
      |                                            ^~~~~~~~~~~
net.mir:3:23: note: first given here
    3 |   %a = MatMul(%x, %w, transpose_a: false) {transpose_a: false}
      |                       ^~~~~~~~~~~
)T"},
    {"UnknownWordOfAttribute", networkOf(R"T(  %a = MSELoss(%label, %label, reduction: men)
  return out: %a
)T"),
     R"T(net.mir:2:43: error: unknown reduction 'men' of 'MSELoss': expected mean, sum, none
    2 |   %a = MSELoss(%label, %label, reduction: men)
      |                                           ^~~
help: did you mean 'mean'?
)T"},
    {"TooManyPositional", networkOf(R"T(  %a = ReLU(%x, 3)
  return out: %a
)T"),
     R"T(net.mir:2:17: error: 'ReLU' does not take '3' without a name
    2 |   %a = ReLU(%x, 3)
      |                 ^
)T"},
    {"ResultCount", networkOf(R"T(  %a, %b = ReLU(%x)
  return out: %a
)T"),
     R"T(net.mir:2:12: error: 'ReLU' gives 1 result, but 2 names stand on the left
    2 |   %a, %b = ReLU(%x)
      |            ^~~~
)T"},
    {"FewerNamesThanResults", networkOf(R"T(  %n = TopK(%x, 2)
  return out: %n
)T"),
     R"T(net.mir:2:8: error: 'TopK' gives 2 results, but 1 name stands on the left
    2 |   %n = TopK(%x, 2)
      |        ^~~~
help: write %n, %indices = TopK(...)
)T"},
    {"GammaOfOtherAxes", R"T(network n(%x: f32[4, 12, 32], %g: f32[32]) {
  %n, %m, %v = LayerNorm(%x, %g, %g)
  return out: %n
}
)T",
     R"T(net.mir:2:16: error: 'LayerNorm' of 'x' (4x12x32) takes a 'gamma' of 12x32, but 'g' (32) is given
    2 |   %n, %m, %v = LayerNorm(%x, %g, %g)
      |                ^~~~~~~~~
net.mir:1:31: note: 'g' declared here
    1 | network n(%x: f32[4, 12, 32], %g: f32[32]) {
      |                               ^~
help: begin_norm_axis: -1, begin_params_axis: -1 fit a 'gamma' of 32
)T"},
    {"ShapesClash", networkOf(R"T(  param %w: f32[16, 16] = Zeros()
  %a = MatMul(%x, %w)
  return out: %a
)T"),
     R"T(net.mir:3:8: error: cannot multiply 'x' (16x32) by 'w' (16x16): columns of the left (32) and rows of the right (16) differ
    3 |   %a = MatMul(%x, %w)
      |        ^~~~~~
net.mir:2:9: note: 'w' declared here
    2 |   param %w: f32[16, 16] = Zeros()
      |         ^~
)T"},
    {"StrategyTupleCount", networkOf(R"T(  %a = ReLU(%x) {in_strategy: ((2, 4), (4, 1))}
  return out: %a
)T"),
     R"T(net.mir:2:31: error: 'in_strategy' ((2, 4), (4, 1)) has 2 tuples, but 'ReLU' has 1 operand
    2 |   %a = ReLU(%x) {in_strategy: ((2, 4), (4, 1))}
      |                               ^
help: write ((2, 4))
)T"},
    {"StrategyTupleMissing", networkOf(R"T(  param %w: f32[32, 16] = Zeros()
  %a = MatMul(%x, %w) {in_strategy: ((2, 4))}
  return out: %a
)T"),
     R"T(net.mir:3:37: error: 'in_strategy' ((2, 4)) has 1 tuple, but 'MatMul' has 2 operands
    3 |   %a = MatMul(%x, %w) {in_strategy: ((2, 4))}
      |                                     ^
help: write ((2, 4), (4, 1))
)T"},
    {"StrategyFlatOfTwo", networkOf(R"T(  param %w: f32[16, 32] = Zeros()
  %a = MatMul(%x, %w, transpose_b: true) {in_strategy: (2, 4)}
  return out: %a
)T"),
     R"T(net.mir:3:56: error: 'in_strategy' expects one tuple of pieces per operand, found '(2, 4)'
    3 |   %a = MatMul(%x, %w, transpose_b: true) {in_strategy: (2, 4)}
      |                                                        ^
help: write ((2, 4), (1, 4))
)T"},
    {"StrategyFlatOfResult", networkOf(R"T(  %a = ReLU(%x) {out_strategy: (2, 4)}
  return out: %a
)T"),
     R"T(net.mir:2:32: error: 'out_strategy' expects one tuple of pieces per result, found '(2, 4)'
    2 |   %a = ReLU(%x) {out_strategy: (2, 4)}
      |                                ^
help: write ((2, 4))
)T"},
    {"StrategyRank", networkOf(R"T(  %a = ReLU(%x) {in_strategy: ((2, 4, 1))}
  return out: %a
)T"),
     R"T(net.mir:2:31: error: tuple 0 of 'in_strategy' ((2, 4, 1)) has 3 numbers, but operand 0, (16, 32) Float32, has 2 dimensions
    2 |   %a = ReLU(%x) {in_strategy: ((2, 4, 1))}
      |                               ^
)T"},
    {"NumberOfAnotherType", "network n(%i: i32[4]) {\n  %a = Greater(%i, 0.5)\n  return out: %a\n}\n",
     R"T(net.mir:2:8: error: 'Greater' mixes the number 0.5 with a tensor of i32, which cannot hold it
    2 |   %a = Greater(%i, 0.5)
      |        ^~~~~~~
help: write a number that the type holds, or cast the tensor to another type with Cast
)T"},
    {"StrategyFlat", networkOf(R"T(  %a = ReLU(%x) {in_strategy: (2, 4)}
  return out: %a
)T"),
     R"T(net.mir:2:31: error: 'in_strategy' expects one tuple of pieces per operand, found '(2, 4)'
    2 |   %a = ReLU(%x) {in_strategy: (2, 4)}
      |                               ^
help: write ((2, 4))
)T"},
    {"StrategyZero", networkOf(R"T(  %a = ReLU(%x) {in_strategy: ((2, 0))}
  return out: %a
)T"),
     R"T(net.mir:2:31: error: 'in_strategy' cuts dimension 1 of operand 0 into 0 pieces
    2 |   %a = ReLU(%x) {in_strategy: ((2, 0))}
      |                               ^
help: every number of pieces is 1 or more; 1 leaves the dimension whole
)T"},
    {"StrategyFraction", networkOf(R"T(  %a = ReLU(%x) {in_strategy: ((2, 4.0))}
  return out: %a
)T"),
     R"T(net.mir:2:31: error: 'in_strategy' expects whole numbers of pieces, found '4.0' for dimension 1 of operand 0
    2 |   %a = ReLU(%x) {in_strategy: ((2, 4.0))}
      |                               ^
)T"},
    {"RecomputeOfOperator", networkOf(R"T(  %a = ReLU(%x) {recompute: 3}
  return out: %a
)T"),
     R"T(net.mir:2:29: error: 'recompute' has to be true or false, found '3'
    2 |   %a = ReLU(%x) {recompute: 3}
      |                             ^
)T"},
    {"NoInitializer", networkOf(R"T(  param %w: f32[32, 16]
  %a = MatMul(%x, %w)
  return out: %a
)T"),
     R"T(net.mir:2:9: error: parameter 'w' has no initial values
    2 |   param %w: f32[32, 16]
      |         ^~
help: write '= Normal(0.01)' or '= Zeros()' behind the type
)T"},
    {"UnknownInitializer", networkOf(R"T(  param %w: f32[32, 16] = Norml(0.1)
  %a = MatMul(%x, %w)
  return out: %a
)T"),
     R"T(net.mir:2:27: error: unknown initializer 'Norml'
    2 |   param %w: f32[32, 16] = Norml(0.1)
      |                           ^~~~~
help: did you mean 'Normal'?
)T"},
    {"ConstantWithoutValue", networkOf(R"T(  param %w: f32[32, 16] = Constant()
  %a = MatMul(%x, %w)
  return out: %a
)T"),
     R"T(net.mir:2:27: error: 'Constant' needs 'value'
    2 |   param %w: f32[32, 16] = Constant()
      |                           ^~~~~~~~
)T"},
    {"InitializerArgument", networkOf(R"T(  param %w: f32[32, 16] = Normal(0.1, median: 2)
  return out: %x
)T"),
     R"T(net.mir:2:39: error: 'Normal' has no argument 'median'
    2 |   param %w: f32[32, 16] = Normal(0.1, median: 2)
      |                                       ^~~~~~
)T"},
    {"InitializerWidth", networkOf(R"T(  param %w: f32[32, 16] = Normal(-1)
  return out: %x
)T"),
     R"T(net.mir:2:27: error: 'sigma' of 'Normal' is a width and not negative, found -1.0
    2 |   param %w: f32[32, 16] = Normal(-1)
      |                           ^~~~~~
)T"},
    {"UndefinedValueUsedTwice", networkOf(R"T(  %a = Add(%x, %nothing)
  %b = Mul(%nothing, %a)
  return out: %b
)T"),
     R"T(net.mir:2:16: error: undefined value '%nothing'
    2 |   %a = Add(%x, %nothing)
      |                ^~~~~~~~
)T"},
    {"MistakeInACellUsedTwice", R"T(cell Twice(%x) {
  %y = Add(%x, %x, deep: true)
  return %y
}
network n(%x: f32[4, 2]) {
  %a = Twice(%x) @ "first"
  %b = Twice(%a) @ "second"
  return out: %b
}
)T",
     R"T(net.mir:2:20: error: unknown attribute 'deep' of 'Add'
    2 |   %y = Add(%x, %x, deep: true)
      |                    ^~~~
help: expected one of in_strategy, out_strategy, recompute, sharding
)T"},
    {"UnknownElementType", networkOf(R"T(  param %w: f23[32, 16] = Zeros()
  return out: %x
)T"),
     R"T(net.mir:2:13: error: unknown element type 'f23'
    2 |   param %w: f23[32, 16] = Zeros()
      |             ^~~
help: did you mean 'f32'?
)T"},
    {"SizeZero", networkOf(R"T(  param %w: f32[32, 0] = Zeros()
  return out: %x
)T"),
     R"T(net.mir:2:21: error: dimension 1 cannot have size 0
    2 |   param %w: f32[32, 0] = Zeros()
      |                     ^
help: sizes begin at 1
)T"},
    {"SizeIsWord", networkOf(R"T(  param %w: f32[32, width] = Zeros()
  return out: %x
)T"),
     R"T(net.mir:2:21: error: unknown name 'width'
    2 |   param %w: f32[32, width] = Zeros()
      |                     ^~~~~
)T"},
    {"HugeTensor", networkOf(R"T(  param %w: f32[1000000, 1000000, 1000000] = Zeros()
  return out: %x
)T"),
     R"T(net.mir:2:13: error: this tensor has more than 2^48 elements
    2 |   param %w: f32[1000000, 1000000, 1000000] = Zeros()
      |             ^~~
help: write smaller sizes
)T"},
    {"DivisionByZero", networkOf(R"T(  const a = 1 / 0
  return out: %x
)T"),
     R"T(net.mir:2:15: error: division of 1 by 0
    2 |   const a = 1 / 0
      |               ^
)T"},
    {"DimensionDoesNotExist", networkOf(R"T(  const a = dim(%x, 2)
  return out: %x
)T"),
     R"T(net.mir:2:21: error: '%x' has 2 dimensions, dimension 2 does not exist
    2 |   const a = dim(%x, 2)
      |                     ^
)T"},
    {"ResultNamedTwice", networkOf(R"T(  return out: %x, out: %label
)T"),
     R"T(net.mir:2:19: error: result 'out' is named twice
    2 |   return out: %x, out: %label
      |                   ^~~
net.mir:2:10: note: first named here
    2 |   return out: %x, out: %label
      |          ^~~
)T"},
    {"ParameterTwice", networkOf(R"T(  param %w: f32[2] = Zeros()
  param %w: f32[2] = Zeros()
  return out: %x
)T"),
     R"T(net.mir:3:9: error: parameter 'w' is declared twice
    3 |   param %w: f32[2] = Zeros()
      |         ^~
net.mir:2:9: note: first declared here
    2 |   param %w: f32[2] = Zeros()
      |         ^~
)T"},
    {"UnknownNameInString", networkOf(R"T(  %a = ReLU(%x) @ "relu.{i}"
  return out: %a
)T"),
     R"T(net.mir:2:19: error: unknown name 'i' in a string
    2 |   %a = ReLU(%x) @ "relu.{i}"
      |                   ^~~~~~~~~~
help: write '\{' for a brace that stands for itself
)T"},
    {"DeclaredType", networkOf(R"T(  %a: f32[16, 33] = ReLU(%x)
  return out: %a
)T"),
     R"T(net.mir:2:7: error: '%a' is (16, 32) Float32, not (16, 33) Float32
    2 |   %a: f32[16, 33] = ReLU(%x)
      |       ^~~
help: leave out the type of '%a'
)T"},
    {"ConditionIsNumber", networkOf(R"T(  %a = if 3 { yield %x } else { yield %x }
  return out: %a
)T"),
     R"T(net.mir:2:11: error: the condition has to be true or false, found '3'
    2 |   %a = if 3 { yield %x } else { yield %x }
      |           ^
)T"},
    {"RepeatYieldCount", networkOf(R"T(  %a = repeat i in 0..2 with %h = %x { yield %h, %h }
  return out: %a
)T"),
     R"T(net.mir:2:8: error: repeat carries 1 value, but its body yields 2
    2 |   %a = repeat i in 0..2 with %h = %x { yield %h, %h }
      |        ^~~~~~
)T"},
    {"InputTwice", R"T(network a(%x: f32[2], %x: f32[2]) { return out: %x }
)T",
     R"T(net.mir:1:23: error: redefinition of '%x'
    1 | network a(%x: f32[2], %x: f32[2]) { return out: %x }
      |                       ^~
net.mir:1:11: note: first defined here
    1 | network a(%x: f32[2], %x: f32[2]) { return out: %x }
      |           ^~
)T"},
    {"ConstTwice", R"T(const a = 1
const a = 2
network n(%x: f32[2]) { return out: %x }
)T",
     R"T(net.mir:2:7: error: const 'a' is defined twice
    2 | const a = 2
      |       ^
)T"},
    {"DevicesIsBuiltIn", R"T(const devices = 1
network n(%x: f32[2]) { return out: %x }
)T",
     R"T(net.mir:1:7: error: 'devices' is the number of devices and cannot be redefined
    1 | const devices = 1
      |       ^~~~~~~
)T"},
    {"CellNeedsArgument", R"T(cell C(%x, size: int) { return %x }
network n(%x: f32[2]) {
  %y = C(%x)
  return out: %y
}
)T",
     R"T(net.mir:3:8: error: 'C' needs 'size'
    3 |   %y = C(%x)
      |        ^
net.mir:1:12: note: it is declared here
    1 | cell C(%x, size: int) { return %x }
      |            ^~~~
)T"},
    {"CellArgumentName", R"T(cell C(%x, size: int) { return %x }
network n(%x: f32[2]) {
  %y = C(%x, sise: 3)
  return out: %y
}
)T",
     R"T(net.mir:3:14: error: 'C' has no argument 'sise'
    3 |   %y = C(%x, sise: 3)
      |              ^~~~
net.mir:1:6: note: 'C' is defined here
    1 | cell C(%x, size: int) { return %x }
      |      ^
help: did you mean 'size'?
)T"},
    {"CellStrategy", R"T(cell C(%x, size: int) { return %x }
network n(%x: f32[2]) {
  %y = C(%x, 3, strategy: ((2)))
  return out: %y
}
)T",
     R"T(net.mir:3:17: error: 'C' has no argument 'strategy'
    3 |   %y = C(%x, 3, strategy: ((2)))
      |                 ^~~~~~~~
net.mir:1:6: note: 'C' is defined here
    1 | cell C(%x, size: int) { return %x }
      |      ^
help: the operators in a cell have strategies: --strategy-save FILE writes them by name, --strategy-load FILE reads them
)T"},
    {"CellArgumentKind", R"T(cell C(%x, size: int) { return %x }
network n(%x: f32[2]) {
  %y = C(%x, size: 0.5)
  return out: %y
}
)T",
     R"T(net.mir:3:20: error: 'size' of 'C' has to be of kind int, found '0.5'
    3 |   %y = C(%x, size: 0.5)
      |                    ^~~
net.mir:1:6: note: 'C' is defined here
    1 | cell C(%x, size: int) { return %x }
      |      ^
)T"},
    {"CellCallsItself", R"T(cell C(%x) {
  %y = C(%x)
  return %y
}
network n(%x: f32[2]) {
  %y = C(%x)
  return out: %y
}
)T",
     R"T(net.mir:2:8: error: cells and bodies nest more than 200 levels deep
    2 |   %y = C(%x)
      |        ^
net.mir:6:8: note: in this call of 'C'
    6 |   %y = C(%x)
      |        ^
help: a cell that calls itself ends where an 'if' or a repeat of no rounds does without the call
)T"},
    {"CellsCallThemselvesTwice", R"T(cell C(%x) {
  %y = C(%x)
  %z = C(%x)
  return %y
}
network n(%x: f32[2]) {
  %y = C(%x)
  return out: %y
}
)T",
     R"T(net.mir:2:8: error: cells and bodies nest more than 200 levels deep
    2 |   %y = C(%x)
      |        ^
net.mir:7:8: note: in this call of 'C'
    7 |   %y = C(%x)
      |        ^
help: a cell that calls itself ends where an 'if' or a repeat of no rounds does without the call
)T"},
    {"CellErrorIsTracedToItsCalls", R"T(cell Inner(%x) {
  %y = Reshape(%x, shape: (3))
  return %y
}
cell Outer(%x) {
  %y = Inner(%x)
  return %y
}
network n(%x: f32[2]) {
  %y = Outer(%x)
  return out: %y
}
)T",
     R"T(net.mir:2:8: error: cannot reshape 'x' (2) to 3: 2 elements do not fill 3
    2 |   %y = Reshape(%x, shape: (3))
      |        ^~~~~~~
net.mir:9:11: note: 'x' declared here
    9 | network n(%x: f32[2]) {
      |           ^~
net.mir:6:8: note: in this call of 'Inner'
    6 |   %y = Inner(%x)
      |        ^~~~~
net.mir:10:8: note: in this call of 'Outer'
   10 |   %y = Outer(%x)
      |        ^~~~~
)T"},
    {"RepeatBackwards", networkOf(R"T(  %y = repeat i in 3..1 with %t = %x { yield %t }
  return out: %y
)T"),
     R"T(net.mir:2:8: error: repeat ends at 1, before it begins at 3
    2 |   %y = repeat i in 3..1 with %t = %x { yield %t }
      |        ^~~~~~
help: write 1..3, the first round and the one behind the last
)T"},
    {"MissingImport", R"T(import "nowhere/nn.mir"
network n(%x: f32[2]) { return out: %x }
)T",
     R"T(net.mir:1:8: error: cannot read 'nowhere/nn.mir': No such file or directory
    1 | import "nowhere/nn.mir"
      |        ^~~~~~~~~~~~~~~~
)T"},
};

TEST_P(ErrorText, IsExact) { check(); }

INSTANTIATE_TEST_SUITE_P(NetworkErrorText, ErrorText, testing::ValuesIn(mistakes), mistakeName);

} // namespace
