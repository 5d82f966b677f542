// net dialect -> text -> net dialect.
#include "Reading.h"

#include "dialects/net/Network.h"
#include "frontend/LeftOut.h"
#include "frontend/Parser.h"
#include "frontend/Printer.h"

#include "mlir/IR/AsmState.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace mlir;
using test::Reading;

namespace {

/// Everything that a module says, without places.
std::string meaningOf(ModuleOp module) {
  OwningOpRef<ModuleOp> copy(module.clone());
  for (auto config : copy->getOps<net::ConfigOp>())
    config->setAttr("locations", DictionaryAttr::get(module.getContext()));
  std::string text;
  llvm::raw_string_ostream os(text);
  copy->print(os, OpPrintingFlags());
  return text;
}

/// File and line of every operator.
std::vector<std::pair<std::string, unsigned>> linesOf(ModuleOp module) {
  std::vector<std::pair<std::string, unsigned>> lines;
  module.walk([&](Operation *op) {
    if (FileLineColLoc file = frontend::findFileLocation(op->getLoc()); file && !isa<ModuleOp, net::ReturnOp>(op))
      lines.emplace_back(file.getFilename().str(), file.getLine());
  });
  return lines;
}

std::string beginDump(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  frontend::printBeginDump(module, os);
  return text;
}

std::string networkText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  frontend::printNetwork(module, os);
  return text;
}

/// The quickstart with the strategies that propagation finds.
void decide(ModuleOp module) {
  module.walk([](Operation *op) {
    if (!isa<net::Operator>(op) || net::getInStrategy(op))
      return;
    StringRef name = op->getName().stripDialect();
    net::setInStrategy(op, name == "ReLU" ? net::Strategy{{2, 4}} : name == "MatMul" ? net::Strategy{{2, 4}, {4, 1}} : net::Strategy{{2, 4}, {2, 4}});
    net::setStrategyOrigin(op, "propagated from 'matmul'");
  });
}

const char *const quickstartDump = R"(#IR entry      : @quickstart
#Total subgraph: 1

#attrs         :
stage : step_parallel_begin

#Total params  : 4

%para1_x : <Tensor[Float32], (16, 32)>
    # In file net.mir(2)
%para2_label : <Tensor[Float32], (16, 16)>
    # In file net.mir(2)
%para3_w : <Ref[Tensor[Float32]], (32, 16), ref_key=:w>  :  has_default
    # In file net.mir(3)
%para4_w2 : <Ref[Tensor[Float32]], (16, 16), ref_key=:w2>  :  has_default
    # In file net.mir(4)

subgraph attr:
subgraph instance: quickstart
subgraph @quickstart(%para1_x, %para2_label, %para3_w, %para4_w2) {
  %0(h) = MatMul(%para1_x, %para3_w) {instance name: matmul} primitive_attrs: {transpose_a: false, transpose_b: false, in_strategy: ((2, 4), (4, 1))} {in_strategy: ((2, 4), (4, 1))}
      : (<Tensor[Float32], (16, 32)>, <Tensor[Float32], (32, 16)>) -> (<Tensor[Float32], (16, 16)>)
      # scope: (Default/network-WithLossCell/_backbone-quickstart)
      # In file net.mir(5)
  %1(a) = ReLU(%0) {instance name: relu} cnode_attrs: {strategy_origin: propagated, strategy_source: matmul} {in_strategy: ((2, 4))}
      : (<Tensor[Float32], (16, 16)>) -> (<Tensor[Float32], (16, 16)>)
      # scope: (Default/network-WithLossCell/_backbone-quickstart)
      # In file net.mir(6)
  %2(out) = MatMul(%1, %para4_w2) {instance name: matmul2} primitive_attrs: {transpose_a: false, transpose_b: false} cnode_attrs: {strategy_origin: propagated, strategy_source: matmul} {in_strategy: ((2, 4), (4, 1))}
      : (<Tensor[Float32], (16, 16)>, <Tensor[Float32], (16, 16)>) -> (<Tensor[Float32], (16, 16)>)
      # scope: (Default/network-WithLossCell/_backbone-quickstart)
      # In file net.mir(7)
  %3(loss) = MSELoss(%2, %para2_label) primitive_attrs: {reduction: mean} cnode_attrs: {strategy_origin: propagated, strategy_source: matmul} {in_strategy: ((2, 4), (2, 4))}
      : (<Tensor[Float32], (16, 16)>, <Tensor[Float32], (16, 16)>) -> (<Tensor[Float32], ()>)
      # scope: (Default/network-WithLossCell/_loss_fn-MSELoss)
      # In file net.mir(8)
  Return(loss: %3, out: %2)
      : (<Tensor[Float32], ()>, <Tensor[Float32], (16, 16)>)
}
    # In file net.mir(2)

parameters {
  "w": {init: Normal(0.01), requires_grad: true},
  "w2": {init: Normal(0.01), requires_grad: true}
}
dataset {source: Random(seed: 1), columns: {label: uniform, x: uniform}, steps: 4, same_batch: true}
    # In file net.mir(11)
train {optimizer: Momentum(learning_rate: 0.2, momentum: 0.1), minimize: loss, epochs: 5}
    # In file net.mir(12)
checkpoint {directory: ckpt, every_epochs: 1, keep: 5}
    # In file net.mir(13)
context {parallel_mode: auto_parallel, search_mode: sharding_propagation, dataset_strategy: data_parallel, device_num: 8}
    # In file net.mir(14)
)";

TEST(BeginDump, OfTheQuickstartIsExact) {
  Reading reading(test::quickstart, {.devices = 8});
  ASSERT_TRUE(reading.module) << reading.said;
  decide(*reading.module);
  EXPECT_EQ(beginDump(*reading.module), quickstartDump);
}

TEST(BeginDump, ReadsBackAsTheSameModuleWithTheSameLines) {
  Reading written(test::quickstart, {.devices = 8});
  decide(*written.module);
  Reading read(quickstartDump, {.devices = 8}, "step_parallel_begin_0003.ir");
  ASSERT_TRUE(read.module) << read.said;
  EXPECT_TRUE(read.config);
  EXPECT_EQ(meaningOf(*read.module), meaningOf(*written.module));
  EXPECT_EQ(linesOf(*read.module), linesOf(*written.module));
  EXPECT_EQ(beginDump(*read.module), quickstartDump);
}

TEST(BeginDump, RepropagateKeepsOnlyTheUsersStrategies) {
  Reading written(test::quickstart, {.devices = 8});
  Reading read(quickstartDump, {.devices = 8, .repropagate = true}, "dump.ir");
  ASSERT_TRUE(read.module) << read.said;
  read.module->walk([](Operation *op) { op->removeAttr(frontend::leftOutStrategyName); }); // which the compiler reports
  EXPECT_EQ(meaningOf(*read.module), meaningOf(*written.module));
}

std::string edited(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(BeginDump, TrailingStrategyWinsWithANote) {
  Reading read(edited(quickstartDump, "} {in_strategy: ((2, 4), (4, 1))}", "} {in_strategy: ((4, 2), (2, 1))}"),
               {.devices = 8}, "dump.ir");
  ASSERT_TRUE(read.module);
  EXPECT_EQ(read.diagnostics->errors(), 0u);
  EXPECT_NE(read.said.find("note: the two strategies of this line differ: ((4, 2), (2, 1)) is taken"), std::string::npos)
      << read.said;
  std::optional<net::Strategy> strategy;
  read.module->walk([&](Operation *op) {
    if (net::getInstanceName(op) == "matmul")
      strategy = net::getInStrategy(op);
  });
  EXPECT_EQ(strategy, (net::Strategy{{4, 2}, {2, 1}}));
}

TEST(BeginDump, ErrorsShowTheLineOfTheDump) {
  Reading read(edited(quickstartDump, "(16, 32)>\n", "(16, 31)>\n"), {.devices = 8}, "dump.ir");
  EXPECT_FALSE(read.module);
  EXPECT_EQ(read.said,
            "dump.ir:21:11: error: cannot multiply 'x' (16x31) by 'w' (32x16): columns of the left (31) and rows of the right (32) differ\n"
            "   21 |   %0(h) = MatMul(%para1_x, %para3_w) {instance name: matmul} primitive_attrs: {transpose_a: false, transpose_b...\n"
            "      |           ^~~~~~\n"
            "net.mir:5: note: the dumped network has it here\n"
            "dump.ir:13:1: note: 'w' declared here\n"
            "   13 | %para3_w : <Ref[Tensor[Float32]], (32, 16), ref_key=:w>  :  has_default\n"
            "      | ^~~~~~~~\n");
}

TEST(BeginDump, WithoutParametersIsOneError) {
  std::string without = quickstartDump;
  size_t begin = without.find("\nparameters {"), end = without.find("\n}", begin);
  without.erase(begin, end + 2 - begin);
  Reading read(without, {}, "dump.ir");
  EXPECT_FALSE(read.module);
  EXPECT_EQ(read.said, "dump.ir:13:1: error: the dump has no block 'parameters', which says how parameters begin\n"
                       "   13 | %para3_w : <Ref[Tensor[Float32]], (32, 16), ref_key=:w>  :  has_default\n"
                       "      | ^~~~~~~~\n"
                       "help: add 'parameters {\"w\": {init: Normal(0.01)}, ...}' at the end of the dump\n");
  // A misspelt block is the mistake, not that the right one is missing.
  Reading misspelt(edited(quickstartDump, "\nparameters {", "\nparametrs {"), {}, "dump.ir");
  EXPECT_FALSE(misspelt.module);
  EXPECT_EQ(misspelt.said, "dump.ir:42:1: error: unknown block 'parametrs'\n"
                           "   42 | parametrs {\n"
                           "      | ^~~~~~~~~\n"
                           "help: did you mean 'parameters'?\n");
}

TEST(BeginDump, EditedTypesThatContradictAreErrors) {
  Reading read(edited(quickstartDump, "-> (<Tensor[Float32], (16, 16)>)", "-> (<Tensor[Float32], (16, 17)>)"), {}, "dump.ir");
  EXPECT_FALSE(read.module);
  EXPECT_NE(read.said.find("'MatMul' gives (16, 16) Float32, not (16, 17) Float32\n"), std::string::npos) << read.said;
  Reading operand(edited(quickstartDump, "(32, 16)>) ->", "(32, 17)>) ->"), {}, "dump.ir");
  EXPECT_FALSE(operand.module);
  EXPECT_NE(operand.said.find("error: '%para3_w' is (32, 16) Float32, not (32, 17) Float32\n"), std::string::npos) << operand.said;
  EXPECT_NE(operand.said.find("help: write <Tensor[Float32], (32, 16)>\n"), std::string::npos) << operand.said;
  Reading result(edited(quickstartDump, "(<Tensor[Float32], ()>, <", "(<Tensor[Float64], ()>, <"), {}, "dump.ir");
  EXPECT_FALSE(result.module);
  EXPECT_NE(result.said.find("error: '%3' is () Float32, not () Float64\n"), std::string::npos) << result.said;
}

TEST(NetworkText, OfTheQuickstartReadsBack) {
  Reading reading(test::quickstart, {.devices = 8});
  std::string text = networkText(*reading.module);
  EXPECT_EQ(text, R"(network quickstart(%x: f32[16, 32], %label: f32[16, 16]) {
  param %w: f32[32, 16] = Normal(0.01)
  param %w2: f32[16, 16] = Normal(0.01)
  %h = MatMul(%x, %w) @ "matmul" {in_strategy: ((2, 4), (4, 1))}
  %a = ReLU(%h) @ "relu"
  %out = MatMul(%a, %w2) @ "matmul2"
  %loss = MSELoss(%out, %label)
  return loss: %loss, out: %out
}
dataset {source: Random(seed: 1), columns: {label: uniform, x: uniform}, steps: 4, same_batch: true}
train {optimizer: Momentum(learning_rate: 0.2, momentum: 0.1), minimize: loss, epochs: 5}
checkpoint {directory: ckpt, every_epochs: 1, keep: 5}
context {parallel_mode: auto_parallel, search_mode: sharding_propagation, dataset_strategy: data_parallel, device_num: 8}
)");
  Reading again(text, {.devices = 8});
  ASSERT_TRUE(again.module) << again.said;
  EXPECT_EQ(meaningOf(*again.module), meaningOf(*reading.module));
}

/// Everything that is easy to lose on the way: attributes, numbers as operands, states, draw names, odd strings, meshes.
const char *const rich = R"(const width = 4 * devices
mesh grid (data: devices / 2, model: 2)
network rich(%x: f32[8, width], %ids: i64[8]) {
  param %w: f32[width, 6] = TruncatedNormal(0.5, 0.25) @ "old \{w}"
  param %u: f32[width, 6] = Uniform(0.125)
  param %c: f32[6] = Constant(-3) {requires_grad: false}
  param %g: f32[6] = HeNormal()
  %h = MatMul(%x, %w, transpose_a: false) @ "two words: \"x\"" {in_strategy: ((2, 1), (1, 2)), out_strategy: ((2, 2))}
  %k = MatMul(%x, %u) {in_strategy: ((1, 1), (1, 1))} cnode_attrs: {strategy_origin: searched}
  %s = Add(%h, %k) @ "true"
  %t = Mul(%s, 0.1) @ "True"
  %m = Sub(1, %t)
  %n = BiasAdd(%m, %c)
  %o = Add(%n, %g)
  %r = Reshape(%o, (2, 4, 6))
  %p = Transpose(%r, (2, 0, 1))
  %q = ReduceSum(%p, axis: (0, -1), keep_dims: true)
  %loss = ReduceMean(%q)
  return loss: %loss, q: %q
}
train {optimizer: SGD(0.1), minimize: loss, seed: 7, log_every: epoch}
checkpoint {directory: "a b/\{rank}", prefix: "true", per_rank: true}
context {dataset_strategy: ((2, 1), (1)), save_graphs: 2, gradients_mean: true}
)";

TEST(BothPrinters, KeepEverything) {
  Reading reading(rich, {.devices = 4});
  ASSERT_TRUE(reading.module && reading.config) << reading.said;
  Reading again(networkText(*reading.module), {.devices = 4});
  ASSERT_TRUE(again.module) << again.said << networkText(*reading.module);
  EXPECT_EQ(meaningOf(*again.module), meaningOf(*reading.module));
  Reading dumped(beginDump(*reading.module), {.devices = 4}, "dump.ir");
  ASSERT_TRUE(dumped.module && dumped.config) << dumped.said << beginDump(*reading.module);
  EXPECT_EQ(meaningOf(*dumped.module), meaningOf(*reading.module));
  EXPECT_EQ(linesOf(*dumped.module), linesOf(*reading.module));
}

} // namespace
