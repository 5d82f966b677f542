#include "test/dialects/net/OperatorCases.h"

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

static void addPooling(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule) { cases.push_back({op, op, operands, attributes, result, rule}); };
  const char *rule = "(n c h w) -> (n c h w), halo h, halo w";
  for (const char *op : {"MaxPool", "AvgPool"}) {
    add(op, {"2x3x4x6xf64"}, "{kernel_size = array<i64: 2>, strides = array<i64: 2>}", "2x3x2x3xf64", rule);
    add(op, {"2x1x5x4xf64"}, "{kernel_size = array<i64: 3, 2>, strides = array<i64: 2, 1>, pad_mode = \"same\"}", "2x1x3x4xf64", rule);
    add(op, {"1x2x5x5xf64"},
        "{kernel_size = array<i64: 3>, strides = array<i64: 2>, pad_mode = \"pad\", pad = array<i64: 1, 0, 2, 1>}", "1x2x2x3xf64", rule);
  }
  add("AvgPool", {"1x2x5x5xf64"},
      "{kernel_size = array<i64: 3>, pad_mode = \"pad\", pad = array<i64: 1>, count_include_pad = true}", "1x2x5x5xf64", rule);
  add("MaxPoolGrad", {"2x3x4x6xf64", "2x3x2x3xf64"}, "{kernel_size = array<i64: 2>, strides = array<i64: 2>}", "2x3x4x6xf64",
      "(n c h w, n c h w) -> (n c h w), halo h, halo w");
  add("AvgPoolGrad", {"2x3x2x3xf64"},
      "{input_size = array<i64: 2, 3, 4, 6>, kernel_size = array<i64: 2>, strides = array<i64: 2>}", "2x3x4x6xf64",
      rule);
  add("MaxPool", {"2x3x9x7xf64"}, "{kernel_size = array<i64: 3>, strides = array<i64: 2>}", "2x3x4x3xf64", rule);
  add("MaxPoolGrad", {"2x1x9x7xf64", "2x1x5x4xf64"},
      "{kernel_size = array<i64: 3>, strides = array<i64: 2>, pad_mode = \"same\"}", "2x1x9x7xf64",
      "(n c h w, n c h w) -> (n c h w), halo h, halo w");
  add("AdaptiveAvgPool2D", {"2x3x5x4xf64"}, "{output_size = array<i64: 2, 3>}", "2x3x2x3xf64", rule);
  add("AdaptiveAvgPool2D", {"2x3x5x4xf64"}, "{output_size = array<i64: 1>}", "2x3x1x1xf64", "(n c h w) -> (n c 1 1), reduce h, reduce w");
  add("AdaptiveAvgPool2D", {"2x3x5x4xf64"}, "{output_size = array<i64: 1, 4>}", "2x3x1x4xf64", "(n c h w) -> (n c 1 w), reduce h");
  add("AdaptiveAvgPool2DGrad", {"2x3x2x3xf64"}, "{input_size = array<i64: 2, 3, 5, 4>}", "2x3x5x4xf64", rule);
  add("AdaptiveAvgPool2DGrad", {"2x3x1x1xf64"}, "{input_size = array<i64: 2, 3, 5, 4>}", "2x3x5x4xf64", "(n c 1 1) -> (n c h w)");
}

static void addConvolutions(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule) { cases.push_back({op, op, operands, attributes, result, rule}); };
  const char *whole = ", halo h, halo w, whole s, whole t", *kernel = ", whole s, whole t";
  static std::vector<std::unique_ptr<std::string>> texts; // lives as long as the table
  auto rule = [&](std::string text, const char *more = "") {
    texts.push_back(std::make_unique<std::string>(text + more));
    return texts.back()->c_str();
  };
  const char *forward = rule("(n c h w, o c s t) -> (n o h w), reduce c", whole);
  add("Conv2D", {"2x3x5x6xf64", "4x3x3x2xf64"}, "", "2x4x3x5xf64", forward);
  add("Conv2D", {"2x2x5x6xf64", "3x2x3x3xf64"}, "{pad_mode = \"same\", stride = array<i64: 2>}", "2x3x3x3xf64", forward);
  add("Conv2D", {"1x2x6x5xf64", "2x2x2x3xf64"},
      "{pad_mode = \"pad\", pad = array<i64: 1, 0, 2, 1>, stride = array<i64: 2, 1>, dilation = array<i64: 2, 1>, mode = 1, out_channel = 2}",
      "1x2x3x6xf64", forward);
  add("Conv2D", {"2x3x4x4xf64", "3x1x3x3xf64"}, "{pad_mode = \"same\", group = 3}", "2x3x4x4xf64",
      rule("(n c h w, c 1 s t) -> (n c h w)", whole));
  add("Conv2D", {"2x4x4x3xf64", "6x2x2x2xf64"}, "{group = 2, kernel_size = array<i64: 2>}", "2x6x3x2xf64",
      rule("(n g h w, g c s t) -> (n g h w), g by 6, whole c", whole));
  add("Conv2D", {"1x2x4x3xf64", "4x1x2x2xf64"}, "{group = 2}", "1x4x3x2xf64", rule("(n g h w, g 1 s t) -> (n g h w), g by 2", whole));
  add("Conv2D", {"2x3x5x4xf64", "2x3x1x1xf64"}, "", "2x2x5x4xf64", rule("(n c h w, o c s t) -> (n o h w), reduce c", kernel));
  add("Conv2D", {"1x2x9x7xf64", "2x2x1x1xf64"}, "{stride = array<i64: 2>}", "1x2x5x4xf64", forward);
  add("Conv2D", {"1x1x9x11xf64", "2x1x3x2xf64"}, "{stride = array<i64: 1, 3>, dilation = array<i64: 3, 2>, pad_mode = \"same\"}",
      "1x2x9x4xf64", forward);
  const char *backward = rule("(n o h w, o c s t) -> (n c h w)", ", halo h, halo w, reduce o, whole s, whole t");
  add("Conv2DBackpropInput", {"2x4x3x5xf64", "4x3x3x2xf64"}, "{input_size = array<i64: 2, 3, 5, 6>}", "2x3x5x6xf64", backward);
  add("Conv2DBackpropInput", {"2x6x3x2xf64", "6x2x2x2xf64"}, "{input_size = array<i64: 2, 4, 4, 3>, group = 2}", "2x4x4x3xf64",
      rule("(n g h w, g c s t) -> (n g h w), g by 6, whole c", whole));
  add("Conv2DBackpropInput", {"1x2x4x4xf64", "2x1x1x2xf64"}, "{input_size = array<i64: 1, 1, 10, 9>, stride = array<i64: 3, 2>}",
      "1x1x10x9xf64", backward);
  add("Conv2DTranspose", {"2x4x3x5xf64", "4x3x3x2xf64"}, "{stride = array<i64: 2>}", "2x3x7x10xf64", backward);
  add("Conv2DTranspose", {"1x2x3x2xf64", "2x3x3x3xf64"}, "{stride = array<i64: 2>, pad_mode = \"same\"}", "1x3x6x4xf64", backward);
  add("Conv2DTranspose", {"1x2x3x2xf64", "2x1x3x3xf64"},
      "{group = 2, stride = array<i64: 2>, pad_mode = \"pad\", pad = array<i64: 1>, input_size = array<i64: 1, 2, 6, 4>}", "1x2x6x4xf64",
      rule("(n c h w, c 1 s t) -> (n c h w)", whole));
  add("Conv2DBackpropFilter", {"2x4x3x5xf64", "2x3x5x6xf64"}, "{filter_size = array<i64: 4, 3, 3, 2>}", "4x3x3x2xf64",
      rule("(n o h w, n c h w) -> (o c s t), reduce n, reduce h, halo h, reduce w, halo w", kernel));
  add("Conv2DBackpropFilter", {"1x2x5x4xf64", "1x2x9x7xf64"}, "{filter_size = array<i64: 2, 2, 3, 3>, stride = array<i64: 2>, pad_mode = \"same\"}",
      "2x2x3x3xf64", rule("(n o h w, n c h w) -> (o c s t), reduce n, reduce h, halo h, reduce w, halo w", kernel));
  add("Conv2DBackpropFilter", {"2x6x3x2xf64", "2x4x4x3xf64"}, "{filter_size = array<i64: 6, 2, 2, 2>, group = 2}", "6x2x2x2xf64",
      rule("(n g h w, n g h w) -> (g c s t), reduce n, g by 6, whole c, reduce h, halo h, reduce w, halo w", kernel));
}

static void addBatchNorm(std::vector<OperatorCase> &cases) {
  auto add = [&](std::vector<const char *> operands, const char *attributes, const char *result, const char *rule,
                 Domain domain = Domain::Any) { cases.push_back({"BatchNorm", "BatchNorm", operands, attributes, result, rule, domain}); };
  const char *image = "(a b c d, b, b, b, b) -> (a b c d, b, b)";
  add({"3x2x2x3xf64", "2xf64", "2xf64", "2xf64", "2xf64"}, "{is_training = true}", "3x2x2x3xf64", image);
  add({"4x3xf64", "3xf64", "3xf64", "3xf64", "3xf64"}, "{is_training = true, epsilon = 0.01, momentum = 0.9}", "4x3xf64",
      "(a b, b, b, b, b) -> (a b, b, b)");
  add({"3x2x2x3xf64", "2xf64", "2xf64", "2xf64", "2xf64"}, "{is_training = false, epsilon = 0.1}", "3x2x2x3xf64", image, Domain::Positive);
}

static void addLosses(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule, Domain domain = Domain::Any) { cases.push_back({op, op, operands, attributes, result, rule, domain}); };
  for (const char *op : {"L1Loss", "SmoothL1Loss", "KLDivLoss"}) {
    Domain domain = std::string(op) == "KLDivLoss" ? Domain::Positive : Domain::Any;
    add(op, {"3x4xf64", "3x4xf64"}, "{reduction = \"mean\"}", "f64", "(a b, a b) -> (()), reduce a, reduce b", domain);
    add(op, {"3x4xf64", "3x4xf64"}, "{reduction = \"none\"}", "3x4xf64", "(a b, a b) -> (a b)", domain);
    add(op, {"5xf64", "5xf64"}, "{reduction = \"sum\"}", "f64", "(a, a) -> (()), reduce a", domain);
  }
  add("L1Loss", {"3x4xf64", "3x4xf64"}, "", "f64", "(a b, a b) -> (()), reduce a, reduce b");
  add("SmoothL1Loss", {"3x4xf64", "3x4xf64"}, "{beta = 0.5}", "3x4xf64", "(a b, a b) -> (a b)");
  add("KLDivLoss", {"3x4xf64", "3x4xf64"}, "{reduction = \"batchmean\"}", "f64", "(a b, a b) -> (()), reduce a, reduce b", Domain::Positive);
  add("BinaryCrossEntropy", {"3x4xf64", "3x4xf64", "4xf64"}, "", "f64", "(a b, a b, b) -> (()), reduce a, reduce b", Domain::Unit);
  add("BinaryCrossEntropy", {"3x4xf64", "3x4xf64", "f64"}, "{reduction = \"none\"}", "3x4xf64", "(a b, a b, ()) -> (a b)", Domain::Unit);
  add("BCEWithLogitsLoss", {"3x4xf64", "3x4xf64", "4xf64", "f64"}, "", "f64", "(a b, a b, b, ()) -> (()), reduce a, reduce b");
  add("BCEWithLogitsLoss", {"3x4xf64", "3x4xf64", "3x1xf64", "4xf64"}, "{reduction = \"none\"}", "3x4xf64", "(a b, a b, a 1, b) -> (a b)");
  add("NLLLoss", {"3x4xf64", "3xi32", "4xf64"}, "", "f64", "(a b, a, b) -> ((), ()), reduce a", Domain::Positive);
  add("NLLLoss", {"2x3x4xf64", "2x3xi64", "4xf64"}, "{reduction = \"sum\", ignore_index = 1}", "f64",
      "(a b c, a b, c) -> ((), ()), reduce a, reduce b", Domain::Positive);
  add("NLLLoss", {"5x4xf64", "5xi32", "4xf64"}, "{reduction = \"none\"}", "5xf64", "(a b, a, b) -> (a, ())", Domain::Positive);
  add("SparseSoftmaxCrossEntropyWithLogits", {"3x4xf64", "3xi32"}, "", "f64", "(a b, a) -> (()), reduce a");
  add("OneHot", {"3x2xi32"}, "{depth = 4, dtype = f64}", "3x2x4xf64", "(a b) -> (a b c)");
  add("OneHot", {"3x2xi64"}, "{depth = 3, on_value = 2.0, off_value = -1.0, axis = 1, dtype = f64}", "3x3x2xf64", "(a c) -> (a b c)");
  add("OneHot", {"5xi32"}, "{depth = 2, axis = 0}", "2x5xf32", "(b) -> (a b)");
  for (const char *op : {"ReduceAll", "ReduceAny"}) {
    add(op, {"3x4xi1"}, "", "i1", "(a b) -> (())");
    add(op, {"3x2xi1"}, "{axis = array<i64: 1>, keep_dims = true}", "3x1xi1", "(a b) -> (a 1)");
    add(op, {"3x0xi1"}, "{axis = array<i64: 1>}", "3xi1", "(a b) -> (a)");
  }
  for (const char *op : {"ArgMaxWithValue", "ArgMinWithValue"}) {
    add(op, {"3x4xf64"}, "", "4xi32", "(a b) -> (b, b)");
    add(op, {"3x4x2xf64"}, "{axis = -2, keep_dims = true}", "3x1x2xi32", "(a b c) -> (a 1 c, a 1 c)");
    add(op, {"3x5xi32"}, "{axis = 1}", "3xi32", "(a b) -> (a, a)");
  }
  for (const char *op : {"Argmax", "Argmin"}) {
    add(op, {"3x4xf64"}, "", "3xi32", "(a b) -> (a)");
    add(op, {"3x9xi32"}, "{axis = 0, output_type = i64}", "9xi64", "(a b) -> (b)");
  }
}

static void addLookups(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule, Domain domain = Domain::Any) { cases.push_back({op, op, operands, attributes, result, rule, domain}); };
  add("Gather", {"5x4xf64", "3xi32"}, "{axis = 0}", "3x4xf64", "(b c, a) -> (a c), reduce b", Domain::Index);
  add("Gather", {"2x5x3xf64", "4x2xi64"}, "{axis = -2}", "2x4x2x3xf64", "(c d e, a b) -> (c a b e), reduce d", Domain::Index);
  add("Gather", {"5xf64", "i32"}, "{axis = 0}", "f64", "(a, ()) -> (()), reduce a", Domain::Index);
  add("Gather", {"5x2xi1", "3xi32"}, "{axis = 0}", "3x2xi1", "(b c, a) -> (a c), whole b", Domain::Index);
  add("EmbeddingLookup", {"5x4xf64", "3x2xi32"}, "", "3x2x4xf64", "(c d, a b) -> (a b d), reduce c");
  add("EmbeddingLookup", {"3x4xf64", "6xi64"}, "{offset = -2}", "6x4xf64", "(b c, a) -> (a c), reduce b");
  add("GatherGrad", {"3xi32", "3x4xf64"}, "{axis = 0, size = 5}", "5x4xf64", "(a, a c) -> (b c), reduce a");
  add("GatherGrad", {"4x2xi64", "2x4x2x3xf64"}, "{axis = 1, size = 3, offset = 1}", "2x3x3xf64",
      "(a b, c a b e) -> (c d e), reduce a, reduce b");
  add("UnsortedSegmentSum", {"6x4xf64", "6xi32"}, "{num_segments = 3}", "3x4xf64", "(a c, a) -> (b c), reduce a");
  add("UnsortedSegmentSum", {"3x2x2xi64", "3x2xi64"}, "{num_segments = 2}", "2x2xi64", "(a b d, a b) -> (c d), reduce a, reduce b");
  add("ScatterAdd", {"5x4xf64", "3xi32", "3x4xf64"}, "", "5x4xf64", "(b c, a, a c) -> (b c)");
  add("ScatterAdd", {"3xf64", "4x2xi64", "4x2xf64"}, "", "3xf64", "(c, a b, a b) -> (c)");
  add("GatherD", {"3x5xf64", "3x4xi32"}, "{dim = 1}", "3x4xf64", "(a c, a b) -> (a b), reduce c", Domain::Index);
  add("GatherD", {"4x2xf64", "6x2xi64"}, "{dim = 0}", "6x2xf64", "(c b, a b) -> (a b), reduce c");
  add("GatherDGrad", {"3x4xi32", "3x4xf64"}, "{dim = 1, size = 3}", "3x3xf64", "(a b, a b) -> (a c), reduce b", Domain::Index);
  add("CumSum", {"3x4xf64"}, "{axis = 1}", "3x4xf64", "(a b) -> (a b)");
  add("CumSum", {"3x4x2xf64"}, "{axis = -2, exclusive = true}", "3x4x2xf64", "(a b c) -> (a b c)");
  add("CumSum", {"5x2xi32"}, "{axis = 0, reverse = true}", "5x2xi32", "(a b) -> (a b)");
  add("CumSum", {"5xf64"}, "{axis = 0, reverse = true, exclusive = true}", "5xf64", "(a) -> (a)");
  add("CumSumPieces", {"3x5xf64"}, "{axis = 1, pieces = 2}", "3x5xf64", "(a b) -> (a b)");
  add("CumSumPieces", {"3x5xf64"}, "{axis = 1, pieces = 1, reverse = true}", "3x5xf64", "(a b) -> (a b), whole b");
  add("TopK", {"3x5xf64"}, "{k = 2}", "3x2xf64", "(a b) -> (a c, a c), whole c");
  add("TopK", {"7xf64"}, "{k = 7, sorted = false}", "7xf64", "(a) -> (b, b), whole b");
  add("TopK", {"3x9xi32"}, "{k = 4}", "3x4xi32", "(a b) -> (a c, a c), whole c");
  add("TopKPieces", {"3x7xf64"}, "{k = 2, pieces = 4}", "3x8xf64", "(a b) -> (a b, a b), exchange b");
  add("TopKPieces", {"3x9xi32"}, "{k = 4, pieces = 1}", "3x4xi32", "(a b) -> (a c, a c), whole b, whole c");
  add("TopKMerge", {"3x6xf64", "3x6xi32"}, "{k = 4, sorted = false}", "3x4xf64", "(a b, a b) -> (a c, a c), whole b, whole c");
}

static void addIndexed(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule, Domain domain = Domain::Any) { cases.push_back({op, op, operands, attributes, result, rule, domain}); };
  add("Gather", {"3x5x2xf64", "3x4xi32"}, "{axis = 1, batch_dims = 1}", "3x4x2xf64", "(a b c, a d) -> (a d c)", Domain::Index);
  add("Gather", {"2x3x5xf64", "2x4x2xi64"}, "{axis = -1, batch_dims = 1}", "2x3x4x2xf64", "(a b c, a d e) -> (a b d e)", Domain::Index);
  add("GatherNd", {"3x4x2xf64", "5x2xi32"}, "", "5x2xf64", "(a b c, d e) -> (d c), whole e", Domain::Index);
  add("GatherNd", {"5x3xf64", "2x3x1xi64"}, "", "2x3x3xf64", "(a b, c d e) -> (c d b), whole e", Domain::Index);
  add("GatherNd", {"3x4xf64", "2xi32"}, "", "f64", "(a b, c) -> (()), whole c", Domain::Index);
  for (const char *op : {"TensorScatterAdd", "TensorScatterUpdate"}) {
    add(op, {"3x4x2xf64", "5x2xi32", "5x2xf64"}, "", "3x4x2xf64", "(a b c, d e, d c) -> (a b c), whole e");
    add(op, {"5x3xf64", "2x3x1xi64", "2x3x3xf64"}, "", "5x3xf64", "(a b, c d e, c d b) -> (a b), whole e");
    add(op, {"6xi32", "4x1xi32", "4xi32"}, "", "6xi32", "(a, b c, b) -> (a), whole c");
    add(op, {"3x4xf64", "2xi32", "f64"}, "", "3x4xf64", "(a b, c, ()) -> (a b), whole c", Domain::Index);
  }
  for (auto [op, word] : {std::pair("UnsortedSegmentMax", "max"), std::pair("UnsortedSegmentMin", "min")}) {
    static std::vector<std::unique_ptr<std::string>> rules; // kept for the program's lifetime
    auto rule = [&](std::string text, int count) {
      for (int i = 0; i < count; ++i)
        text += std::string(", ") + word + " " + static_cast<char>('a' + i);
      rules.push_back(std::make_unique<std::string>(text));
      return rules.back()->c_str();
    };
    add(op, {"9x4xf64", "9xi32"}, "{num_segments = 2}", "2x4xf64", rule("(a c, a) -> (b c)", 1), Domain::Index);
    add(op, {"3x2x2xi64", "3x2xi64"}, "{num_segments = 2}", "2x2xi64", rule("(a b d, a b) -> (c d)", 2));
  }
  add("BatchMatMul", {"2x3x4xf64", "2x5x4xf64"}, "{transpose_b = true}", "2x3x5xf64", "(b m k, b n k) -> (b m n), reduce k");
  add("BatchMatMul", {"2x4x3xf64", "2x4x5xf64"}, "{transpose_a = true}", "2x3x5xf64", "(b k m, b k n) -> (b m n), reduce k");
  add("Dense", {"3x4xf64", "5x4xf64", "5xf64"}, "", "3x5xf64", "(m k, n k, n) -> (m n), reduce k");
  add("Dense", {"2x3x4xf64", "5x4xf64"}, "", "2x3x5xf64", "(b m k, n k) -> (b m n), reduce k");
  add("AddN", {"3x4xf64", "3x4xf64", "3x4xf64"}, "", "3x4xf64", "(a b, a b, a b) -> (a b)");
  add("AddN", {"5xi32"}, "", "5xi32", "(a) -> (a)");
  cases.push_back({"LinSpace", "LinSpace", {}, "{start = -1.0, stop = 2.0, num = 4}", "4xf32", "() -> (a), whole a"});
  cases.push_back({"LinSpace", "LinSpace", {}, "{start = 0.5, stop = 2.0, num = 1}", "1xf32", "() -> (a), whole a"});
  cases.push_back({"Fill", "Fill", {}, "{type = f64, shape = array<i64: 2, 3>, value = 0.5}", "2x3xf64", "() -> (a b), whole a, whole b"});
  cases.push_back({"Fill", "Fill", {}, "{type = i1, shape = array<i64>, value = 1.0}", "i1", "() -> (())"});
}

static void addAttention(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule) { cases.push_back({op, op, operands, attributes, result, rule}); };
  const char *forward = "ScaledDotProductAttention", *backward = "ScaledDotProductAttentionGrad";
  add(forward, {"2x3x8xf64", "2x5x8xf64", "2x5x8xf64"}, "{heads = 4}", "2x3x8xf64",
      "(b s h, b t h, b t h) -> (b s h, b h s), whole t, h by 2");
  add(forward, {"2x4x12xf64", "2x4x6xf64", "2x4x6xf64"}, "{heads = 4, causal = true, scale = 0.5}", "2x4x12xf64",
      "(b s h, b t h, b t h) -> (b s h, b h s), whole t, h by 6");
  add(backward, {"2x3x8xf64", "2x5x4xf64", "2x5x4xf64", "2x3x8xf64", "2x4x3xf64", "2x3x8xf64"}, "{heads = 4}", "2x3x8xf64",
      "(b s h, b t h, b t h, b s h, b h s, b s h) -> (b s h, b t h, b t h), reduce s, whole t, h by 4");
  auto masked = [&](const char *mask, const char *attributes, const char *dims) {
    static std::vector<std::unique_ptr<std::string>> rules; // kept for the program's lifetime
    rules.push_back(std::make_unique<std::string>("(b s h, b t h, b t h, " + std::string(dims) + ") -> (b s h, b h s), whole t, h by 2"));
    add(forward, {"2x3x8xf64", "2x5x8xf64", "2x5x8xf64", mask}, attributes, "2x3x8xf64", rules.back()->c_str());
  };
  masked("3x5xf64", "{heads = 4}", "s t");
  masked("2x1x1x5xi1", "{heads = 4}", "b 1 1 t");
  masked("4x3x5xf64", "{heads = 4, causal = true}", "h s t");
  masked("2x4x3x5xi1", "{heads = 4}", "b h s t");
  masked("2x1x3x1xf64", "{heads = 4, scale = 0.5}", "b 1 s 1");
  std::vector<const char *> kept = {"2x3x8xf64", "2x5x4xf64", "2x5x4xf64", "2x3x8xf64", "2x4x3xf64", "2x3x8xf64"};
  auto with = [&](const char *mask) {
    std::vector<const char *> operands = kept;
    operands.push_back(mask);
    return operands;
  };
  add(backward, with("3x5xi1"), "{heads = 4}", "2x3x8xf64",
      "(b s h, b t h, b t h, b s h, b h s, b s h, s t) -> (b s h, b t h, b t h), reduce s, whole t, h by 4");
  const char *mask = "ScaledDotProductAttentionMaskGrad";
  add(mask, with("3x5xf64"), "{heads = 4}", "1x4x3x5xf64",
      "(b s h, b t h, b t h, b s h, b h s, b s h, s t) -> (1 h s t), reduce b, whole t, h by 4");
  add(mask, with("2x1x1x5xf64"), "{heads = 4, causal = true}", "2x4x1x5xf64",
      "(b s h, b t h, b t h, b s h, b h s, b s h, b 1 1 t) -> (b h 1 t), reduce s, whole t, h by 4");
  add(mask, with("2x4x3x5xf64"), "{heads = 4}", "2x4x3x5xf64",
      "(b s h, b t h, b t h, b s h, b h s, b s h, b h s t) -> (b h s t), whole t, h by 4");
}

static void addGated(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *op, std::vector<const char *> operands, const char *attributes, const char *result,
                 const char *rule) { cases.push_back({op, op, operands, attributes, result, rule}); };
  add("Swiglu", {"3x8xf64"}, "", "3x4xf64", "(a b) -> (a b), exchange b");
  add("Swiglu", {"2x6x3xf64"}, "{dim = 1}", "2x3x3xf64", "(a b c) -> (a b c), exchange b");
  const char *rotary = "RotaryPositionEmbedding";
  add(rotary, {"2x5x3x4xf64", "5x1x4xf64", "5x1x4xf64"}, "", "2x5x3x4xf64", "(a b c d, b 1 d, b 1 d) -> (a b c d), exchange d");
  add(rotary, {"2x3x5x4xf64", "5x4xf64", "5x4xf64"}, "{mode = 1}", "2x3x5x4xf64", "(a b c d, c d, c d) -> (a b c d), exchange d");
  add(rotary, {"6xf64", "6xf64", "6xf64"}, "", "6xf64", "(a, a, a) -> (a), exchange a");
  add("GroupNorm", {"3x4x2x3xf64", "4xf64", "4xf64"}, "{num_groups = 2}", "3x4x2x3xf64",
      "(a b c d, b, b) -> (a b c d, a e, a e), whole e");
  add("GroupNorm", {"2x6x5xf64", "6xf64", "6xf64"}, "{num_groups = 1, eps = 0.001}", "2x6x5xf64",
      "(a b c, b, b) -> (a b c, a d, a d), whole d");
  add("GroupNorm", {"3x6xf64", "6xf64", "6xf64"}, "{num_groups = 3, eps = 0.5}", "3x6xf64", "(a b, b, b) -> (a b, a c, a c), whole c");
}

static void addTraining(std::vector<OperatorCase> &cases) {
  cases.push_back({"mse", "MSELoss", {"3x4xf64", "3x4xf64"}, "", "f64", "(a b, a b) -> (()), reduce a, reduce b"});
  cases.push_back({"mse sum",
                   "MSELoss",
                   {"3x4xf64", "3x4xf64"},
                   "{reduction = \"sum\"}",
                   "f64",
                   "(a b, a b) -> (()), reduce a, reduce b"});
  cases.push_back(
      {"mse none", "MSELoss", {"3x4xf64", "3x4xf64"}, "{reduction = \"none\"}", "3x4xf64", "(a b, a b) -> (a b)"});
  cases.push_back({"mse grad", "MSELossGrad", {"3x4xf64", "3x4xf64", "f64"}, "", "3x4xf64", "(a b, a b, ()) -> (a b)"});
  cases.push_back({"mse grad sum",
                   "MSELossGrad",
                   {"5xf64", "5xf64", "f64"},
                   "{reduction = \"sum\"}",
                   "5xf64",
                   "(a, a, ()) -> (a)"});
  cases.push_back({"mse grad none",
                   "MSELossGrad",
                   {"5xf64", "5xf64", "5xf64"},
                   "{reduction = \"none\"}",
                   "5xf64",
                   "(a, a, a) -> (a)"});
  const char *momentumRule = "(a b, a b, (), a b) -> (a b, a b)";
  std::vector<const char *> momentum = {"3x4xf64", "3x4xf64", "f64", "3x4xf64"};
  cases.push_back({"momentum", "ApplyMomentum", momentum, "{momentum = 0.9}", "3x4xf64", momentumRule});
  cases.push_back({"nesterov", "ApplyMomentum", momentum,
                   "{momentum = 0.9, use_nesterov = true, weight_decay = 0.1, loss_scale = 4.0}", "3x4xf64",
                   momentumRule});
  cases.push_back(
      {"dampened", "ApplyMomentum", momentum, "{momentum = 0.5, dampening = 0.25}", "3x4xf64", momentumRule});
  cases.push_back({"sgd", "SGD", {"3x4xf64", "f64", "3x4xf64"}, "", "3x4xf64", "(a b, (), a b) -> (a b)"});
  cases.push_back({"sgd decay",
                   "SGD",
                   {"5xf64", "f64", "5xf64"},
                   "{weight_decay = 0.5, loss_scale = 2.0}",
                   "5xf64",
                   "(a, (), a) -> (a)"});
}

/// Optimizers that keep means of squares.
static void addAdaptive(std::vector<OperatorCase> &cases) {
  auto add = [&](const char *name, const char *op, std::vector<const char *> operands, const char *attributes, const char *rule) {
    cases.push_back({name, op, std::move(operands), attributes, "3x4xf64", rule, Domain::Positive});
  };
  const char *t = "3x4xf64", *s = "f64";
  const char *adamRule = "(a b, a b, a b, (), (), (), a b) -> (a b, a b, a b)";
  add("adam", "Adam", {t, t, t, s, s, s, t}, "{beta1 = 0.9, beta2 = 0.99, epsilon = 0.125}", adamRule);
  add("adam nesterov", "Adam", {t, t, t, s, s, s, t},
      "{beta1 = 0.9, beta2 = 0.99, epsilon = 0.0, use_nesterov = true, weight_decay = 0.5, loss_scale = 2.0}", adamRule);
  add("adamw", "Adam", {t, t, t, s, s, s, t},
      "{beta1 = 0.9, beta2 = 0.99, epsilon = 0.125, decoupled = true, weight_decay = 0.5, loss_scale = 2.0}", adamRule);
  add("adam weight decay", "AdamWeightDecay", {t, t, t, s, t},
      "{beta1 = 0.9, beta2 = 0.99, epsilon = 0.125, weight_decay = 0.5, loss_scale = 2.0}",
      "(a b, a b, a b, (), a b) -> (a b, a b, a b)");
  add("lamb direction", "LambNextMV", {t, t, t, s, s, t},
      "{beta1 = 0.9, beta2 = 0.99, epsilon = 0.125, weight_decay = 0.5, loss_scale = 2.0}",
      "(a b, a b, a b, (), (), a b) -> (a b, a b, a b)");
  add("lamb step", "LambUpdateWithLR", {t, s, s, s, t}, "", "(a b, (), (), (), a b) -> (a b)");
  add("rmsprop", "ApplyRMSProp", {t, t, t, s, t},
      "{decay = 0.9, momentum = 0.5, epsilon = 0.125, weight_decay = 0.5, loss_scale = 2.0}",
      "(a b, a b, a b, (), a b) -> (a b, a b, a b)");
  add("centered rmsprop", "ApplyCenteredRMSProp", {t, t, t, t, s, t}, "{decay = 0.9, momentum = 0.5, epsilon = 16.0}",
      "(a b, a b, a b, a b, (), a b) -> (a b, a b, a b, a b)");
  add("adagrad", "ApplyAdagrad", {t, t, s, t}, "{weight_decay = 0.5, loss_scale = 2.0}", "(a b, a b, (), a b) -> (a b, a b)");
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
    addPooling(cases);
    addConvolutions(cases);
    addBatchNorm(cases);
    addLosses(cases);
    addLookups(cases);
    addIndexed(cases);
    addAttention(cases);
    addGated(cases);
    addTraining(cases);
    addAdaptive(cases);
    addRandom(cases);
    addRanks(cases);
    addPrints(cases);
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
