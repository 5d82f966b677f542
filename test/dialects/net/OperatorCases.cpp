#include "test/dialects/net/OperatorCases.h"
#include "test/dialects/net/LayerCases.h"

namespace msc::test {

static void addProducts(std::vector<OperatorCase> &cases) {
  auto add = [&](OperatorCase theCase) { cases.push_back(theCase); };
  add({"matmul", "MatMul", {"3x4xf64", "4x5xf64"}, "", "3x5xf64", "(m k, k n) -> (m n), reduce k"});
  add({"matmul a",
       "MatMul",
       {"4x3xf64", "4x5xf64"},
       "{transpose_a = true}",
       "3x5xf64",
       "(k m, k n) -> (m n), reduce k"});
  add({"matmul b",
       "MatMul",
       {"3x4xf64", "5x4xf64"},
       "{transpose_b = true}",
       "3x5xf64",
       "(m k, n k) -> (m n), reduce k"});
  add({"matmul ab",
       "MatMul",
       {"4x3xf64", "5x4xf64"},
       "{transpose_a = true, transpose_b = true}",
       "3x5xf64",
       "(k m, n k) -> (m n), reduce k"});
  add({"matmul i32", "MatMul", {"2x3xi32", "3x2xi32"}, "", "2x2xi32", "(m k, k n) -> (m n), reduce k"});
  add({"matmul batch", "MatMul", {"2x3x4xf64", "2x4x5xf64"}, "", "2x3x5xf64", "(b m k, b k n) -> (b m n), reduce k"});
  add({"matmul sum of batches", "MatMul", {"2x3x4xf64", "2x3x5xf64"}, "{transpose_a = true, sum_batch = true}", "4x5xf64",
       "(b k m, b k n) -> (m n), reduce b, reduce k"});
  add({"matmul batch ab",
       "MatMul",
       {"2x4x3xf64", "2x5x4xf64"},
       "{transpose_a = true, transpose_b = true}",
       "2x3x5xf64",
       "(b k m, b n k) -> (b m n), reduce k"});
  add({"matmul batch by matrix",
       "MatMul",
       {"2x3x4xf64", "4x5xf64"},
       "",
       "2x3x5xf64",
       "(b m k, k n) -> (b m n), reduce k"});
  add({"matmul batch by matrix b",
       "MatMul",
       {"2x3x4xf64", "5x4xf64"},
       "{transpose_b = true}",
       "2x3x5xf64",
       "(b m k, n k) -> (b m n), reduce k"});
  add({"matmul matrix by batch",
       "MatMul",
       {"3x4xf64", "2x4x5xf64"},
       "",
       "2x3x5xf64",
       "(m k, b k n) -> (b m n), reduce k"});
  add({"matmul broadcast batch",
       "MatMul",
       {"2x1x3x4xf64", "5x4x2xf64"},
       "",
       "2x5x3x2xf64",
       "(b0 1 m k, b1 k n) -> (b0 b1 m n), reduce k"});
  add({"matmul experts",
       "MatMul",
       {"2x3x2x4xf64", "3x4x5xf64"},
       "",
       "2x3x2x5xf64",
       "(b0 b1 m k, b1 k n) -> (b0 b1 m n), reduce k"});
  add({"matmul experts b",
       "MatMul",
       {"2x3x2x4xf64", "1x3x5x4xf64"},
       "{transpose_b = true}",
       "2x3x2x5xf64",
       "(b0 b1 m k, 1 b1 n k) -> (b0 b1 m n), reduce k"});
  add({"matmul experts first",
       "MatMul",
       {"3x2x2x4xf64", "3x1x4x5xf64"},
       "",
       "3x2x2x5xf64",
       "(b0 b1 m k, b0 1 k n) -> (b0 b1 m n), reduce k"});
  add({"matmul mixed batch",
       "MatMul",
       {"3x1x2x4xf64", "1x2x5x4xf64"},
       "{transpose_b = true}",
       "3x2x2x5xf64",
       "(b0 1 m k, 1 b1 n k) -> (b0 b1 m n), reduce k"});
  add({"matmul mixed batch i64",
       "MatMul",
       {"2x3x2x4xi64", "3x4x5xi64"},
       "",
       "2x3x2x5xi64",
       "(b0 b1 m k, b1 k n) -> (b0 b1 m n), reduce k"});
  add({"bias matrix", "BiasAdd", {"3x4xf64", "4xf64"}, "", "3x4xf64", "(a b, b) -> (a b)"});
  add({"bias of a sequence", "BiasAdd", {"2x3x4xf64", "4xf64"}, "", "2x3x4xf64", "(a b c, c) -> (a b c)"});
  add({"bias nchw", "BiasAdd", {"2x3x2x2xf64", "3xf64"}, "", "2x3x2x2xf64", "(a b c d, b) -> (a b c d)"});
  add({"bias nhwc",
       "BiasAdd",
       {"2x2x2x3xf64", "3xf64"},
       "{data_format = \"NHWC\"}",
       "2x2x2x3xf64",
       "(a b c d, d) -> (a b c d)"});
}

static void addUnary(std::vector<OperatorCase> &cases) {
  for (const char *op : {"ReLU", "Sigmoid", "Tanh", "SiLU", "Exp", "Neg", "Abs", "Square", "Sign", "GeLU"})
    cases.push_back({op, op, {"3x4xf64"}, "", "3x4xf64", "(a b) -> (a b)"});
  for (const char *op : {"Log", "Sqrt", "Rsqrt"})
    cases.push_back({op, op, {"3x4xf64"}, "", "3x4xf64", "(a b) -> (a b)", Domain::Positive});
  for (const char *op : {"Neg", "Abs", "Square", "Sign"})
    cases.push_back({op, op, {"5xi32"}, "", "5xi32", "(a) -> (a)"});
  cases.push_back({"gelu exact", "GeLU", {"3x4xf64"}, "{approximate = \"none\"}", "3x4xf64", "(a b) -> (a b)"});
  cases.push_back({"relu scalar", "ReLU", {"f64"}, "", "f64", "(()) -> (())"});
  for (const char *op : {"ReluGrad", "SigmoidGrad", "TanhGrad", "SiLUGrad", "GeLUGrad"})
    cases.push_back({op, op, {"3x4xf64", "3x4xf64"}, "", "3x4xf64", "(a b, a b) -> (a b)"});
  cases.push_back(
      {"gelugrad exact", "GeLUGrad", {"4xf64", "4xf64"}, "{approximate = \"none\"}", "4xf64", "(a, a) -> (a)"});
}

static void addMoreUnary(std::vector<OperatorCase> &cases) {
  for (const char *op : {"Sin", "Cos", "Tan", "Erf", "Expm1", "Reciprocal", "ReLU6", "HSigmoid", "HSwish", "Softplus", "Softsign",
                         "Mish", "SeLU", "Elu", "LeakyReLU", "Floor", "Ceil", "Round", "Trunc", "ZerosLike", "OnesLike"})
    cases.push_back({op, op, {"3x4xf64"}, "", "3x4xf64", "(a b) -> (a b)"});
  cases.push_back({"log1p", "Log1p", {"3x4xf64"}, "", "3x4xf64", "(a b) -> (a b)", Domain::Positive});
  for (const char *op : {"Elu", "LeakyReLU"})
    cases.push_back({op, op, {"5xf64"}, "{alpha = 0.5}", "5xf64", "(a) -> (a)"});
  for (const char *op : {"IsFinite", "IsInf", "IsNan"})
    cases.push_back({op, op, {"3x4xf64"}, "", "3x4xi1", "(a b) -> (a b)"});
  for (const char *op : {"LogicalNot", "ZerosLike", "OnesLike"})
    cases.push_back({op, op, {"6xi1"}, "", "6xi1", "(a) -> (a)"});
  for (const char *op : {"ZerosLike", "OnesLike"})
    cases.push_back({op, op, {"6xi32"}, "", "6xi32", "(a) -> (a)"});
}

static void addMoreBinary(std::vector<OperatorCase> &cases) {
  for (const char *op : {"SquaredDifference", "SigmoidCrossEntropyWithLogits", "FloorDiv", "FloorMod", "Mod", "DivNoNan", "Xlogy"}) {
    Domain domain = std::string(op) == "Xlogy" ? Domain::Positive : Domain::Any;
    cases.push_back({op, op, {"3x4xf64", "3x4xf64"}, "", "3x4xf64", "(a b, a b) -> (a b)", domain});
    cases.push_back({op, op, {"3x1xf64", "2x1x4xf64"}, "", "2x3x4xf64", "(b 1, a 1 c) -> (a b c)", domain});
  }
  for (const char *op : {"SquaredDifference", "FloorDiv", "FloorMod", "Mod"})
    cases.push_back({op, op, {"5x4xi64", "4xi64"}, "", "5x4xi64", "(a b, b) -> (a b)"});
  for (const char *op : {"LogicalAnd", "LogicalOr", "LogicalXor"})
    cases.push_back({op, op, {"3x4xi1", "4xi1"}, "", "3x4xi1", "(a b, b) -> (a b)"});
  cases.push_back({"masked fill", "MaskedFill", {"3x4xf64", "4xi1", "f64"}, "", "3x4xf64", "(a b, b, ()) -> (a b)"});
  cases.push_back({"masked fill broadcast", "MaskedFill", {"4xf64", "3x1xi1", "4xf64"}, "", "3x4xf64", "(b, a 1, b) -> (a b)"});
}

static void addBinary(std::vector<OperatorCase> &cases) {
  for (const char *op : {"Add", "Sub", "Mul", "RealDiv", "Pow", "Maximum", "Minimum"}) {
    Domain domain = std::string(op) == "Pow" ? Domain::Positive : Domain::Any;
    cases.push_back({op, op, {"3x4xf64", "3x4xf64"}, "", "3x4xf64", "(a b, a b) -> (a b)", domain});
    cases.push_back({op, op, {"3x4xf64", "4xf64"}, "", "3x4xf64", "(a b, b) -> (a b)", domain});
    cases.push_back({op, op, {"3x1xf64", "2x1x4xf64"}, "", "2x3x4xf64", "(b 1, a 1 c) -> (a b c)", domain});
    cases.push_back({op, op, {"f64", "1x4xf64"}, "", "1x4xf64", "((), a b) -> (a b)", domain});
  }
  for (const char *op : {"Add", "Sub", "Mul", "Maximum", "Minimum"})
    cases.push_back({op, op, {"3x4xi64", "1xi64"}, "", "3x4xi64", "(a b, 1) -> (a b)"});
  for (const char *op : {"Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"}) {
    cases.push_back({op, op, {"3x4xi32", "4xi32"}, "", "3x4xi1", "(a b, b) -> (a b)"});
    cases.push_back({op, op, {"3x4xf64", "3x1xf64"}, "", "3x4xi1", "(a b, a 1) -> (a b)"});
  }
  cases.push_back({"equal bool", "Equal", {"6xi1", "6xi1"}, "", "6xi1", "(a, a) -> (a)"});
  cases.push_back({"select", "Select", {"3x4xi1", "3x4xf64", "3x4xf64"}, "", "3x4xf64", "(a b, a b, a b) -> (a b)"});
  cases.push_back({"select broadcast", "Select", {"4xi1", "3x1xf64", "f64"}, "", "3x4xf64", "(b, a 1, ()) -> (a b)"});
  cases.push_back({"cast f32", "Cast", {"3x4xf64"}, "{dst_type = f32}", "3x4xf32", "(a b) -> (a b)"});
  cases.push_back({"cast i32", "Cast", {"6xf64"}, "{dst_type = i32}", "6xi32", "(a) -> (a)"});
  cases.push_back({"cast bool to f64", "Cast", {"6xi1"}, "{dst_type = f64}", "6xf64", "(a) -> (a)"});
  cases.push_back({"cast i32 to i64", "Cast", {"6xi32"}, "{dst_type = i64}", "6xi64", "(a) -> (a)"});
  cases.push_back({"cast i64 to bool", "Cast", {"6xi64"}, "{dst_type = i1}", "6xi1", "(a) -> (a)"});
  cases.push_back({"cast f64 to bool", "Cast", {"6xf64"}, "{dst_type = i1}", "6xi1", "(a) -> (a)"});
  cases.push_back({"cast bf16 to f16", "Cast", {"6xbf16"}, "{dst_type = f16}", "6xf16", "(a) -> (a)"});
}

static void addReductions(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, const char *word) {
    // Rules are kept alive by the table of the program's lifetime.
    static std::vector<std::unique_ptr<std::string>> texts;
    auto text = [&](std::string pattern) {
      for (size_t at; (at = pattern.find('@')) != std::string::npos;)
        pattern.replace(at, 1, word);
      texts.push_back(std::make_unique<std::string>(pattern));
      return texts.back()->c_str();
    };
    cases.push_back({op, op, {"3x4xf64"}, "", "f64", text("(a b) -> (()), @ a, @ b")});
    cases.push_back({op, op, {"3x4xf64"}, "{axis = array<i64: 0>}", "4xf64", text("(a b) -> (b), @ a")});
    cases.push_back({op, op, {"3x4x2xf64"}, "{axis = array<i64: -1, 0>}", "4xf64", text("(a b c) -> (b), @ a, @ c")});
    cases.push_back(
        {op, op, {"3x4xf64"}, "{axis = array<i64: 1>, keep_dims = true}", "3x1xf64", text("(a b) -> (a 1), @ b")});
    cases.push_back({op, op, {"3x4xf64"}, "{keep_dims = true}", "1x1xf64", text("(a b) -> (1 1), @ a, @ b")});
  };
  add("ReduceSum", "reduce");
  add("ReduceMean", "reduce");
  add("ReduceMax", "max");
  add("ReduceMin", "min");
  add("ReduceProd", "prod");
  cases.push_back({"sum i64", "ReduceSum", {"3x4xi64"}, "", "i64", "(a b) -> (()), reduce a, reduce b"});
  cases.push_back({"max i32", "ReduceMax", {"3x4xi32"}, "{axis = array<i64: 1>}", "3xi32", "(a b) -> (a), max b"});
}

static void addMovement(std::vector<OperatorCase> &cases) {
  auto reshape = [&](const char *from, const char *shape, const char *to, const char *rule) {
    cases.push_back({"reshape", "Reshape", {from}, shape, to, rule});
  };
  reshape("3x4xf64", "{shape = array<i64: 12>}", "12xf64", "(a b) -> (a), a by 4, whole b");
  reshape("12xf64", "{shape = array<i64: 4, -1>}", "4x3xf64", "(a) -> (a b), a by 3, whole b");
  reshape("6x4xf64", "{shape = array<i64: 4, 6>}", "4x6xf64", "(a b) -> (a c), a by 12, whole b, whole c");
  reshape("2x3x4xf64", "{shape = array<i64: 2, 12>}", "2x12xf64", "(a b c) -> (a b), b by 4, whole c");
  reshape("2x6x5xf64", "{shape = array<i64: 2, 3, 2, 5>}", "2x3x2x5xf64", "(a b d) -> (a b c d), b by 2, whole c");
  reshape("1x5xf64", "{shape = array<i64: 5, 1, 1>}", "5x1x1xf64", "(1 a) -> (a 1 1)");
  reshape("1x1xf64", "{shape = array<i64>}", "f64", "(1 1) -> (())");
  reshape("0x4xf64", "{shape = array<i64: 2, 0>}", "2x0xf64", "(a b) -> (c d), whole a, whole b, whole c, whole d");
  cases.push_back({"transpose", "Transpose", {"3x4xf64"}, "{perm = array<i64: 1, 0>}", "4x3xf64", "(a b) -> (b a)"});
  cases.push_back(
      {"transpose 3", "Transpose", {"2x3x4xf64"}, "{perm = array<i64: -1, 0, 1>}", "4x2x3xf64", "(a b c) -> (c a b)"});
  cases.push_back(
      {"broadcast", "BroadcastTo", {"3x1xf64"}, "{shape = array<i64: 2, 3, 4>}", "2x3x4xf64", "(b 1) -> (a b c)"});
  cases.push_back(
      {"broadcast keep", "BroadcastTo", {"3x1xi32"}, "{shape = array<i64: -1, 4>}", "3x4xi32", "(a 1) -> (a b)"});
  cases.push_back({"broadcast scalar", "BroadcastTo", {"f64"}, "{shape = array<i64: 5>}", "5xf64", "(()) -> (a)"});
}

static void addViews(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, const char *operand, const char *attributes, const char *result, const char *rule) {
    cases.push_back({op, op, {operand}, attributes, result, rule});
  };
  add("ExpandDims", "3x4xf64", "{axis = 1}", "3x1x4xf64", "(a b) -> (a 1 b)");
  add("ExpandDims", "3xf64", "{axis = -1}", "3x1xf64", "(a) -> (a 1)");
  add("ExpandDims", "f64", "{axis = 0}", "1xf64", "(()) -> (1)");
  add("Squeeze", "3x1x4x1xf64", "", "3x4xf64", "(a 1 b 1) -> (a b)");
  add("Squeeze", "3x1x4x1xf64", "{axis = array<i64: -1>}", "3x1x4xf64", "(a 1 b 1) -> (a 1 b)");
  add("Flatten", "3x4x2xf64", "", "3x8xf64", "(a b c) -> (a b), b by 2, whole c");
  add("Flatten", "3xf64", "", "3x1xf64", "(a) -> (a 1)");
}

static void addRegions(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule) { cases.push_back({op, op, operands, attributes, result, rule}); };
  add("Slice", {"3x5xf64"}, "{begin = array<i64: 0, 1>, size = array<i64: -1, 3>}", "3x3xf64", "(a b) -> (a b), exchange b");
  add("Slice", {"4x5x2xf64"}, "{begin = array<i64: 1, 0, 0>, size = array<i64: 1, 5, 2>}", "1x5x2xf64",
      "(a b c) -> (1 b c), exchange a");
  add("StridedSlice", {"3x5xf64"}, "{begin = array<i64: 0, -2>, end = array<i64: 3, -6>, strides = array<i64: 1, -2>}",
      "3x2xf64", "(a b) -> (a b), exchange b");
  add("StridedSlice", {"4x5x3xf64"},
      "{begin = array<i64: 1, 0, 9, 0>, end = array<i64: 2, 0, 0, 3>, begin_mask = 8, ellipsis_mask = 2, "
      "new_axis_mask = 4, shrink_axis_mask = 1}",
      "5x1x3xf64", "(a b c) -> (b 1 c), exchange a");
  add("StridedSlice", {"6x5xf64"}, "{begin = array<i64: 5>, end = array<i64: 0>, strides = array<i64: -2>, end_mask = 1}",
      "3x5xf64", "(a b) -> (a b), exchange a");
  add("Split", {"3x6xf64"}, "{axis = -1, output_num = 3}", "3x2xf64", "(a b) -> (a b, a b, a b), exchange b");
  add("Split", {"4xf64"}, "", "4xf64", "(a) -> (a)");
  add("SplitV", {"5x2xf64"}, "{size_splits = array<i64: 1, -1>}", "1x2xf64", "(a b) -> (1 b, a b), exchange a");
  add("Unstack", {"3x2xf64"}, "{axis = 1}", "3xf64", "(a b) -> (a, a), exchange b");
  add("Concat", {"3x2xf64", "3x4xf64", "3x1xf64"}, "{axis = 1}", "3x7xf64", "(a b, a b, a 1) -> (a b), exchange b");
  add("Concat", {"2x3xi32", "1x3xi32"}, "", "3x3xi32", "(a b, 1 b) -> (a b), exchange a");
  add("Stack", {"3x2xf64", "3x2xf64"}, "{axis = 1}", "3x2x2xf64", "(a b, a b) -> (a c b), whole c");
  add("Stack", {"f64", "f64"}, "", "2xf64", "((), ()) -> (a), whole a");
  add("Pad", {"3x2xf64"}, "{paddings = array<i64: 0, 0, 1, 2>}", "3x5xf64", "(a b) -> (a b), exchange b");
  add("Pad", {"3x1xf64"}, "{paddings = array<i64: 1, 0, 0, 2>}", "4x3xf64", "(a 1) -> (a b), exchange a, exchange b");
  add("MirrorPad", {"3x4xf64"}, "{paddings = array<i64: 2, 1, 0, 3>}", "6x7xf64", "(a b) -> (a b), exchange a, exchange b");
  add("MirrorPad", {"3x2xf64"}, "{paddings = array<i64: 3, 3, 0, 0>, mode = \"SYMMETRIC\"}", "9x2xf64",
      "(a b) -> (a b), exchange a");
  add("Roll", {"3x5xf64"}, "{shift = array<i64: -2, 4>, axis = array<i64: 1, 0>}", "3x5xf64",
      "(a b) -> (a b), exchange a, exchange b");
  add("ReverseV2", {"3x5xf64"}, "{axis = array<i64: -1>}", "3x5xf64", "(a b) -> (a b), exchange b");
  add("Tile", {"3x4xf64"}, "{multiples = array<i64: 2, 1>}", "6x4xf64", "(a b) -> (a b), exchange a");
  add("Tile", {"3x1xf64"}, "{multiples = array<i64: 2, 3, 4>}", "2x9x4xf64", "(b 1) -> (a b c), exchange b");
  add("Tile", {"3x1xf64"}, "{multiples = array<i64: 1, 4>}", "3x4xf64", "(a 1) -> (a b)");
  add("Triu", {"3x4xf64"}, "", "3x4xf64", "(a b) -> (a b)");
  add("Tril", {"2x4x3xf64"}, "{diagonal = -1}", "2x4x3xf64", "(a b c) -> (a b c)");
  // y[1], y[3] = x[4], x[2]; y[0] = z[1]; y[2] and y[4] are filled.
  add("CopyRegions", {"5xf64", "2xf64"},
      "{shape = array<i64: 5>, regions = array<i64: 0, 4, 1, 2, -2, 2, 1, 1, 0, 1, 1, 1>, fill = 0.5}", "5xf64",
      "(a, a) -> (a), exchange a");
}

static void addExpanded(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule) { cases.push_back({op, op, operands, attributes, result, rule}); };
  for (const char *op : {"Softmax", "LogSoftmax"}) {
    add(op, {"3x4xf64"}, "", "3x4xf64", "(a b) -> (a b)");
    add(op, {"3x4x2xf64"}, "{axis = 1}", "3x4x2xf64", "(a b c) -> (a b c)");
    add(op, {"5xf64"}, "{axis = 0}", "5xf64", "(a) -> (a)");
  }
  add("LayerNorm", {"3x4xf64", "4xf64", "4xf64"}, "", "3x4xf64", "(a b, b, b) -> (a b, a 1, a 1)");
  add("LayerNorm", {"2x3x4xf64", "4xf64", "4xf64"}, "{begin_norm_axis = -1, begin_params_axis = -1, epsilon = 0.001}",
      "2x3x4xf64", "(a b c, c, c) -> (a b c, a b 1, a b 1)");
  add("LayerNorm", {"2x3x4xf64", "4xf64", "4xf64"}, "{begin_norm_axis = 1, begin_params_axis = 2}", "2x3x4xf64",
      "(a b c, c, c) -> (a b c, a 1 1, a 1 1)");
  add("RmsNorm", {"3x4xf64", "4xf64"}, "", "3x4xf64", "(a b, b) -> (a b, a 1)");
  add("RmsNorm", {"2x3x4xf64", "3x4xf64"}, "{epsilon = 0.001}", "2x3x4xf64", "(a b c, b c) -> (a b c, a 1 1)");
  const char *loss = "SoftmaxCrossEntropyWithLogits";
  add(loss, {"3x4xf64", "3x4xf64"}, "", "f64", "(a b, a b) -> (()), reduce a");
  add(loss, {"3x4xf64", "3x4xf64"}, "{reduction = \"none\"}", "3xf64", "(a b, a b) -> (a)");
  add(loss, {"2x3x4xf64", "2x3xi32"}, "{sparse = true}", "f64", "(a b c, a b) -> (()), reduce a, reduce b");
  add(loss, {"3x4xf64", "3xi64"}, "{sparse = true, reduction = \"sum\"}", "f64", "(a b, a) -> (()), reduce a");
  add(loss, {"3x4xf64", "3xi32"}, "{sparse = true, reduction = \"none\"}", "3xf64", "(a b, a) -> (a)");
  cases.push_back({"Range", "Range", {}, "{limit = 5}", "5xi32", "() -> (a), whole a"});
  cases.push_back({"Range", "Range", {}, "{start = 7, limit = -2, delta = -3}", "3xi32", "() -> (a), whole a"});
}

static void addRandom(std::vector<OperatorCase> &cases) {
  cases.push_back({"dropout", "Dropout", {"4x6xf64"}, "", "4x6xf64", "(a b) -> (a b, a b)"});
  cases.push_back({"dropout seeds", "Dropout", {"2x3x4xf64"}, "{keep_prob = 0.75, Seed0 = 3 : i64, Seed1 = 4 : i64}", "2x3x4xf64",
                   "(a b c) -> (a b c, a b c)"});
  cases.push_back({"dropout of a scalar", "Dropout", {"f64"}, "", "f64", "(()) -> ((), ())"});
  cases.push_back({"random bits", "RandomBits", {"4x6xi64", "i64", "i64"}, "", "4x6xi64", "(a b, (), ()) -> (a b)"});
}

/// Communication that networks write themselves; the gradients among several ranks: test/cli/hybrid.test.
static void addRanks(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, const char *operand, const char *attributes, const char *result) {
    const char *rule = "(a b) -> (c d), whole a, whole b, whole c, whole d";
    cases.push_back({op, op, {operand}, attributes, result, rule});
  };
  const char *x = "4x6xf64", *whole = "4x6xi32";
  for (const char *op : {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"})
    add(op, x, "", x);
  for (const char *kind : {"{op = \"max\"}", "{op = \"min\"}", "{op = \"prod\"}"}) {
    add("AllReduce", x, kind, x);
    add("ReduceScatter", x, kind, x);
  }
  add("AllReduce", whole, "{op = \"prod\", rank_size = 2 : i64}", whole);
  add("AllGather", whole, "{rank_size = 3 : i64}", "12x6xi32");
  add("AllGather", whole, "{rank_list = array<i64: 0, 3>, rank_size = 12 : i64}", "8x6xi32");
  add("ReduceScatter", whole, "{rank_size = 2 : i64}", "2x6xi32");
  add("AlltoAll", x, "{split_count = 1 : i64, split_dim = -1 : i64, concat_dim = 0 : i64}", x);
  add("AlltoAll", whole, "{split_count = 2 : i64, split_dim = -1 : i64, concat_dim = 0 : i64, rank_size = 2 : i64}", "8x3xi32");
  add("Broadcast", whole, "{root_rank = 3 : i64, rank_size = 4 : i64}", whole);
  add("Send", x, "{sr_tag = 1 : i64, dest_rank = 0 : i64}", x);
  add("Receive", x, "{sr_tag = 1 : i64, src_rank = 0 : i64, dest_rank = 0 : i64}", x);
  add("Receive", whole, "{sr_tag = 1 : i64, src_rank = 0 : i64, dest_rank = 1 : i64, rank_size = 2 : i64}", whole);
  cases.push_back({"exchange", "NeighborExchange", {"4xf64", "4xf64"}, "{send_rank_ids = array<i64: 0, 0>, recv_rank_ids = array<i64: 0, 0>}",
                   "4xf64", "(a, b) -> (c, d), whole a, whole b, whole c, whole d"});
  cases.push_back({"exchange nothing", "NeighborExchange", {"4xi32"},
                   "{send_rank_ids = array<i64: -1, 0>, recv_rank_ids = array<i64: 1, -1>, rank_size = 2 : i64}", "4xi32",
                   "(a) -> (b), whole a, whole b"});
  cases.push_back({"rank", "Rank", {}, "{rank_size = 4 : i64}", "i32", "() -> (())"});
}

static void addChoices(std::vector<OperatorCase> &cases) {
  cases.push_back({"select equal", "SelectEqual", {"3x4xi64", "3x4xi64", "3x4xf64", "3x4xf64"}, "", "3x4xf64", "(a b, a b, a b, a b) -> (a b)"});
  cases.push_back({"select equal floats", "SelectEqual", {"5xf64", "5xf64", "5xf64", "5xf64"}, "", "5xf64", "(a, a, a, a) -> (a)"});
  cases.push_back({"select equal broadcast", "SelectEqual", {"3x1xi64", "4xi64", "3x4xf64", "f64"}, "", "3x4xf64", "(a 1, b, a b, ()) -> (a b)"});
  cases.push_back({"select equal of none", "SelectEqual", {"0x1xi64", "4xi64", "f64", "f64"}, "", "0x4xf64", "(a 1, b, (), ()) -> (a b)"});
  cases.push_back({"many copies", "Tile", {"3x1xf64"}, "{multiples = array<i64: 2, 70, 2>}", "2x210x2xf64", "(b 1) -> (a b c), exchange b"});
  cases.push_back({"many copies in two dimensions", "Tile", {"2x3xf64"}, "{multiples = array<i64: 9, 8>}", "18x24xf64", "(a b) -> (a b), exchange a, exchange b"});
  cases.push_back({"many copies in one of many dimensions", "Tile", {"1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x2x3xf64"}, "{multiples = array<i64: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 65, 1>}",
                   "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x130x3xf64", "(a b c d e f g h i j k l m n o p q r) -> (a b c d e f g h i j k l m n o p q r), exchange q"});
  // Queries that share one head of the keys.
  cases.push_back({"attention to one head", "ScaledDotProductAttention", {"2x3x8xf64", "2x5x2xf64", "2x5x2xf64"}, "{heads = 4, causal = true}", "2x3x8xf64",
                   "(b s h, b t k, b t k) -> (b s h, b h s), whole t, h by 2, whole k"});
  const std::vector<const char *> kept{"2x3x8xf64", "2x5x2xf64", "2x5x2xf64", "2x3x8xf64", "2x4x3xf64", "2x3x8xf64"};
  cases.push_back({"attention to one head, backward", "ScaledDotProductAttentionGrad", kept, "{heads = 4}", "2x3x8xf64",
                   "(b s h, b t k, b t k, b s h, b h s, b s h) -> (b s h, b t k, b t k), reduce s, whole t, reduce h by 2, whole k"});
  std::vector<const char *> masked = kept;
  masked.push_back("3x5xf64");
  cases.push_back({"attention to one head, mask", "ScaledDotProductAttentionMaskGrad", masked, "{heads = 4}", "1x4x3x5xf64",
                   "(b s h, b t k, b t k, b s h, b h s, b s h, s t) -> (1 h s t), reduce b, whole t, h by 2, whole k"});
}

static void addPrints(std::vector<OperatorCase> &cases) {
  cases.push_back({"print", "Print", {"4x6xf64"}, "", "4x6xf64", "(a b) -> (a b)"});
  cases.push_back({"print of a scalar", "Print", {"f64"}, "{message = \"the loss\"}", "f64", "(()) -> (())"});
  cases.push_back({"print of nothing", "Print", {"0x3xf64"}, "", "0x3xf64", "(a b) -> (a b)"});
  cases.push_back({"print of numbers", "Print", {"4xi32"}, "{message = \"places\"}", "4xi32", "(a) -> (a)"});
  cases.push_back({"print of truth", "Print", {"3x5xi1"}, "", "3x5xi1", "(a b) -> (a b)"});
}

const std::vector<OperatorCase> &operatorCases() {
  static const std::vector<OperatorCase> all = [] {
    std::vector<OperatorCase> cases;
    addProducts(cases);
    addUnary(cases);
    addMoreUnary(cases);
    addBinary(cases);
    addMoreBinary(cases);
    addReductions(cases);
    addMovement(cases);
    addViews(cases);
    addRegions(cases);
    addExpanded(cases);
    addLayers(cases);
    addRandom(cases);
    addRanks(cases);
    addPrints(cases);
    addChoices(cases);
    return cases;
  }();
  return all;
}

const std::map<std::string, std::string> &withoutGradient() {
  static const std::map<std::string, std::string> reasons = {
      {"ReluGrad", "backward helper: second derivatives are not built"},
      {"SigmoidGrad", "backward helper: second derivatives are not built"},
      {"TanhGrad", "backward helper: second derivatives are not built"},
      {"SiLUGrad", "backward helper: second derivatives are not built"},
      {"GeLUGrad", "backward helper: second derivatives are not built"},
      {"Conv2DBackpropInput", "backward helper: second derivatives are not built"},
      {"Conv2DBackpropFilter", "backward helper: second derivatives are not built"},
      {"MaxPoolGrad", "backward helper: second derivatives are not built"},
      {"AvgPoolGrad", "backward helper: second derivatives are not built"},
      {"AdaptiveAvgPool2DGrad", "backward helper: second derivatives are not built"},
      {"Range", "constant"},
      {"LinSpace", "constant"},
      {"Fill", "constant"},
      {"CumSumPieces", "made by the partition: CumSum has the gradient"},
      {"TopKPieces", "made by the partition: TopK has the gradient"},
      {"TopKMerge", "made by the partition: TopK has the gradient"},
      {"Rank", "constant"},
      {"RandomBits", "its operands are whole numbers"},
      {"GatherGrad", "backward helper: second derivatives are not built"},
      {"GatherDGrad", "backward helper: second derivatives are not built"},
      {"ScaledDotProductAttentionGrad", "backward helper: second derivatives are not built"},
      {"ScaledDotProductAttentionMaskGrad", "backward helper: second derivatives are not built"},
      {"OneHot", "its operand is whole numbers"},
      {"Argmax", "its result is whole numbers"},
      {"Argmin", "its result is whole numbers"},
      {"MSELossGrad", "backward helper: second derivatives are not built"},
      {"ApplyMomentum", "a step of the optimizer is not part of the loss"},
      {"SGD", "a step of the optimizer is not part of the loss"},
      {"Adam", "a step of the optimizer is not part of the loss"},
      {"AdamWeightDecay", "a step of the optimizer is not part of the loss"},
      {"LambNextMV", "a step of the optimizer is not part of the loss"},
      {"LambUpdateWithLR", "a step of the optimizer is not part of the loss"},
      {"ApplyRMSProp", "a step of the optimizer is not part of the loss"},
      {"ApplyCenteredRMSProp", "a step of the optimizer is not part of the loss"},
      {"ApplyAdagrad", "a step of the optimizer is not part of the loss"},
  };
  return reasons;
}

mlir::Operation *buildCase(TestNetwork &network, const OperatorCase &theCase, bool asParams) {
  std::vector<mlir::Value> operands;
  for (size_t i = 0; i < theCase.operands.size(); ++i) {
    std::string name = "x" + std::to_string(i);
    bool isFloat = llvm::isa<mlir::FloatType>(network.context.type(theCase.operands[i]).getElementType());
    operands.push_back(asParams && isFloat ? network.param(name, theCase.operands[i])
                                           : network.input(name, theCase.operands[i]));
  }
  mlir::Operation *op = network.op(theCase.op, operands, theCase.attributes);
  if (!op)
    return nullptr;
  std::vector<std::string> names;
  for (size_t i = 0; i < op->getNumResults(); ++i)
    names.push_back("y" + std::to_string(i));
  net::setValueNames(op, llvm::SmallVector<llvm::StringRef>(names.begin(), names.end()));
  return op;
}

} // namespace msc::test
