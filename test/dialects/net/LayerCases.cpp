#include "test/dialects/net/LayerCases.h"

namespace msc::test {

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

void addLayers(std::vector<OperatorCase> &cases) {
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
}

} // namespace msc::test
