// What a rank's dumps say about a partitioned module: local shapes, groups, slices.
#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "frontend/AstPrinter.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"
#include "frontend/Parser.h"
#include "frontend/Printer.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace mlir;

namespace {

/// Half of the quickstart after partitioning, one gradient and its update, and one of each collective.
const char *const partitioned = R"mlir(
module attributes {net.devices = 8 : i64} {
  net.network @quickstart inputs ["x"] {
  ^bb0(%x: tensor<16x32xf32, #dist.sharding<"(2, 4) [0, 1]">>):
    %w = net.param "w" = {a = 0.01, b = 0.0, kind = "normal"} : tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">> loc("net.mir":3:9)
    %m = net.param "moments.w" = {a = 0.0, b = 0.0, kind = "zeros"} {trained = false, state_of = "w"} : tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>
    %lr = net.scalar "learning_rate" = {kind = "constant", values = [0.2]} : tensor<f32>
    %0 = net.MatMul %x, %w {net.in_strategy = [array<i64: 2, 4>, array<i64: 4, 1>], net.strategy_origin = "user", net.instance_name = "matmul", net.value_names = ["h"], net.scope = "Default/network-WithLossCell/_backbone-quickstart"} : (tensor<16x32xf32, #dist.sharding<"(2, 4) [0, 1]">>, tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>) -> tensor<16x16xf32, #dist.sharding<"(2, 4) [0, -] partial(sum: 1)">> loc("net.mir":5:8)
    %1 = dist.collective AllReduce %0 group [2, 4] axes [1] move "completion" {received_elements = 96 : i64, net.instance_name = "forward_op_17", net.scope = "Default/network-WithLossCell/_backbone-quickstart"} : tensor<16x16xf32, #dist.sharding<"(2, 4) [0, -] partial(sum: 1)">> -> tensor<16x16xf32, #dist.sharding<"(2, 4) [0, -]">> loc("net.mir":5:8)
    %2 = dist.slice %1 "redistribution" {net.instance_name = "redistribution_op_19StridedSlice"} : tensor<16x16xf32, #dist.sharding<"(2, 4) [0, -]">> -> tensor<16x16xf32, #dist.sharding<"(2, 4) [0, 1]">>
    %3 = dist.collective AlltoAll %2 group [2, 4] axes [1] move "redistribution" {received_elements = 96 : i64, dimension = 1 : i64, split_dimension = 0 : i64} : tensor<16x16xf32, #dist.sharding<"(2, 4) [0, 1]">> -> tensor<16x16xf32, #dist.sharding<"(2, 4) [0.1, -]">>
    %4 = dist.collective AllGather %3 group [8] axes [0] move "redistribution" {received_elements = 96 : i64, dimension = 0 : i64} : tensor<16x16xf32, #dist.sharding<"(2, 4) [0.1, -]">> -> tensor<16x16xf32, #dist.sharding<"(2, 4) [-, -]">>
    %5 = dist.collective CollectivePermute %2 group [2, 4] axes [0, 1] move "redistribution" {received_elements = 96 : i64} : tensor<16x16xf32, #dist.sharding<"(2, 4) [0, 1]">> -> tensor<16x16xf32, #dist.sharding<"(4, 2) [1, 0]">>
    %6 = net.constant 0.5 : tensor<f32>
    %7 = net.Mul %2, %6 {net.phase = "backward", net.scope = "Default/network-WithLossCell/_backbone-quickstart"} : (tensor<16x16xf32, #dist.sharding<"(2, 4) [0, 1]">>, tensor<f32>) -> tensor<16x16xf32, #dist.sharding<"(2, 4) [0, 1]">>
    %8 = net.constant 0.0 {net.phase = "backward"} : tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>
    %9, %10 = net.ApplyMomentum %w, %m, %lr, %8 {momentum = 0.1, net.phase = "update"} : (tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>, tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>, tensor<f32>, tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>) -> (tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>, tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>)
    net.update %w, %9 : tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>, tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>
    net.update %m, %10 : tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>, tensor<32x16xf32, #dist.sharding<"(2, 4) [1, -]">>
    net.return %4, %5 names ["out", "p"] : tensor<16x16xf32, #dist.sharding<"(2, 4) [-, -]">>, tensor<16x16xf32, #dist.sharding<"(4, 2) [1, 0]">>
  }
}
)mlir";

class RankDump : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    net::registerNetDialect(registry);
    registry.insert<dist::DistDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(partitioned, ParserConfig(&context, /*verifyAfterParse=*/false));
    ASSERT_TRUE(module);
  }

  std::string dump(int64_t rank, frontend::RankDumpKind kind = frontend::RankDumpKind::Execute) {
    std::string text;
    llvm::raw_string_ostream os(text);
    frontend::printRankDump(*module, rank, kind, os);
    return text;
  }

  /// The node lines and type lines of one operator.
  std::string linesOf(const std::string &text, const std::string &op) {
    size_t at = text.find("= " + op + "(");
    if (at == std::string::npos)
      return "";
    size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', text.find('\n', at) + 1);
    return text.substr(begin, end - begin);
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
};

TEST_F(RankDump, ExecuteOfRankZeroIsExact) {
  EXPECT_EQ(dump(0), R"(# rank 0 of 8: forward, backward and update; 19_backend is the graph that runs
#IR entry      : @quickstart
#Total subgraph: 1

#attrs         :
stage : 18_execute
rank : 0

#Total params  : 4

%para1_x : <Tensor[Float32], (8, 8)>
    # In file -(4)
%para2_w : <Ref[Tensor[Float32]], (8, 16), ref_key=:w>  :  has_default
    # In file net.mir(3)
%para3_moments.w : <Ref[Tensor[Float32]], (8, 16), ref_key=:moments.w>  :  has_default
    # In file -(6)
%para4_learning_rate : <Ref[Tensor[Float32]], (), ref_key=:learning_rate>  :  has_default
    # In file -(7)

subgraph attr:
subgraph instance: quickstart
subgraph @quickstart(%para1_x, %para2_w, %para3_moments.w, %para4_learning_rate) {
  %0(h) = MatMul(%para1_x, %para2_w) {instance name: matmul} primitive_attrs: {transpose_a: false, transpose_b: false, in_strategy: ((2, 4), (4, 1))} {in_strategy: ((2, 4), (4, 1))}
      : (<Tensor[Float32], (8, 8)>, <Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>)
      # scope: (Default/network-WithLossCell/_backbone-quickstart)
      # In file net.mir(5)
  %1 = AllReduce(%0) {instance name: forward_op_17} primitive_attrs: {group: 4-6301172352641561019, op: sum, rank_list: (0, 1, 2, 3)}
      : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>)
      # scope: (Default/network-WithLossCell/_backbone-quickstart)
      # In file net.mir(5)
  %2 = StridedSlice(%1, (0, 0), (8, 4), (1, 1)) {instance name: redistribution_op_19StridedSlice}
      : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 4)>)
      # In file -(10)
  %3 = AlltoAll(%2) primitive_attrs: {group: 4-6301172352641561019, split_dim: 0, concat_dim: 1, rank_list: (0, 1, 2, 3)}
      : (<Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (2, 16)>)
      # In file -(11)
  %4 = AllGather(%3) primitive_attrs: {group: nccl_world_group, axis: 0, rank_list: (0, 1, 2, 3, 4, 5, 6, 7)}
      : (<Tensor[Float32], (2, 16)>) -> (<Tensor[Float32], (16, 16)>)
      # In file -(12)
  %5 = CollectivePermute(%2) primitive_attrs: {group: nccl_world_group, rank_list: (0, 1, 2, 3, 4, 5, 6, 7)}
      : (<Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8, 4)>)
      # In file -(13)
  %6 = Mul(%2, 0.5)
      : (<Tensor[Float32], (8, 4)>, <Tensor[Float32], ()>) -> (<Tensor[Float32], (8, 4)>)
      # scope: (Gradients/Default/network-WithLossCell/_backbone-quickstart)
      # In file -(15)
  %7 = Fill(0.0)
      : () -> (<Tensor[Float32], (8, 16)>)
      # scope: (Gradients/Default)
      # In file -(16)
  %8, %9 = ApplyMomentum(%para2_w, %para3_moments.w, %para4_learning_rate, %7) primitive_attrs: {momentum: 0.1, use_nesterov: false, weight_decay: 0.0, loss_scale: 1.0, dampening: 0.0}
      : (<Ref[Tensor[Float32]], (8, 16), ref_key=:w>, <Ref[Tensor[Float32]], (8, 16), ref_key=:moments.w>, <Ref[Tensor[Float32]], (), ref_key=:learning_rate>, <Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>, <Tensor[Float32], (8, 16)>)
      # scope: (Default/optimizer-Momentum)
      # In file -(17)
  Return(out: %4, p: %5)
      : (<Tensor[Float32], (16, 16)>, <Tensor[Float32], (8, 4)>)
}
    # In file -(3)
)");
}

TEST_F(RankDump, GroupsAndSlicesFollowTheRank) {
  std::string text = dump(5);
  EXPECT_EQ(linesOf(text, "AllReduce"),
            "  %1 = AllReduce(%0) {instance name: forward_op_17} primitive_attrs: {group: 4-15700679239691767905, "
            "op: sum, rank_list: (4, 5, 6, 7)}\n"
            "      : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>)");
  EXPECT_EQ(linesOf(text, "StridedSlice"),
            "  %2 = StridedSlice(%1, (0, 4), (8, 8), (1, 1)) {instance name: redistribution_op_19StridedSlice}\n"
            "      : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 4)>)");
}

TEST_F(RankDump, ParallelEndIsTheForwardGraph) {
  std::string text = dump(0, frontend::RankDumpKind::ParallelEnd);
  EXPECT_NE(text.find("= AllReduce("), std::string::npos);
  EXPECT_EQ(text.find("ApplyMomentum"), std::string::npos);
  EXPECT_EQ(text.find("Gradients/"), std::string::npos);
}

TEST_F(RankDump, BackendIsExecuteUnderAnotherName) {
  auto behindStage = [](std::string text) { return text.substr(text.find("\nrank : ")); };
  EXPECT_EQ(behindStage(dump(3, frontend::RankDumpKind::Backend)), behindStage(dump(3)));
}

TEST_F(RankDump, ParsesAndPrintsBack) {
  for (int64_t rank = 0; rank < 8; ++rank) {
    std::string text = dump(rank);
    auto parsed = frontend::parseText(text);
    ASSERT_TRUE(std::holds_alternative<frontend::ast::File>(parsed));
    std::string printed = frontend::toText(std::get<frontend::ast::File>(parsed));
    auto again = frontend::parseText(printed);
    EXPECT_EQ(std::get<frontend::ast::File>(again), std::get<frontend::ast::File>(parsed));
  }
}

TEST_F(RankDump, CompilingOneSaysWhichFileToUse) {
  llvm::SourceMgr sources;
  std::string said;
  llvm::raw_string_ostream stream(said);
  frontend::Diagnostics diagnostics(context, sources, stream);
  EXPECT_FALSE(frontend::parseString(dump(0), "18_execute_0005.ir", context, {}, sources));
  EXPECT_EQ(said, "18_execute_0005.ir:5:1: error: this dump (18_execute) shows what one rank runs and cannot be compiled\n"
                  "    5 | #attrs         :\n"
                  "      | ^\n"
                  "help: compile the step_parallel_begin dump of the same folder\n");
}

} // namespace
