// Strategies give the device matrices and tensor maps that MindSpore's rules give: every rank holds the same part of every tensor, and is
// partial with the same ranks. MindSpore counts axes from the right, -1 is whole.
#include "passes/sharding/Convert.h"
#include "passes/sharding/OutStrategy.h"
#include "passes/sharding/Strategy.h"
#include "test/dialects/net/TestNetwork.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::passes;

namespace {

using Map = std::vector<int64_t>;

/// One operator on 8 devices.
struct Rule {
  const char *op, *attributes;
  std::vector<const char *> operands;
  net::Strategy strategy;
  std::vector<int64_t> matrix;
  std::vector<Map> maps; ///< of all operands, then of the first result
  std::vector<int64_t> partial = {}; ///< axes over which that result is summed, counted from the right
  std::vector<int64_t> out = {};     ///< its out_strategy, and how that leaves it: nothing is summed any more
  std::vector<int64_t> outMatrix = {};
  Map outMap = {};
};

const Rule rules[] = {
    {"MatMul", "", {"16x32xf32", "32x16xf32"}, {{2, 4}, {4, 1}}, {2, 4, 1}, {{2, 1}, {1, 0}, {2, 0}}, {1}},
    {"MatMul", "", {"16x32xf32", "32x16xf32"}, {{2, 1}, {1, 2}}, {2, 1, 2, 2}, {{3, 2}, {2, 1}, {3, 1}}}, // the rest repeats on the right
    {"MatMul", "{transpose_b = true}", {"16x32xf32", "16x32xf32"}, {{2, 2}, {2, 2}}, {2, 2, 2}, {{2, 1}, {0, 1}, {2, 0}}, {1}},
    {"BatchMatMul", "", {"4x8x16xf32", "4x16x8xf32"}, {{2, 1, 2}, {2, 2, 2}}, {2, 1, 2, 2}, {{3, 2, 1}, {3, 1, 0}, {3, 2, 0}}, {1}},
    {"Add", "", {"16x32xf32", "16x32xf32"}, {{2, 4}, {2, 4}}, {2, 4}, {{1, 0}, {1, 0}, {1, 0}}},
    {"Mul", "", {"16x32xf32", "32xf32"}, {{2, 4}, {4}}, {2, 4}, {{1, 0}, {0}, {1, 0}}},
    {"Sub", "", {"16x32xf32", "16x1xf32"}, {{2, 4}, {2, 1}}, {2, 4}, {{1, 0}, {1, -1}, {1, 0}}},
    {"BiasAdd", "", {"16x32xf32", "32xf32"}, {{2, 4}, {4}}, {2, 4}, {{1, 0}, {0}, {1, 0}}},
    {"ReLU", "", {"16x32xf32"}, {{2, 4}}, {2, 4}, {{1, 0}, {1, 0}}},
    {"Softmax", "", {"16x32xf32"}, {{4, 1}}, {4, 1, 2}, {{2, 1}, {2, 1}}},
    {"LayerNorm", "{begin_norm_axis = -1, begin_params_axis = -1}", {"8x4x32xf32", "32xf32", "32xf32"}, {{2, 4, 1}, {1}, {1}}, {2, 4, 1},
     {{2, 1, 0}, {0}, {0}, {2, 1, 0}}},
    {"ReduceSum", "{axis = array<i64: 1>}", {"16x32xf32"}, {{2, 4}}, {2, 4}, {{1, 0}, {1}}, {0}},
    {"ReduceMean", "{axis = array<i64: 0>, keep_dims = true}", {"16x32xf32"}, {{2, 4}}, {2, 4}, {{1, 0}, {-1, 0}}, {1}},
    {"SoftmaxCrossEntropyWithLogits", "{reduction = \"none\"}", {"16x32xf32", "16x32xf32"}, {{4, 1}, {4, 1}}, {4, 1, 2}, {{2, 1}, {2, 1}, {2}}},
    {"Transpose", "{perm = array<i64: 1, 0>}", {"16x32xf32"}, {{2, 4}}, {2, 4}, {{1, 0}, {0, 1}}},
    {"Concat", "{axis = 1}", {"16x8xf32", "16x8xf32"}, {{4, 1}, {4, 1}}, {4, 1, 2}, {{2, 1}, {2, 1}, {2, 1}}},
    // [n, i, h, w, o]
    {"Conv2D", "{pad_mode = \"same\"}", {"4x4x16x16xf32", "8x4x3x3xf32"}, {{2, 2, 1, 1}, {2, 2, 1, 1}}, {2, 2, 1, 1, 2},
     {{4, 3, 2, 1}, {0, 3, -1, -1}, {4, 0, 2, 1}}, {3}},
    {"Conv2D", "{pad_mode = \"same\"}", {"4x4x16x16xf32", "8x4x3x3xf32"}, {{1, 1, 4, 2}, {1, 1, 1, 1}}, {1, 1, 4, 2, 1},
     {{4, 3, 2, 1}, {0, 3, -1, -1}, {4, 0, 2, 1}}},
    {"MaxPool", "{kernel_size = array<i64: 2>, strides = array<i64: 2>}", {"4x4x16x16xf32"}, {{2, 1, 2, 2}}, {2, 1, 2, 2}, {{3, 2, 1, 0}, {3, 2, 1, 0}}},
    {"BatchNorm", "{is_training = true}", {"4x8x4x4xf32", "8xf32", "8xf32", "8xf32", "8xf32"}, {{2, 4, 1, 1}, {4}, {4}, {4}, {4}}, {2, 4, 1, 1},
     {{3, 2, 1, 0}, {2}, {2}, {2}, {2}, {3, 2, 1, 0}}},
    // [rows and columns of the table, indices], as of 2.0
    {"Gather", "{axis = 0}", {"16x32xf32", "8xi32"}, {{1, 8}, {1}}, {1, 8, 1}, {{2, 1}, {0}, {0, 1}}},
    {"Gather", "{axis = 0}", {"16x32xf32", "8xi32"}, {{8, 1}, {1}}, {8, 1, 1}, {{2, 1}, {0}, {0, 1}}, {2}},
    {"EmbeddingLookup", "", {"16x32xf32", "8xi32"}, {{4, 2}, {1}}, {4, 2}, {{1, 0}, {-1}, {-1, 0}}, {1}},
    // [indices, columns], as of 2.7
    {"Gather", "{axis = 0}", {"16x32xf32", "8xi32"}, {{1, 2}, {4}}, {4, 1, 2}, {{1, 0}, {2}, {2, 0}}},
    // rows and indices: [first dimension of the indices, (second,) rows]
    {"Gather", "{axis = 0}", {"16x32xf32", "8x4xi32"}, {{4, 1}, {2, 1}}, {2, 4}, {{0, -1}, {1, -1}, {1, -1, -1}}, {0}},
    {"Gather", "{axis = 0}", {"16x32xf32", "8x4xi32"}, {{4, 1}, {2, 1}}, {2, 4}, {{0, -1}, {1, -1}, {1, -1, -1}}, {0}, {8, 1, 1}, {8}, {0, -1, -1}},
    {"Gather", "{axis = 0}", {"16x32xf32", "8x4xi32"}, {{2, 1}, {2, 2}}, {2, 2, 2}, {{0, -1}, {2, 1}, {2, 1, -1}}, {0}},
    // with an out_strategy: the sum goes to the ranks that summed, along dimension 0
    {"MatMul", "", {"16x32xf32", "32x16xf32"}, {{2, 4}, {4, 1}}, {2, 4, 1}, {{2, 1}, {1, 0}, {2, 0}}, {1}, {8, 1}, {8, 1}, {1, 0}},
    {"MatMul", "", {"16x32xf32", "32x16xf32"}, {{2, 2}, {2, 2}}, {2, 2, 2}, {{2, 1}, {1, 0}, {2, 0}}, {1}, {4, 2}, {4, 2}, {1, 0}},
    {"MatMul", "", {"16x32xf32", "32x16xf32"}, {{1, 4}, {4, 2}}, {1, 4, 2}, {{2, 1}, {1, 0}, {2, 0}}, {1}, {1, 2}, {1, 4, 2}, {2, 0}},
    {"Dense", "", {"16x32xf32", "16x32xf32", "16xf32"}, {{2, 2}, {2, 2}, {2}}, {2, 2, 2}, {{2, 1}, {0, 1}, {0}, {2, 0}}, {1}},
    // strategies of the result there
    {"OneHot", "{depth = 16}", {"8xi32"}, {{8}}, {8, 1}, {{1}, {1, 0}}},
    {"OneHot", "{depth = 16}", {"8xi32"}, {{2}}, {2, 4}, {{1}, {1, -1}}, {}, {2, 4}, {2, 4}, {1, 0}},
    {"OneHot", "{depth = 16, axis = 0}", {"8xi32"}, {{2}}, {2, 4}, {{1}, {-1, 1}}, {}, {4, 2}, {2, 4}, {0, 1}},
    // strategies of the multiples there
    {"Tile", "{multiples = array<i64: 8, 1>}", {"2x4xf32"}, {{1, 1}}, {8, 1}, {{-1, -1}, {-1, -1}}, {}, {8, 1}, {8, 1}, {1, 0}},
    {"Tile", "{multiples = array<i64: 1, 4>}", {"16x8xf32"}, {{2, 1}}, {2, 4}, {{1, -1}, {1, -1}}, {}, {2, 4}, {2, 4}, {1, 0}},
    {"Split", "{axis = 1, output_num = 2}", {"16x32xf32"}, {{4, 1}}, {4, 1, 2}, {{2, 1}, {2, 1}}},
    {"StridedSlice", "{begin = array<i64: 0, 0, 4>, end = array<i64: 8, 4, 12>}", {"8x4x16xf32"}, {{2, 4, 1}}, {2, 4, 1}, {{2, 1, 0}, {2, 1, 0}}},
    {"StridedSlice", "{begin = array<i64: 0, 3>, end = array<i64: 16, 4>, shrink_axis_mask = 2}", {"16x32xf32"}, {{8, 1}}, {8, 1}, {{1, 0}, {1}}},
    {"Dropout", "{keep_prob = 0.5}", {"16x32xf32"}, {{2, 4}}, {2, 4}, {{1, 0}, {1, 0}}},
    {"TopK", "{k = 4}", {"16x32xf32"}, {{4, 1}}, {4, 1, 2}, {{2, 1}, {2, 1}}},
    {"CumSum", "{axis = 0}", {"16x32xf32"}, {{1, 4}}, {1, 4, 2}, {{2, 1}, {2, 1}}},
    {"ArgMaxWithValue", "{axis = 1}", {"16x32xf32"}, {{4, 1}}, {4, 1, 2}, {{2, 1}, {2}}},
    {"ArgMaxWithValue", "{axis = 0, keep_dims = true}", {"16x32xf32"}, {{1, 8}}, {1, 8}, {{1, 0}, {-1, 0}}},
    {"RmsNorm", "", {"8x4x32xf32", "32xf32"}, {{2, 4, 1}, {1}}, {2, 4, 1}, {{2, 1, 0}, {0}, {2, 1, 0}}},
    {"GroupNorm", "{num_groups = 4}", {"4x8x4x4xf32", "8xf32", "8xf32"}, {{4, 1, 1, 1}, {1}, {1}}, {4, 1, 1, 1, 2}, {{4, 3, 2, 1}, {3}, {3}, {4, 3, 2, 1}}},
    {"AvgPool", "{kernel_size = array<i64: 2>, strides = array<i64: 2>}", {"4x4x16x16xf32"}, {{2, 2, 2, 1}}, {2, 2, 2, 1}, {{3, 2, 1, 0}, {3, 2, 1, 0}}},
    // [n, o, h, w, i]
    {"Conv2DTranspose", "{pad_mode = \"same\"}", {"4x8x16x16xf32", "8x4x3x3xf32"}, {{2, 4, 1, 1}, {4, 1, 1, 1}}, {2, 4, 1, 1, 1},
     {{4, 3, 2, 1}, {3, 0, -1, -1}, {4, 0, 2, 1}}, {3}},
    {"Conv2DTranspose", "{pad_mode = \"same\"}", {"4x8x16x16xf32", "8x4x3x3xf32"}, {{2, 1, 1, 1}, {1, 4, 1, 1}}, {2, 1, 1, 1, 4},
     {{4, 3, 2, 1}, {3, 0, -1, -1}, {4, 0, 2, 1}}},
    {"UnsortedSegmentSum", "{num_segments = 4}", {"16x32xf32", "16xi32"}, {{4, 2}, {4}}, {4, 2}, {{1, 0}, {1}, {-1, 0}}, {1}},
};

/// In our words, without axes of size 1.
std::string shardingText(const std::vector<int64_t> &matrix, const Map &map, const std::vector<int64_t> &partial = {}) {
  Sharding made{.axes = matrix, .dims = {}, .partial = {}};
  auto axisOf = [&](int64_t fromRight) { return static_cast<int32_t>(std::ssize(matrix) - 1 - fromRight); };
  for (int64_t entry : map)
    made.dims.push_back(entry < 0 ? std::vector<int32_t>() : std::vector<int32_t>{axisOf(entry)});
  for (int64_t axis : partial)
    made.partial.push_back({axisOf(axis), ReduceKind::Sum});
  return made.canonical().str();
}

TEST(MindSpore, StrategiesGiveItsMatricesAndMaps) {
  test::NetContext context;
  for (const Rule &rule : rules) {
    test::TestNetwork network(context);
    llvm::SmallVector<mlir::Value> operands;
    for (const char *type : rule.operands)
      operands.push_back(network.input("x" + std::to_string(operands.size()), type));
    mlir::Operation *op = network.op(rule.op, operands, rule.attributes, "y");
    ASSERT_TRUE(op) << rule.op;
    const OperatorFacts facts = factsOf(op);
    const std::string label = std::string(rule.op) + " " + net::strategyText(rule.strategy);
    auto checked = piecesOfStrategy(facts, rule.strategy, 8);
    ASSERT_TRUE(std::holds_alternative<Pieces>(checked)) << label << ": " << std::get<StrategyError>(checked).text;
    const net::Assignment assignment = assignmentFromStrategy(facts, rule.strategy, 8);
    for (size_t i = 0; i < rule.operands.size(); ++i)
      EXPECT_EQ(operandSharding(facts.rule, assignment, i).canonical().str(), shardingText(rule.matrix, rule.maps[i])) << label << " operand " << i;
    const Sharding left = resultSharding(facts.rule, assignment, 0).canonical();
    EXPECT_EQ(left.str(), shardingText(rule.matrix, rule.maps.back(), rule.partial)) << label;
    if (!rule.out.empty())
      EXPECT_EQ(outSharding(left, rule.out).str(), shardingText(rule.outMatrix, rule.outMap)) << label << " out " << net::strategyText({rule.out});
  }
}

} // namespace
