// Repeats: which rounds stay folded, and that unrolling gives what the same rounds written out would.
#include "ErrorText.h"

#include "dialects/net/Repeat.h"

using namespace msc;
using namespace msc::test;
using namespace mlir;

namespace {

void addOutline(Block &block, std::string &text) {
  for (Operation &op : block) {
    if (auto repeat = dyn_cast<net::RepeatOp>(op)) {
      text += repeat.getVariable().str() + "=" + std::to_string(repeat.firstRound()) + ".." +
              std::to_string(repeat.endRound()) + "[ ";
      addOutline(repeat.getBody().front(), text);
      text += "] ";
    } else if (auto param = dyn_cast<net::ParamOp>(op)) {
      text += "%" + param.getName().str() + " ";
    } else if (isa<net::Operator>(op)) {
      text += net::getInstanceName(&op).str();
      std::string cut = cutText(&op);
      text += (cut.starts_with("=") ? cut.substr(1) : cut) + " ";
    }
  }
}

net::NetworkOp networkIn(Reading &reading) { return *reading.module->getOps<net::NetworkOp>().begin(); }

/// Repeats with their rounds, parameters, and operators with their strategies, in order.
std::string outlineOf(const std::string &text) {
  Reading reading(text, {.keepRepeats = true});
  EXPECT_TRUE(reading.module) << reading.said;
  std::string outline;
  if (reading.module)
    addOutline(networkIn(reading).getBody().front(), outline);
  return outline.substr(0, outline.size() - 1);
}

/// The network without its places and without what is remembered of repeats.
std::string irOf(const std::string &text) {
  Reading reading(text);
  EXPECT_TRUE(reading.module) << reading.said;
  std::string ir;
  llvm::raw_string_ostream os(ir);
  if (reading.module)
    reading.module->walk([](Operation *op) { op->removeAttr("net.alike"); });
  if (reading.module)
    networkIn(reading)->print(os, OpPrintingFlags().printGenericOpForm());
  return ir;
}

std::string onMesh(const std::string &statements) { return "mesh (data: 2, model: 4)\n" + networkOf(statements); }

const std::string layer = R"(cell Layer(%x, out: int) {
  param %w: f32[dim(%x, 1), out] = Normal(0.1)
  %m = MatMul(%x, %w)
  %y = ReLU(%m) @ "act"
  return %y
}
)";

TEST(Repeat, KeepsRoundsThatDifferInNamesOnly) {
  EXPECT_EQ(outlineOf(layer + networkOf(R"(  %h = repeat i in 0..96 with %t = %x {
    param %b: f32[32] = Zeros()
    %l = Layer(%t, out: 32) @ "layer.{i}"
    %s = Add(%l, %b)
    yield %s
  }
  return out: %h
)")),
            "i=0..96[ %b.{i} %layer.{i}.w layer.{i}.m layer.{i}.act s.{i} ]");
}

TEST(Repeat, UnrolledIsWhatTheRoundsWrittenOutWouldBe) {
  std::string first = "  param %before: f32[32] = Zeros()\n";
  auto results = [](const std::string &a, const std::string &b) {
    return "  param %behind: f32[32] = Zeros()\n  %o = Add(" + a + ", %behind)\n  return out: %o, t: " + b + "\n}\n";
  };
  EXPECT_EQ(irOf(layer + "network n(%x: f32[16, 32]) {\n" + first + R"(  %h, %v = repeat i in 1..3 with %t = %x, %u = %x {
    param %b: f32[32] = Zeros()
    %l = Layer(%t, out: 32) @ "layer.{i}"
    %s = Add(%l, %b) @ "sum {i} \{i}"
    %p = Mul(%s, 2)
    %q = repeat i in 0..2 with %r = %p {
      param %c: f32[32] = Zeros()
      %s = Add(%r, %c)
      %z = Add(%s, %before)
      yield %z
    }
    yield %q, %t
  }
)" + results("%h", "%v")),
            irOf(layer + "network n(%x: f32[16, 32]) {\n" + first + R"(  param %b.1: f32[32] = Zeros()
  %l.1 = Layer(%x, out: 32) @ "layer.1"
  %s.1 = Add(%l.1, %b.1) @ "sum 1 \{i}"
  %p.1 = Mul(%s.1, 2)
  param %c.1.0: f32[32] = Zeros()
  %s.1.0 = Add(%p.1, %c.1.0)
  %z.1.0 = Add(%s.1.0, %before)
  param %c.1.1: f32[32] = Zeros()
  %s.1.1 = Add(%z.1.0, %c.1.1)
  %z.1.1 = Add(%s.1.1, %before)
  param %b.2: f32[32] = Zeros()
  %l.2 = Layer(%z.1.1, out: 32) @ "layer.2"
  %s.2 = Add(%l.2, %b.2) @ "sum 2 \{i}"
  %p.2 = Mul(%s.2, 2)
  param %c.2.0: f32[32] = Zeros()
  %s.2.0 = Add(%p.2, %c.2.0)
  %z.2.0 = Add(%s.2.0, %before)
  param %c.2.1: f32[32] = Zeros()
  %s.2.1 = Add(%z.2.0, %c.2.1)
  %z.2.1 = Add(%s.2.1, %before)
)" + results("%z.2.1", "%z.1.1")));
}

TEST(Repeat, PeelsARoundThatIsPinned) {
  EXPECT_EQ(outlineOf(onMesh(R"(  %h = repeat i in 0..9 with %u = %x {
    %v = if i == 3 {
      %p = ReLU(%u) {in_strategy: ((2, 4))}
      yield %p
    } else {
      %p = ReLU(%u)
      yield %p
    }
    yield %v
  }
  return out: %h
)")),
            "i=0..3[ p.{i} ] p.3((2, 4)) i=4..9[ p.{i} ]");
}

TEST(Repeat, PeelsFirstRoundsWhoseOperandsAreCutInAnotherWay) {
  // The first round begins with an input, later ones with what %b is cut into.
  EXPECT_EQ(outlineOf(onMesh(R"(  %h = repeat i in 0..9 with %u = %label {
    param %w: f32[16, 16] = Zeros() {sharding: (auto, model)}
    %a = MatMul(%u, %w)
    %b = ReLU(%a) {sharding: (data, None)}
    yield %b
  }
  return out: %h
)")),
            "%w.0 a.0~(auto, auto, 4) b.0((2, 1)) i=1..9[ %w.{i} a.{i}((2, 1), (1, 4)) b.{i}((2, 1)) ]");
}

TEST(Repeat, PeelsTheLastRoundThatAShardingBehindItSpeaksOf) {
  EXPECT_EQ(outlineOf("cell C(%x) {\n  %h = repeat i in 0..9 with %u = %x {\n    %r = ReLU(%u)\n    yield %r\n  }\n  return %h\n}\n" +
                      onMesh("  %a = C(%x) {sharding: (data, model)}\n  return out: %a\n")),
            "i=0..8[ a.r.{i} ] a.r.8((2, 4))");
}

TEST(Repeat, LetsARoundThatChangesTheTypeStandAlone) {
  EXPECT_EQ(outlineOf(layer + networkOf(R"(  %h = repeat i in 0..9 with %t = %x {
    %l = Layer(%t, out: 8) @ "l.{i}"
    yield %l
  }
  return out: %h
)")),
            "%l.0.w l.0.m l.0.act i=1..9[ %l.{i}.w l.{i}.m l.{i}.act ]");
  EXPECT_EQ(outlineOf(layer + networkOf(R"(  %h = repeat i in 1..4 with %t = %x {
    %l = Layer(%t, out: 8 * i) @ "l.{i}"
    yield %l
  }
  return out: %h
)")),
            "%l.1.w l.1.m l.1.act %l.2.w l.2.m l.2.act %l.3.w l.3.m l.3.act");
}

TEST(Repeat, ComparesRoundsWhereMoreThanNamesDependsOnTheVariable) {
  EXPECT_EQ(outlineOf(networkOf(R"(  %h = repeat i in 0..8 with %t = %x {
    const every = i / 4
    %m = Mul(%t, every + 1)
    yield %m
  }
  return out: %h
)")),
            "i=0..4[ m.{i} ] i=4..8[ m.{i} ]");
}

TEST(Repeat, WithinRepeatsHasAVariableOfItsOwn) {
  EXPECT_EQ(outlineOf("cell C(%x) {\n  %h = repeat i in 0..2 with %u = %x {\n    %r = ReLU(%u) @ \"r{i}\"\n    yield %r\n  }\n  return %h\n}\n" +
                      networkOf(R"(  %h = repeat i in 0..5 with %t = %x {
    %c = C(%t) @ "c{i}"
    yield %c
  }
  return out: %h
)")),
            "i=0..5[ i_2=0..2[ c{i}.r{i_2} ] ]");
}

TEST(Repeat, WithinRepeatsStaysFoldedWhereNoShardingSpeaks) {
  std::string nested = R"(  %h = repeat i in 0..5 with %t = %x {
    %u = repeat j in 0..3 with %v = %t {
      param %w: f32[32] = Zeros() {sharding: (CUT)}
      %s = Mul(%v, %w)
      yield %s
    }
    yield %u
  }
  return out: %h
)";
  auto cut = [&](const std::string &axis) { return onMesh(std::string(nested).replace(nested.find("CUT"), 3, axis)); };
  EXPECT_EQ(outlineOf(cut("auto")), "i=0..5[ j=0..3[ %w.{i}.{j} s.{i}.{j} ] ]");
  EXPECT_EQ(outlineOf(cut("model")), "i=0..5[ %w.{i}.0 s.{i}.0~(auto, 4) %w.{i}.1 s.{i}.1~(auto, 4) "
                                     "%w.{i}.2 s.{i}.2~(auto, 4) ]");
}

TEST(Repeat, OfOneRoundIsUnrolled) {
  EXPECT_EQ(outlineOf(networkOf("  %h = repeat i in 7..8 with %t = %x {\n    %r = ReLU(%t)\n    yield %r\n  }\n  return out: %h\n")),
            "r.7");
}

TEST(Repeat, TheLastRoundHasTheLoss) {
  std::string text = "network n(%x: f32[]) {\n  %loss = repeat i in 0..3 with %t = %x {\n    %r = ReLU(%t)\n    yield %r\n  }\n"
                     "  return loss: %loss\n}\ntrain {optimizer: SGD(0.1), minimize: loss}\n";
  EXPECT_EQ(outlineOf(text), "i=0..2[ r.{i} ] r.2");
  Reading reading(text, {.keepRepeats = true}, "net.mir", /*withConfig=*/false);
  Operation *loss = net::getReturn(networkIn(reading)).getValues()[0].getDefiningOp();
  EXPECT_EQ(net::getScope(loss), "Default/network-WithLossCell/_loss_fn-ReLU");
}

const std::vector<Mistake> mistakes = {
    {"SameParameterInEachRound", layer + networkOf(R"(  %h = repeat i in 0..4 with %t = %x {
    %l = Layer(%t, out: 32) @ "layer"
    yield %l
  }
  return out: %h
)"),
     R"T(net.mir:2:9: error: parameter 'layer.w' is declared twice
    2 |   param %w: f32[dim(%x, 1), out] = Normal(0.1)
      |         ^~
net.mir:2:9: note: first declared here
    2 |   param %w: f32[dim(%x, 1), out] = Normal(0.1)
      |         ^~
net.mir:8:8: note: each round of this repeat declares it
    8 |   %h = repeat i in 0..4 with %t = %x {
      |        ^~~~~~
help: write the round into the name of a cell around it, as in @ "layer.{i}"
)T"},
    {"ParameterOfOneRoundExists", layer + networkOf(R"(  param %layer.2.w: f32[32] = Zeros()
  %h = repeat i in 0..4 with %t = %x {
    %l = Layer(%t, out: 32) @ "layer.{i}"
    %m = Add(%l, %layer.2.w)
    yield %m
  }
  return out: %h
)"),
     R"T(net.mir:2:9: error: parameter 'layer.2.w' is declared twice
    2 |   param %w: f32[dim(%x, 1), out] = Normal(0.1)
      |         ^~
net.mir:8:9: note: first declared here
    8 |   param %layer.2.w: f32[32] = Zeros()
      |         ^~~~~~~~~~
)T"},
    {"ParameterBehindIsThatOfARound", layer + networkOf(R"(  %h = repeat i in 0..4 with %t = %x {
    %l = Layer(%t, out: 32) @ "layer.{i}"
    yield %l
  }
  param %layer.3.w: f32[32] = Zeros()
  %m = Add(%h, %layer.3.w)
  return out: %m
)"),
     R"T(net.mir:12:9: error: parameter 'layer.3.w' is declared twice
   12 |   param %layer.3.w: f32[32] = Zeros()
      |         ^~~~~~~~~~
net.mir:2:9: note: first declared here
    2 |   param %w: f32[dim(%x, 1), out] = Normal(0.1)
      |         ^~
)T"},
    {"TwoRepeatsNameTheSameParameters", layer + networkOf(R"(  %h = repeat i in 0..4 with %t = %x {
    %l = Layer(%t, out: 32) @ "layer.{i}"
    yield %l
  }
  %k = repeat j in 3..6 with %t = %h {
    %l = Layer(%t, out: 32) @ "layer.{j}"
    yield %l
  }
  return out: %k
)"),
     R"T(net.mir:2:9: error: parameter 'layer.3.w' is declared twice
    2 |   param %w: f32[dim(%x, 1), out] = Normal(0.1)
      |         ^~
net.mir:2:9: note: first declared here
    2 |   param %w: f32[dim(%x, 1), out] = Normal(0.1)
      |         ^~
help: give each call of the cell a name of its own, in a repeat one with the round, as in @ "layer.{i}"
)T"},
};

using RepeatMistake = ErrorText;
TEST_P(RepeatMistake, IsReported) { check(); }
INSTANTIATE_TEST_SUITE_P(, RepeatMistake, testing::ValuesIn(mistakes), mistakeName);

TEST(Repeat, NumbersApartAreNotTheSameName) {
  EXPECT_EQ(outlineOf(layer + networkOf(R"(  param %layer.4.w: f32[32] = Zeros()
  %h = repeat i in 0..4 with %t = %x {
    %l = Layer(%t, out: 32) @ "layer.{i}"
    yield %l
  }
  %m = Add(%h, %layer.4.w)
  return out: %m
)")),
            "%layer.4.w i=0..4[ %layer.{i}.w layer.{i}.m layer.{i}.act ] m");
}

} // namespace
