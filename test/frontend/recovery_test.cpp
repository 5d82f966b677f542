// All mistakes of a file are found at once, and none is reported twice.
#include "Reading.h"

#include <gtest/gtest.h>

using namespace msc::test;

namespace {

/// The first line of every error, without the place of the file.
std::string errorsOf(const std::string &text) {
  Reading reading(text);
  EXPECT_FALSE(reading.module);
  std::string all;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(reading.said).split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line.consume_front("net.mir:") && line.contains(": error: "))
      all += line.str() + "\n";
  return all;
}

/// The repairs of all errors.
std::string helpsOf(const std::string &text) {
  Reading reading(text);
  std::string all;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(reading.said).split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line.consume_front("help: "))
      all += (all.empty() ? "" : "\n") + line.str();
  return all;
}

TEST(Recovery, GoesOnWithTheNextStatement) {
  EXPECT_EQ(errorsOf(networkOf(R"(  %a = MatMul(%x, %x
  %b = ReLU(%a) @ relu
  %c = RleU(%x)
  d = ReLU(%b)
  %e = ReLU(d)
  param %w f32[2] = Zeros()
  const k = 
  %f = Mul(%w, k)
  %g = ReLU(%nothing)
  return out: %e
)")),
            "3:3: error: expected ')', found '%b'\n"
            "3:19: error: expected the instance name in quotes behind '@', found 'relu'\n"
            "5:3: error: expected a statement, found 'd'\n"
            "7:12: error: expected ':' and a type, found 'f32'\n"
            "9:3: error: expected an expression, found '%f'\n"
            "4:8: error: unknown operator 'RleU'\n"
            "6:13: error: 'ReLU' does not take 'd' without a name\n"
            "10:13: error: undefined value '%nothing'\n");
}

TEST(Recovery, SkipsBodiesOfWhatItDoesNotUnderstand) {
  EXPECT_EQ(errorsOf(networkOf(R"(  %h = repeat i on 0..3 with %t = %x {
    %y = Wrong(%t)
    yield %y
  }
  %a = RleU(%h)
  return out: %a
)")),
            "2:17: error: expected 'in', found 'on'\n"
            "6:8: error: unknown operator 'RleU'\n");
}

TEST(Recovery, BehindAttributes) {
  EXPECT_EQ(errorsOf(networkOf(R"(  %a = MatMul(%x, %w) {in_strategy: (2, 1), (1, 2)}
  %b = ReLU(%a)
  %c = MatMul(%b, %w) {transpose_a false, transpose_b: false}
  %d = ReLU(%c) {in_strategy: ((2, 1)
  %g = RleU(%x)
  if true {
    %e = ReLU(%d)
  } else {
    %e = RleU(%d)
  }
  %f = RleU(%d)
  return out: %f
)")),
            "2:45: error: expected a key, found '('\n"
            "4:41: error: expected ':' behind a key, found ','\n"
            "6:3: error: expected ')', found '%g'\n"
            "7:3: error: expected a statement, found 'if'\n"
            "6:8: error: unknown operator 'RleU'\n"
            "12:8: error: unknown operator 'RleU'\n");
}

TEST(Recovery, InsideBodies) {
  EXPECT_EQ(errorsOf(R"(cell C(%x) {
  %a = ReLU(%x
  %y = Tanh(%a)
  return %y
}
network n(%x: f32[2]) {
  %h = repeat i in 0..2 with %t = %x {
    %a = C(%t
    yield %a
  }
  %b = RleU(%h)
  return out: %b
}
)"),
            "3:3: error: expected ')', found '%y'\n"
            "9:5: error: expected ')', found 'yield'\n"
            "11:8: error: unknown operator 'RleU'\n");
}

TEST(Recovery, GoesOnWithTheNextItem) {
  EXPECT_EQ(errorsOf(R"(const a =
mesh data: 2
cell C(%x {
  %y = ReLU(%x)
  return %y
}
network n(%x: f32[a]) {
  %y = C(%x)
  return out: %y
train {minimize: out
context {parallel_mode: data_parallel}
)"),
            "2:1: error: expected an expression, found 'mesh'\n"
            "2:10: error: expected '(', found ':'\n"
            "3:11: error: expected ')', found '{'\n"
            "10:1: error: expected '}', found 'train'\n"
            "11:1: error: expected '}', found 'context'\n");
}

TEST(Recovery, NamesOfALostItemAreNotMissed) {
  EXPECT_EQ(errorsOf(R"(const a = 1 +
cell C(%x, n: what) {
  return %x
}
import "lost.mir"
network n(%x: f32[a, b]) {
  %y = C(%x, n: 3)
  %z = FromTheFile(%y)
  %u = ReLU(%undefined)
  return out: %z
}
)"),
            "2:1: error: expected an expression, found 'cell'\n"
            "2:15: error: expected int, float, bool or string, found 'what'\n"
            "5:8: error: cannot read 'lost.mir': No such file or directory\n"
            "9:13: error: undefined value '%undefined'\n");
}

TEST(Recovery, CellsThatNothingCalls) {
  EXPECT_EQ(errorsOf(R"(cell A(%x, n: int) {
  %s = MatMull(%x, %nope)
  %t = ReLU(%x, foo: n, bar: 2)
  %u = Reshape(%t, shape: (n, dim(%x, 0) * m))
  %v = if n > 2 { %w = Add(%t) yield %w } else { const stop = fail("n is {n} of {k}") yield %t }
  const half = Dense(3)
  return %zz
}
network n(%x: f32[4, 2]) { return out: %x }
)"),
            "2:8: error: unknown operator 'MatMull'\n"
            "2:20: error: undefined value '%nope'\n"
            "3:17: error: unknown attribute 'foo' of 'ReLU'\n"
            "3:25: error: unknown attribute 'bar' of 'ReLU'\n"
            "4:44: error: unknown name 'm'\n"
            "5:24: error: 'Add' takes 2 operands (x, y), but 1 is given\n"
            "5:63: error: unknown name 'k' in a string\n"
            "6:16: error: unknown function 'Dense'\n"
            "7:10: error: undefined value '%zz'\n");
}

TEST(Recovery, BehindValuesThatNobodyKnows) {
  EXPECT_EQ(errorsOf(R"(cell Called(%x, n: int = dim(%x, 1)) {
  %a = First(%x)
  %b = Second(%a)
  return %b
}
network n(%x: f32[8, 4]) {
  %p = Third(%x)
  %q = Called(%p)
  %s = MatMul(%q, %nope)
  %r = repeat i in 0..2 with %y = %s {
    %z = Fourth(%p)
    %w = Add(%z, %y)
    yield %w
  }
  %a = ReLU(%r)
  %c = MatMul(%a, %undefined)
  %d, %e = Called(%nope, m: 3, k: 4)
  %f = Reshape(%x, shape: (5))
  %g = Add(%f, %d)
  return loss: %g, nope: %nope
}
train {optimizer: SGD(0.1), minimize: losss, epochs: 1}
)"),
            "2:8: error: unknown operator 'First'\n"
            "3:8: error: unknown operator 'Second'\n"
            "7:8: error: unknown operator 'Third'\n"
            "9:19: error: undefined value '%nope'\n"
            "11:10: error: unknown operator 'Fourth'\n"
            "16:19: error: undefined value '%undefined'\n"
            "17:26: error: 'Called' has no argument 'm'\n"
            "17:32: error: 'Called' has no argument 'k'\n"
            "17:12: error: cell 'Called' gives 1 result, but 2 names stand on the left\n"
            "22:39: error: 'losss' is no result of the network\n"
            "18:8: error: cannot reshape 'x' (8x4) to 5: 32 elements do not fill 5\n");
}

/// What a condition keeps from being calculated is no mistake; names in it are.
TEST(Recovery, BranchesThatAreNotTaken) {
  Reading reading(R"(const depth = 0
network n(%x: f32[4, 2]) {
  %y = if depth > 0 {
    const share = 4 / depth
    param %w: f32[depth, 4] = Normal(sqrt(depth - 1))
    %a = Reshape(%x, shape: (share, 3))
    yield %a
  } else { yield %x }
  return out: %y
}
)");
  EXPECT_EQ(reading.said, "");
  EXPECT_EQ(errorsOf(R"(const depth = 0
network n(%x: f32[4, 2]) {
  %y = if depth > 0 { %a = ReLU(%none) yield %a } else { yield %x }
  return out: %y
}
)"),
            "3:33: error: undefined value '%none'\n");
}

// What other languages have is named, and what to write here.
TEST(Recovery, HabitsOfOtherLanguages) {
  auto helpOf = [](const std::string &statement) { return helpsOf(networkOf("  " + statement + "\n  return out: %x\n")); };
  EXPECT_EQ(helpOf("// twice"), "comments begin with '#'");
  EXPECT_EQ(helpOf("/* twice */"), "comments begin with '#'");
  EXPECT_EQ(helpOf("%a = ReLU(%x);"), "statements need nothing between them: leave out ';'");
  EXPECT_EQ(helpOf("%a = x"), "values are results of operators and cells: write x(...)");
  EXPECT_EQ(helpOf("%a = repeat i in range(3) with %h = %x { yield %h }"), "write repeat i in 0..3");
  EXPECT_EQ(helpOf("%a = repeat i in 4 with %h = %x { yield %h }"), "write repeat i in 0..4");
  const std::string loops = "what a loop makes gets a name: write %y = repeat i in 0..4 with %h = %x { ... yield %b }";
  EXPECT_EQ(helpOf("for i in range(3) { }"), loops);
  EXPECT_EQ(helpOf("%a = for i in range(3)"), loops);
  EXPECT_EQ(helpOf("repeat i in 0..3 { }"), loops);
  EXPECT_EQ(helpOf("let %a = ReLU(%x)\n  %b = ReLU(%a)"), "a value is defined by its name alone: write %a = ...");
  const std::string lets = "let %a = ReLU(%x)\n  var b = ReLU(%a)\n  let %c = ReLU(%b)\n  %d = ReLU(%c)"; // all that they define is known
  EXPECT_EQ(errorsOf(networkOf("  " + lets + "\n  return out: %d\n")), "2:3: error: expected a statement, found 'let'\n"
                                                                        "3:3: error: expected a statement, found 'var'\n"
                                                                        "4:3: error: expected a statement, found 'let'\n");
  EXPECT_EQ(helpsOf("import torch\n" + networkOf("  return out: %x\n")), "layers such as Linear are those of import \"nn.mir\"");
  EXPECT_EQ(helpOf("%a = %x.relu()"), "operators stand in front of what they read: write ReLU(%x)");
  EXPECT_EQ(helpOf("%a = %x.view(-1, 8)"), "operators stand in front of what they read: write Reshape(%x, ...)");
  EXPECT_EQ(helpOf("%a = torch.nn.functional.gelu(%x)"), "cells of an import have no prefix: write GeLU(...)");
  EXPECT_EQ(helpOf("%a = %x * 2"), "tensors have no signs, such as '*': write %y = Mul(%x, 2)");
  EXPECT_EQ(helpOf("%a = Dropout(%x, p: 0.1)"), "write keep_prob: 1 - p, or import \"nn.mir\", whose Dropout takes p");
  EXPECT_EQ(helpOf("%a = RmsNorm(%x, %x, epsilon: 32)"), "it is a small number beside the variance; sizes are those of the operand");
  EXPECT_EQ(helpOf("%a = Reshape(%x, -1, 4)"), "write Reshape(%x, (-1, 4))");
  EXPECT_NE(helpOf("%a = StridedSlice(%x, 0, 4)"), "write StridedSlice(%x, (0, 4))"); // that is not all that it needs
  EXPECT_EQ(helpOf("%a = Dropout(%x, 0.1)"), "write Dropout(%x, keep_prob: 0.1), the probability to be kept, or keep_prob: 0.9 if it is that to be dropped");
  EXPECT_EQ(helpOf("%a = Einsum(%x)"), "here it is Transpose + MatMul; see 'msc ops Transpose'");
  EXPECT_EQ(helpsOf("Network n(%x: f32[2]) {\n  return out: %x\n}\n"), "write network");
  EXPECT_EQ(helpOf("%a = MatMul(%x, %x, transpose_x2: true)"), "did you mean 'transpose_b'?");
  EXPECT_EQ(helpOf("%a = ReduceSum(%x, keepdim: true)"), "did you mean 'keep_dims'?");
}

TEST(Recovery, ListsOfOperandsAreOneMistake) {
  auto errorOf = [](const std::string &call) { return errorsOf(networkOf("  %a = " + call + "\n  return out: %a\n")); };
  EXPECT_EQ(errorOf("Concat([])"), "2:8: error: 'Concat' takes 2 operands (x, y), but 0 are given\n");
  EXPECT_EQ(errorOf("Concat([3, 4])"), "2:16: error: expected a value such as %x\n");
  EXPECT_EQ(errorOf("Concat([[%x, %x]])"), "2:16: error: expected a value such as %x\n");
  EXPECT_EQ(errorOf("Concat([%x, 3])"), "2:20: error: expected a value such as %x\n");
  EXPECT_EQ(helpsOf(networkOf("  %a = Concat([%x, 3])\n  return out: %a\n")), "a list of operands holds values alone: write Concat([%a, %b])");
}

TEST(Recovery, BadCharactersAreMistakesOfTheirLine) {
  EXPECT_EQ(errorsOf(networkOf("  %a = ReLU(%x) ; %b = ReLU(%a)\n  %c = ReLU(%a) @ \"open\n  %d = RleU(%c)\n  return out: %d\n")),
            "2:17: error: unexpected character ';'\n"
            "3:19: error: this string does not end on its line\n"
            "4:8: error: unknown operator 'RleU'\n");
}

TEST(Recovery, StopsAfterTwenty) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "  %v" + std::to_string(i) + " = ReLU(%x\n";
  Reading reading(networkOf(text + "  return out: %v1\n"));
  EXPECT_EQ(reading.diagnostics->errors(), 20u);
}

TEST(Recovery, DeepNestingIsOneError) {
  Reading reading(networkOf("  %a = ReLU(%x, a: " + std::string(2000, '(') + "\n  return out: %a\n"));
  EXPECT_EQ(reading.diagnostics->errors(), 1u);
}

} // namespace
