// Windows that ranks gather: what crosses ranks is the closed form of the halo, to the element, and the exchange that the plan
// gets brings every rank what it needs.
#include "dialects/net/Halo.h"
#include "runtime/plan/Refinement.h"
#include "test/dialects/net/TestNetwork.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace msc;
using namespace msc::net;
using namespace msc::test;

namespace {

/// Rows cut into `rows` pieces and columns into `columns`.
Sharding cutImage(int64_t rows, int64_t columns) {
  return Sharding{.axes = {rows, columns}, .dims = {{}, {}, {0}, {1}}};
}

struct Convolution {
  std::string image, weights;
  std::string attributes = {};
};

std::vector<HaloWindows> windowsOf(const Convolution &c, const Sharding &cut) {
  NetContext context;
  TestNetwork network(context);
  Operation *op = network.op("Conv2D", {network.input("x", c.image), network.input("w", c.weights)}, c.attributes);
  EXPECT_TRUE(op);
  Sharding whole = Sharding::replicated(cut.devices(), 4);
  return halosOf(op, {cut, whole});
}

int64_t receivedBy(const Convolution &c, int64_t rows, int64_t columns) {
  return haloExchange(windowsOf(c, cutImage(rows, columns))).received();
}

TEST(Halo, OfUnitStrideIsTheBorderOfThePiece) {
  Convolution same3{"2x3x16x24xf64", "4x3x3x3xf64", "{pad_mode = \"same\"}"};
  EXPECT_EQ(receivedBy(same3, 2, 1), 2 * 3 * 24 * 1);
  EXPECT_EQ(receivedBy(same3, 4, 1), 2 * 3 * 24 * 2);
  EXPECT_EQ(receivedBy(same3, 1, 4), 2 * 3 * 16 * 2);
  EXPECT_EQ(receivedBy(same3, 4, 4), 2 * 3 * (6 * 8 - 4 * 6));
  Convolution same5{"2x3x16x24xf64", "4x3x5x1xf64", "{pad_mode = \"same\", dilation = array<i64: 1>}"};
  EXPECT_EQ(receivedBy(same5, 4, 1), 2 * 3 * 24 * 4);
  EXPECT_EQ(receivedBy(same5, 1, 4), 0) << "one column";
  EXPECT_EQ(receivedBy(same5, 4, 2), 2 * 3 * 12 * 4) << "columns stay where they are";
  Convolution dilated{"2x3x16x24xf64", "4x3x3x3xf64", "{pad_mode = \"same\", dilation = array<i64: 2, 1>}"};
  EXPECT_EQ(receivedBy(dilated, 4, 1), 2 * 3 * 24 * 4);
}

TEST(Halo, OfStridesIsWhatWindowsReachBeyondThem) {
  // MindSpore's closed form: top(j) = pad_top + (H - O s) j / b, bottom(j) = (j + 1) (O s - H) / b + k - s - pad_top.
  Convolution k3s2{"1x1x56x56xf64", "1x1x3x3xf64", "{pad_mode = \"pad\", pad = array<i64: 1>, stride = array<i64: 2>}"};
  EXPECT_EQ(receivedBy(k3s2, 4, 1), 56 * 1) << "a row above";
  Convolution k2s2{"1x1x56x56xf64", "1x1x2x2xf64", "{stride = array<i64: 2>}"};
  EXPECT_EQ(receivedBy(k2s2, 4, 2), 0);
  EXPECT_TRUE(windowsOf(k2s2, cutImage(4, 2)).empty()) << "no copy either";
  Convolution pointwise{"1x1x13x11xf64", "1x1x1x1xf64"};
  EXPECT_TRUE(windowsOf(pointwise, cutImage(4, 2)).empty());
}

TEST(Halo, WindowsBeginWithWhatTheirRankNeeds) {
  // 10 rows, windows of 3: 8 outputs in pieces of 2, 3, 3; rows in pieces of 3, 3, 4.
  std::vector<HaloWindows> windows = windowsOf({"1x1x10x4xf64", "1x1x3x1xf64"}, cutImage(3, 1));
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].needs[2], (std::vector<Range>{{0, 4}, {2, 7}, {5, 10}}));
  EXPECT_EQ(windows[0].windowShape, (std::vector<int64_t>{1, 1, 15, 4}));
  EXPECT_EQ(windows[0].windowed, (std::vector<int64_t>{0, 0, 10, 0}));
  EXPECT_TRUE(windows[0].fills()) << "the first window has 4 rows";
  CopyRegions regions = windows[0].regions();
  ASSERT_EQ(regions.size(), 3u);
  EXPECT_EQ(regions[1].ranges[2], (CopyRange{2, 5, 5}));
}

/// What arithmetic on regions says that the busiest rank receives, and that every rank holds its needs behind the exchange.
void expectSound(const Convolution &c, const Sharding &cut) {
  std::vector<HaloWindows> windows = windowsOf(c, cut);
  RegionExchange exchange = haloExchange(windows);
  for (size_t i = 0; i < windows.size(); ++i) {
    CopyRegions regions = windows[i].regions();
    EXPECT_EQ(checkRegions(regions, {windows[i].shape}, windows[i].windowShape), "");
    EXPECT_EQ(coverTarget(regions, windows[i].windowShape), !windows[i].fills());
    CopyEnds ends{cut, windows[i].shape, cut, windows[i].windowShape, regions};
    EXPECT_EQ(exchange.tensors[i].received, receivedElements(std::array{ends})[0]) << c.image << c.attributes << cut.str();
    EXPECT_TRUE(exchange.communicates());
  }
}

TEST(Halo, CountsWhatTheRegionsMove) {
  for (const char *image : {"1x2x9x7xf64", "2x1x16x12xf64", "1x1x5x31xf64"})
    for (const char *weights : {"1x1x3x3xf64", "1x1x2x1xf64", "1x1x1x4xf64"})
      for (const char *attributes : {"", "pad_mode = \"same\", ", "pad_mode = \"pad\", pad = array<i64: 2, 0, 1, 3>, "})
        for (const char *stride : {"array<i64: 1>", "array<i64: 2>", "array<i64: 3, 1>"})
          for (const char *dilation : {"array<i64: 1>", "array<i64: 2, 1>"})
            for (auto [rows, columns] : {std::pair<int64_t, int64_t>{2, 1}, {1, 3}, {4, 1}, {2, 2}, {3, 2}, {4, 2}}) {
              bool isDeep = StringRef(image).starts_with("1x2");
              std::string text = std::string("{") + attributes + "stride = " + stride + ", dilation = " + dilation +
                                 (isDeep ? ", group = 1}" : "}");
              std::string w = isDeep ? "1x2" + std::string(weights).substr(3) : weights;
              expectSound({image, w, text}, cutImage(rows, columns));
            }
}

TEST(Halo, GroupIsThatOfTheCutDimensions) {
  // 8 devices as 2 x 4 over batch and rows: rows move among the 4 that share images.
  Sharding cut{.axes = {2, 4}, .dims = {{0}, {}, {1}, {}}};
  RegionExchange exchange = haloExchange(windowsOf({"4x1x16x8xf64", "1x1x3x3xf64", "{pad_mode = \"same\"}"}, cut));
  EXPECT_EQ(exchange.groupMatrix, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(exchange.groupAxes, (std::vector<int32_t>{1}));
  EXPECT_EQ(exchange.received(), 2 * 8 * 2);
}

TEST(Halo, MaximaGatherTheWindowsAndTheirImages) {
  NetContext context;
  TestNetwork network(context);
  Operation *grad = network.op("MaxPoolGrad", {network.input("x", "1x1x16x4xf64"), network.input("dy", "1x1x8x4xf64")},
                               "{kernel_size = array<i64: 3, 1>, strides = array<i64: 2, 1>, pad_mode = \"same\"}");
  ASSERT_TRUE(grad);
  std::vector<HaloWindows> windows = halosOf(grad, {cutImage(2, 1), cutImage(2, 1)});
  ASSERT_EQ(windows.size(), 2u);
  // Windows 0..7 begin at rows 0, 2, ...: rows 8..15 are reached by windows 3..7, which begin with row 6.
  EXPECT_EQ(windows[0].needs[2], (std::vector<Range>{{0, 9}, {6, 16}}));
  EXPECT_EQ(windows[1].needs[2], (std::vector<Range>{{0, 4}, {3, 8}}));
  EXPECT_EQ(haloExchange(windows).received(), 2 * 4 + 4);
}

} // namespace
