// Wrong operands and attributes: the exact words that users read.
#include "test/dialects/net/TestNetwork.h"

#include <gtest/gtest.h>

using namespace msc::test;

namespace {

struct WrongUse {
  const char *op;
  std::vector<std::pair<const char *, const char *>> operands; ///< name, type
  const char *attributes;
  std::vector<std::string> said;
};

void expectSaid(const std::vector<WrongUse> &uses) {
  for (const WrongUse &use : uses) {
    NetContext context;
    TestNetwork network(context);
    std::vector<mlir::Value> operands;
    for (auto [name, type] : use.operands)
      operands.push_back(network.input(name, type));
    EXPECT_FALSE(network.op(use.op, operands, use.attributes)) << use.op;
    EXPECT_EQ(context.diagnostics, use.said) << use.op;
  }
}

TEST(Inference, ExplainsProductsThatDoNotFit) {
  expectSaid({
      {"MatMul",
       {{"x", "16x32xf32"}, {"w", "31x16xf32"}},
       "",
       {"error: cannot multiply 'x' (16x32) by 'w' (31x16): columns of the left (32) and rows of the right (31) differ",
        "note: 'w' declared here"}},
      {"MatMul",
       {{"x", "16x32xf32"}, {"w", "16x32xf32"}},
       "",
       {"error: cannot multiply 'x' (16x32) by 'w' (16x32): columns of the left (32) and rows of the right (16) differ",
        "note: 'w' declared here", "note: help: transpose_b: true fits"}},
      {"MatMul",
       {{"x", "16x32xf32"}, {"w", "8x4xf32"}},
       "{transpose_a = true, transpose_b = true}",
       {"error: cannot multiply 'x' (16x32) by 'w' (8x4): rows of the left, transposed (16) and columns of the right, "
        "transposed (4) differ",
        "note: 'w' declared here"}},
      {"MatMul",
       {{"x", "32xf32"}, {"w", "32x4xf32"}},
       "",
       {"error: cannot multiply 'x' (32) by 'w' (32x4): 'x' has 1 dimension, 'MatMul' needs at least 2",
        "note: 'x' declared here"}},
      {"MatMul",
       {{"x", "3x2x4xf32"}, {"w", "5x4x2xf32"}},
       "",
       {"error: cannot multiply 'x' (3x2x4) by 'w' (5x4x2): batch dimensions 3 and 5 differ",
        "note: 'w' declared here"}},
      {"MatMul",
       {{"x", "2x2xf32"}, {"w", "2x2xf64"}},
       "",
       {"error: 'MatMul' takes tensors of one element type, but 'x' is f32 and 'w' is f64", "note: 'w' declared here",
        "note: help: bring one to the type of the other with Cast"}},
      {"MatMul",
       {{"x", "2x2xi1"}, {"w", "2x2xi1"}},
       "",
       {"error: 'MatMul' takes tensors of numbers, but 'x' is bool", "note: 'x' declared here"}},
      {"BiasAdd",
       {{"x", "16x8xf32"}, {"b", "16xf32"}},
       "",
       {"error: cannot add bias 'b' (16) to 'x' (16x8): dimension 1 has 8 channels, the bias has 16",
        "note: 'b' declared here"}},
      {"BiasAdd",
       {{"x", "8xf32"}, {"b", "8xf32"}},
       "",
       {"error: cannot add bias 'b' (8) to 'x' (8): 'BiasAdd' takes a tensor of at least 2 dimensions and a bias of 1",
        "note: 'x' declared here"}},
      {"BiasAdd",
       {{"x", "8x8xf32"}, {"b", "8xf32"}},
       "{data_format = \"CHWN\"}",
       {"error: 'data_format' of 'BiasAdd' is 'CHWN', but it is one of NCHW, NCDHW, NHWC"}},
  });
}

TEST(Inference, ExplainsPointwiseOperandsThatDoNotFit) {
  expectSaid({
      {"Add",
       {{"x", "16x32xf32"}, {"y", "31xf32"}},
       "",
       {"error: cannot broadcast 'x' (16x32) with 'y' (31): dimension 1 of 'x' is 32, dimension 0 of 'y' is 31",
        "note: 'y' declared here"}},
      {"Select",
       {{"c", "4xi1"}, {"x", "3x1xf32"}, {"y", "2x4xf32"}},
       "",
       {"error: cannot broadcast 'x' (3x1) with 'y' (2x4): dimension 0 of 'x' is 3, dimension 0 of 'y' is 2",
        "note: 'y' declared here"}},
      {"Select",
       {{"c", "4xf32"}, {"x", "4xf32"}, {"y", "4xf32"}},
       "",
       {"error: 'Select' takes bool tensors, but 'c' is f32", "note: 'c' declared here"}},
      {"SelectEqual",
       {{"a", "4xi32"}, {"b", "4xi64"}, {"x", "4xf32"}, {"y", "4xf32"}},
       "",
       {"error: 'SelectEqual' takes tensors of one element type, but 'a' is i32 and 'b' is i64", "note: 'b' declared here",
        "note: help: bring one to the type of the other with Cast"}},
      {"SelectEqual",
       {{"a", "4xi32"}, {"b", "4xi32"}, {"x", "4xf32"}, {"y", "4xf64"}},
       "",
       {"error: 'SelectEqual' takes tensors of one element type, but 'x' is f32 and 'y' is f64", "note: 'y' declared here",
        "note: help: bring one to the type of the other with Cast"}},
      {"Exp", {{"x", "4xi32"}}, "", {"error: 'Exp' takes float tensors, but 'x' is i32", "note: 'x' declared here"}},
      {"Add", {{"x", "4xf32"}}, "", {"error: 'Add' takes 2 operands (x, y), but 1 is given"}},
      {"Cast", {{"x", "4xf32"}}, "", {"error: 'Cast' needs the attribute 'dst_type', an element type"}},
      {"Cast",
       {{"x", "4xf32"}},
       "{dst_type = i8}",
       {"error: 'Cast' makes f16, bf16, f32, f64, i32, i64 or bool, not i8"}},
      {"Cast", {{"x", "4xf32"}}, "{dst_type = \"f32\"}", {"error: 'dst_type' of 'Cast' is an element type"}},
      {"GeLU",
       {{"x", "4xf32"}},
       "{approximate = \"fast\"}",
       {"error: 'approximate' of 'GeLU' is 'fast', but it is one of none, tanh"}},
  });
}

TEST(Inference, ExplainsReductionsAndMovementThatDoNotFit) {
  expectSaid({
      {"ReduceSum",
       {{"x", "3x4xf32"}},
       "{axis = array<i64: 2>}",
       {"error: axis 2 of 'ReduceSum' does not exist: 'x' (3x4) has 2 dimensions", "note: 'x' declared here"}},
      {"ReduceMax",
       {{"x", "3x4xf32"}},
       "{axis = array<i64: 1, -1>}",
       {"error: 'ReduceMax' names dimension 1 of 'x' twice"}},
      {"ReduceMean",
       {{"x", "0x4xf32"}},
       "{axis = array<i64: 0>}",
       {"error: 'ReduceMean' of 'x' (0x4) has no elements to reduce", "note: 'x' declared here"}},
      {"ReduceMean",
       {{"x", "4xi32"}},
       "",
       {"error: 'ReduceMean' takes float tensors, but 'x' is i32", "note: 'x' declared here"}},
      {"Reshape",
       {{"x", "3x4xf32"}},
       "{shape = array<i64: 5, -1>}",
       {"error: cannot reshape 'x' (3x4): 12 elements are not a multiple of 5", "note: 'x' declared here"}},
      {"Reshape",
       {{"x", "3x4xf32"}},
       "{shape = array<i64: 5, 2>}",
       {"error: cannot reshape 'x' (3x4) to 5x2: 12 elements do not fill 10", "note: 'x' declared here"}},
      {"Reshape",
       {{"x", "3x4xf32"}},
       "{shape = array<i64: -1, -1>}",
       {"error: cannot reshape 'x' (3x4): two sizes of 'shape' are left open with -1", "note: 'x' declared here"}},
      {"Reshape",
       {{"x", "3x4xf32"}},
       "{shape = array<i64: -3, 4>}",
       {"error: cannot reshape 'x' (3x4): size -3 of 'shape' is negative", "note: 'x' declared here"}},
      {"Transpose",
       {{"x", "3x4xf32"}},
       "{perm = array<i64: 0>}",
       {"error: 'perm' of 'Transpose' names 1 dimensions, but 'x' (3x4) has 2", "note: 'x' declared here"}},
      {"Transpose",
       {{"x", "3x4xf32"}},
       "{perm = array<i64: 0, -2>}",
       {"error: 'perm' of 'Transpose' does not name each of the 2 dimensions of 'x' once", "note: 'x' declared here"}},
      {"BroadcastTo",
       {{"x", "3x4xf32"}},
       "{shape = array<i64: 2, 3, 5>}",
       {"error: cannot broadcast 'x' (3x4) to 2x3x5: dimension 1 is 4, not 1 or 5", "note: 'x' declared here"}},
      {"BroadcastTo",
       {{"x", "3x4xf32"}},
       "{shape = array<i64: 4>}",
       {"error: cannot broadcast 'x' (3x4) to 4: it has more dimensions", "note: 'x' declared here"}},
  });
}

TEST(Inference, ExplainsTrainingOperandsThatDoNotFit) {
  expectSaid({
      {"MSELoss",
       {{"out", "16x16xf32"}, {"label", "16x8xf32"}},
       "",
       {"error: 'MSELoss' takes tensors of one shape, but 'out' is 16x16 and 'label' is 16x8",
        "note: 'label' declared here"}},
      {"MSELoss",
       {{"out", "4xf32"}, {"label", "4xf32"}},
       "{reduction = \"avg\"}",
       {"error: 'reduction' of 'MSELoss' is 'avg', but it is one of mean, sum, none"}},
      {"MSELossGrad",
       {{"out", "4xf32"}, {"label", "4xf32"}, {"d", "4xf32"}},
       "",
       {"error: 'MSELossGrad' takes a scalar 'dloss', but 'd' (4) is none", "note: 'd' declared here"}},
      {"ApplyMomentum",
       {{"w", "4xf32"}, {"m", "4xf32"}, {"lr", "1xf32"}, {"g", "4xf32"}},
       "{momentum = 0.9}",
       {"error: 'ApplyMomentum' takes a scalar learning rate, but 'lr' (1) is none", "note: 'lr' declared here"}},
      {"ApplyMomentum",
       {{"w", "4xf32"}, {"m", "4xf32"}, {"lr", "f32"}, {"g", "4xf32"}},
       "",
       {"error: 'ApplyMomentum' needs the attribute 'momentum', a number"}},
      {"SGD",
       {{"w", "4xf32"}, {"lr", "f32"}, {"g", "5xf32"}},
       "",
       {"error: 'SGD' takes tensors of one shape, but 'w' is 4 and 'g' is 5", "note: 'g' declared here"}},
  });
}

TEST(Inference, CallsOperandsByTheirRoleWhenTheyHaveNoName) {
  NetContext context;
  TestNetwork network(context);
  mlir::Value sum = network.value("Add", {network.input("a", "2x3xf32"), network.input("b", "2x3xf32")});
  EXPECT_FALSE(network.op("MatMul", {sum, network.input("w", "4x5xf32")}));
  EXPECT_EQ(context.diagnostics[0],
            "error: cannot multiply 'x1' (2x3) by 'w' (4x5): columns of the left (3) and rows of the right (4) differ");
}

} // namespace
