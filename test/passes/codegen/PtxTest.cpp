// What the PTX of typical clusters looks like, and that NVIDIA's assembler takes it.
#include "ClusterText.h"
#include "GpuEmulator.h"
#include "KernelTestSupport.h"
#include "PtxSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace msc::test {
namespace {

struct Compiled {
  std::vector<codegen::CompiledKernel> kernels;
  std::string ptx;
};

Compiled compile(const std::string &text) {
  auto module = parse(text);
  codegen::KernelLibrary library({.cpu = false, .gpu = true});
  Compiled result;
  for (auto func : module->getOps<mlir::func::FuncOp>())
    result.kernels.push_back(*library.add(func));
  auto objects = library.finish(module->getLoc());
  EXPECT_EQ(objects->size(), 1u);
  EXPECT_EQ((*objects)[0].isa, "nvptx64");
  result.ptx = (*objects)[0].bytes;
  return result;
}

using Shape = std::vector<int64_t>;

std::string addExp(const std::string &name, const Shape &shape, const std::string &type) {
  std::string wide = type == "f64" ? "f64" : "f32", widen, round = " %y = math.exp %s : f32";
  bool isNarrow = type == "bf16" || type == "f16";
  if (isNarrow) {
    widen = fmt::format("%a = arith.extf %x0 : {0} to f32\n %b = arith.extf %x1 : {0} to f32\n ", type);
    round = fmt::format(" %e = math.exp %s : f32\n %y = arith.truncf %e : f32 to {}", type);
  } else {
    round = fmt::format(" %y = math.exp %s : {}", wide);
  }
  std::string sum = fmt::format("%s = arith.addf {} : {}\n", isNarrow ? "%a, %b" : "%x0, %x1", wide);
  std::string loops(shape.size(), 'p'), map = std::string("abcd").substr(0, shape.size());
  return ClusterText(name).argument("x", shape, type).argument("b", {shape.back()}, type)
      .generic("y", shape, type, loops, {"x", "b"}, {map, map.substr(map.size() - 1), map}, widen + sum + round)
      .returns({"y"}).str();
}

std::string softmax(const std::string &name, int64_t rows, int64_t columns, const std::string &type = "f32") {
  auto op = [&](const char *code, const char *operands) { return fmt::format("%y = {} {} : {}", code, operands, type); };
  return ClusterText(name).argument("x", {rows, columns}, type)
      .generic("m", {rows}, type, "pr", {"x"}, {"ab", "a"}, op("arith.maximumf", "%acc, %x0"), "-1.0e30")
      .generic("d", {rows, columns}, type, "pp", {"x", "m"}, {"ab", "a", "ab"}, op("arith.subf", "%x0, %x1"))
      .generic("e", {rows, columns}, type, "pp", {"d"}, {"ab", "ab"}, op("math.exp", "%x0"))
      .generic("s", {rows}, type, "pr", {"e"}, {"ab", "a"}, op("arith.addf", "%acc, %x0"), "0.0")
      .generic("y", {rows, columns}, type, "pp", {"e", "s"}, {"ab", "a", "ab"}, op("arith.divf", "%x0, %x1"))
      .returns({"y"}).str();
}

std::string columnSums(const std::string &name, int64_t rows, int64_t columns) {
  return ClusterText(name).argument("x", {rows, columns}, "f32")
      .generic("s", {columns}, "f32", "rp", {"x"}, {"ab", "b"}, "%y = arith.addf %acc, %x0 : f32", "0.0").returns({"s"}).str();
}

std::string addTransposed(const std::string &name, int64_t rows, int64_t columns, const std::string &type) {
  std::string add = type[0] == 'f' ? "arith.addf" : "arith.addi";
  return ClusterText(name).argument("x", {columns, rows}, type).argument("z", {rows, columns}, type)
      .generic("y", {rows, columns}, type, "pp", {"x", "z"}, {"ba", "ab", "ab"}, fmt::format("%y = {} %x0, %x1 : {}", add, type))
      .returns({"y"}).str();
}

/// The only kernel of the text.
std::string onlyEntry(const std::string &text) {
  Compiled compiled = compile(text);
  EXPECT_EQ(entriesOf(compiled.ptx), std::vector<std::string>{compiled.kernels[0].gpu.entry});
  return entryOf(compiled.ptx, compiled.kernels[0].gpu.entry);
}

TEST(Ptx, IsForEveryGpuFromAmpereOn) {
  std::string ptx = compile(addExp("f", {8, 64}, "f32")).ptx;
  EXPECT_EQ(countOf(ptx, ".target sm_80"), 1u);
  EXPECT_EQ(countOf(ptx, ".version 7.0"), 1u);
}

TEST(Ptx, NeighboursTravelInSixteenBytes) {
  std::string f32 = onlyEntry(addExp("f", {8, 64}, "f32"));
  EXPECT_EQ(countOf(f32, "ld.global.nc.v4.f32"), 2u) << f32;
  EXPECT_EQ(countOf(f32, "st.global.v4.f32"), 1u);
  EXPECT_EQ(countOf(f32, "ld.global"), 2u);
  std::string f64 = onlyEntry(addExp("f", {8, 64}, "f64"));
  EXPECT_EQ(countOf(f64, "ld.global.nc.v2.f64"), 2u) << f64;
  EXPECT_EQ(countOf(f64, "st.global.v2.f64"), 1u);
  for (const char *narrow : {"bf16", "f16"}) { // eight of them in four words
    std::string text = onlyEntry(addExp("f", {8, 64}, narrow));
    EXPECT_EQ(countOf(text, "ld.global.nc.v4.u32"), 2u) << text;
    EXPECT_EQ(countOf(text, "st.global.v4.u32"), 1u);
    EXPECT_EQ(countOf(text, "ld.global"), 2u);
  }
  // Rows of 62 begin at multiples of 8 bytes, rows of 63 at any: two and four accesses make up 16 bytes in flight.
  EXPECT_EQ(countOf(onlyEntry(addExp("f", {8, 62}, "f32")), "ld.global.nc.v2.f32"), 2u * 2);
  EXPECT_EQ(countOf(onlyEntry(addExp("f", {8, 63}, "f32")), "ld.global.nc.f32"), 2u * 4);
}

TEST(Ptx, ShortRowsAreReducedInAWarpAndLongOnesInABlock) {
  std::string inWarp = onlyEntry(softmax("f", 8, 128));
  EXPECT_EQ(countOf(inWarp, "bar.sync"), 0u);
  EXPECT_EQ(countOf(inWarp, "shfl.sync.bfly"), 10u);
  EXPECT_EQ(countOf(inWarp, "ld.global"), 1u); // read once for all three sweeps
  std::string inBlock = onlyEntry(softmax("f", 8, 4096));
  EXPECT_EQ(countOf(inBlock, "bar.sync"), 2u); // one per reduction
  EXPECT_EQ(countOf(inBlock, "shfl.sync.bfly"), 16u); // in a warp, then over its eight warps
  EXPECT_EQ(countOf(inBlock, "ld.global.nc.v4.f32"), 4u);
  EXPECT_EQ(countOf(inBlock, "ld.global"), 4u);
  EXPECT_EQ(countOf(onlyEntry(softmax("f", 8, 8)), "shfl.sync.bfly"), 2u); // two threads per row, two reductions
}

TEST(Ptx, FewColumnsAreSummedByNarrowBlocks) {
  auto launch = [](int64_t columns) { return compile(columnSums("f", 200, columns)).kernels[0].gpu; };
  EXPECT_EQ(launch(768).blockItems, 8); // 96 blocks of 512 threads, not 24
  EXPECT_EQ(launch(2048).blockItems, 16);
  EXPECT_EQ(launch(4096).blockItems, 32);
  EXPECT_EQ(launch(768).block, 512u);
  EXPECT_EQ(launch(768).unitScratch, 0);
}

std::string sumOfSquares(const std::string &name, int64_t rows, int64_t columns) {
  return ClusterText(name).argument("x", {rows, columns}, "f32")
      .generic("q", {rows, columns}, "f32", "pp", {"x"}, {"ab", "ab"}, "%y = arith.mulf %x0, %x0 : f32")
      .generic("s", {rows}, "f32", "pr", {"q"}, {"ab", "a"}, "%y = arith.addf %acc, %x0 : f32", "0.5")
      .generic("r", {rows}, "f32", "p", {"s"}, {"a", "a"}, "%y = math.sqrt %x0 : f32")
      .returns({"q", "s", "r"}).str();
}

TEST(Ptx, LongReductionsAreSharedByBlocks) {
  auto launch = [](const std::string &text) { return compile(text).kernels[0].gpu; };
  codegen::GpuLaunch columns = launch(columnSums("f", 8192, 768));
  EXPECT_EQ(columns.blockItems, 32);
  EXPECT_EQ(columns.items, 19); // 24 bundles of columns: 456 blocks, each with 7 steps of 64 rows
  EXPECT_EQ(columns.unitScratch, 8 * 20);
  codegen::GpuLaunch rows = launch(sumOfSquares("f", 3, 1 << 20));
  EXPECT_EQ(rows.items, 64); // two steps of 8192 elements each
  EXPECT_EQ(rows.blockItems, 1);
  EXPECT_EQ(launch(sumOfSquares("f", 600, 1 << 20)).items, 1); // enough of them
  EXPECT_EQ(launch(softmax("f", 3, 1 << 20)).items, 1);        // later sweeps need what the first one finds
  std::string text = onlyEntry(sumOfSquares("f", 3, 1 << 20));
  EXPECT_EQ(countOf(text, "atom."), 1u) << text; // a count of blocks; no float is added out of order
  EXPECT_EQ(countOf(text, "atom.global.add.u32"), 1u);
  EXPECT_EQ(countOf(text, "membar.gl"), 2u);
}

TEST(Ptx, RowsOfAnyLengthAreReduced) {
  std::string text;
  for (int64_t columns : {768, 1000, 4096, 8192, 9000, 10240, 16384, 50257})
    text += softmax(fmt::format("f32_{}", columns), 2, columns);
  for (int64_t columns : {1000, 8192, 9001})
    text += softmax(fmt::format("f64_{}", columns), 2, columns, "f64");
  checkClusters(text, {.tolerance = 1e-6});
}

/// x - mean, y = its exponential; their sum is kept, x is read again for the last sweep.
std::string centred(const std::string &name, int64_t rows, int64_t columns) {
  Shape whole{rows, columns};
  return ClusterText(name).argument("x", whole, "f32").argument("w", whole, "f32")
      .generic("p", whole, "f32", "pp", {"x", "w"}, {"ab", "ab", "ab"}, "%y = arith.mulf %x0, %x1 : f32")
      .generic("s", {rows}, "f32", "pr", {"p"}, {"ab", "a"}, "%y = arith.addf %acc, %x0 : f32", "0.0")
      .generic("d", whole, "f32", "pp", {"p", "s"}, {"ab", "a", "ab"}, "%y = arith.subf %x0, %x1 : f32")
      .generic("m", {rows}, "f32", "pr", {"d"}, {"ab", "a"}, "%y = arith.maximumf %acc, %x0 : f32", "-1.0e30")
      .generic("q", whole, "f32", "pp", {"d", "x", "m"}, {"ab", "ab", "a", "ab"},
               "%e = arith.mulf %x0, %x1 : f32\n %y = arith.addf %e, %x2 : f32")
      .returns({"p", "q"}).str();
}

TEST(Ptx, TwoLongRowsShareAProcessor) {
  std::string text = onlyEntry(centred("f", 2, 8192));
  EXPECT_EQ(countOf(text, ".minnctapersm 2"), 1u) << text.substr(0, 1000);
  EXPECT_EQ(countOf(text, "ld.global.nc.v4.f32"), 12u); // x and w, then x again: p - s alone waits in registers
  EXPECT_EQ(countOf(text, "st.global.v4.f32"), 8u);
  EXPECT_EQ(countOf(onlyEntry(centred("f", 2, 768)), "ld.global.nc.v4.f32"), 2u * 3); // short rows keep everything
  checkClusters(centred("a", 2, 8192) + centred("b", 3, 768) + centred("c", 5, 8190) + centred("d", 70, 100), {.tolerance = 1e-4});
}

TEST(Ptx, PiecesAddUpOnEveryGrid) {
  std::string text = columnSums("a", 1500, 3) + columnSums("b", 1111, 70) + sumOfSquares("c", 1, 70001) + sumOfSquares("d", 2, 32771);
  text += ClusterText("e").argument("x", {1 << 15}, "i64")
              .generic("s", {}, "i64", "r", {"x"}, {"a", ""}, "%y = arith.addi %acc, %x0 : i64", "0").returns({"s"}).str();
  for (const codegen::CompiledKernel &kernel : compile(text).kernels)
    EXPECT_GT(kernel.gpu.unitScratch, 0);
  checkClusters(text, {.tolerance = 1e-5});
}

TEST(Ptx, TransposedTensorsPassThroughSharedMemory) {
  Compiled compiled = compile(addTransposed("f", 100, 80, "f32"));
  EXPECT_EQ(countOf(compiled.ptx, ".shared .align 16 .b8"), 1u);
  EXPECT_EQ(countOf(compiled.ptx, "[4224]"), 1u); // 32 lines of 33
  EXPECT_EQ(countOf(compiled.ptx, "bar.sync"), 2u);
  EXPECT_EQ(compiled.kernels[0].gpu.block, 256u);
}

TEST(Ptx, ArithmeticIsRoundedAsWritten) {
  std::string text = onlyEntry(softmax("f", 8, 128));
  EXPECT_EQ(countOf(text, ".approx"), 0u); // every function is ours, with the bits of the CPU
  EXPECT_EQ(countOf(text, ".ftz"), 0u);
  EXPECT_EQ(countOf(text, "div.rn.f32"), 4u);
  EXPECT_EQ(countOf(text, "add.f32"), 0u); // add.rn.f32 is not contracted by the assembler, add.f32 would be
  EXPECT_EQ(countOf(text, "mul.f32"), 0u);
}

TEST(Ptx, KernelsAreSharedWhereTheRangeAloneDiffers) {
  Compiled compiled = compile(addExp("a", {8, 64}, "f32") + addExp("b", {900, 64}, "f32") + addExp("c", {8, 32}, "f32"));
  EXPECT_EQ(compiled.kernels[0].gpu.entry, compiled.kernels[1].gpu.entry);
  EXPECT_NE(compiled.kernels[0].gpu.entry, compiled.kernels[2].gpu.entry);
  EXPECT_EQ(entriesOf(compiled.ptx).size(), 2u);
  EXPECT_EQ(compiled.kernels[0].gpu.items, 64);
  EXPECT_EQ(compiled.kernels[0].gpu.blockItems, 1024);
  EXPECT_EQ(compiled.kernels[0].gpu.mostRange, (1 << 30) / 64);
  // Positions beyond 32 bits are another kernel.
  Compiled wide = compile(addExp("a", {1 << 20, 64}, "f32") + addExp("b", {1 << 26, 64}, "f32"));
  EXPECT_NE(wide.kernels[0].gpu.entry, wide.kernels[1].gpu.entry);
  EXPECT_GE(wide.kernels[1].gpu.mostRange, int64_t(1) << 26);
}

TEST(Ptx, IsTheSameEveryTime) {
  std::string text = softmax("a", 8, 300) + addTransposed("b", 33, 40, "i32") + columnSums("c", 70, 50);
  EXPECT_EQ(compile(text).ptx, compile(text).ptx);
}

TEST(Ptx, AssemblesWithoutSpills) {
  if (ptxasPath().empty())
    GTEST_SKIP() << "ptxas is not installed";
  std::string text;
  for (const char *type : {"f32", "f64", "bf16", "f16"})
    for (int64_t columns : {1, 31, 62, 1024, 50257})
      text += addExp(fmt::format("pointwise_{}_{}", type, columns), {64, columns}, type);
  for (const char *type : {"f32", "f64"})
    for (int64_t columns : {5, 37, 128, 1000, 1024, 4096, 16384, 50257})
      text += softmax(fmt::format("softmax_{}_{}", type, columns), 64, columns, type);
  for (int64_t columns : {7, 64, 768})
    for (int64_t rows : {3, 50, 4096})
      text += columnSums(fmt::format("columns_{}_{}", rows, columns), rows, columns);
  for (const char *type : {"f32", "f64", "i32", "i64"})
    text += addTransposed(fmt::format("transposed_{}", type), 300, 200, type);
  Compiled compiled = compile(text);
  const std::string &ptx = compiled.ptx;
  EXPECT_EQ(countOf(ptx, ".local"), 0u);
  std::map<std::string, std::string> names;
  std::istringstream functions(text);
  for (const codegen::CompiledKernel &kernel : compiled.kernels) {
    std::string name;
    std::getline(std::getline(functions, name, '@'), name, '(');
    names[kernel.gpu.entry] = name;
  }
  for (const char *chip : {"sm_80", "sm_90"}) {
    Assembly assembly = assemble(ptx, chip);
    EXPECT_EQ(assembly.error, "");
    EXPECT_EQ(assembly.kernels.size(), entriesOf(ptx).size());
    unsigned most = 0;
    for (const auto &[entry, kernel] : assembly.kernels) {
      most = std::max(most, kernel.registers);
      EXPECT_EQ(kernel.spillBytes, 0u) << chip << " " << names[entry];
      EXPECT_EQ(kernel.stackBytes, 0u) << chip << " " << names[entry];
    }
    fmt::print("  {}: {} kernels, at most {} registers, no spills\n", chip, assembly.kernels.size(), most);
  }
}

// The emulation itself ------------------------------------------------------------------------------------------------

/// Each thread writes value + number into shared memory, the next line reads its neighbour's.
std::string neighbours(const std::string &between) {
  return R"(
@s = internal addrspace(3) global [64 x i32] undef
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
define void @k(ptr addrspace(1) %out, i64 %end) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mine = getelementptr i32, ptr addrspace(3) @s, i32 %t
  store i32 %t, ptr addrspace(3) %mine
  %half = icmp ult i32 %t, 40
)" + between + R"(
  %n = xor i32 %t, 33
  %other = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %v = load i32, ptr addrspace(3) %other
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %v, ptr addrspace(1) %place
  ret void
})";
}

std::string runNeighbours(const std::string &between, GpuEmulator::Order order, std::vector<int> &values) {
  GpuEmulator gpu(neighbours(between));
  values.assign(64, -1);
  return gpu.launch("k", 64, 1, {values.data()}, 64, order);
}

TEST(GpuEmulator, RunsThreadsBetweenBarriers) {
  std::vector<int> values;
  for (auto order : {GpuEmulator::Order::Forward, GpuEmulator::Order::Backward}) {
    EXPECT_EQ(runNeighbours("call void @llvm.nvvm.barrier0()", order, values), "");
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(values[i], i ^ 33);
  }
}

TEST(GpuEmulator, AMissingBarrierShowsInTheOrderOfThreads) {
  std::vector<int> forward, backward;
  EXPECT_EQ(runNeighbours("", GpuEmulator::Order::Forward, forward), "");
  EXPECT_EQ(runNeighbours("", GpuEmulator::Order::Backward, backward), "");
  EXPECT_NE(forward, backward);
}

TEST(GpuEmulator, RefusesWhatNotAllThreadsReach) {
  std::vector<int> values;
  auto inHalf = [](const std::string &call) { return "br i1 %half, label %a, label %b\na:\n " + call + "\n br label %b\nb:\n"; };
  EXPECT_EQ(runNeighbours(inHalf("call void @llvm.nvvm.barrier0()"), GpuEmulator::Order::Forward, values),
            "k, block 0: 40 of 64 threads arrive at a barrier");
  std::string shuffle = "%x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)";
  EXPECT_EQ(runNeighbours(inHalf(shuffle), GpuEmulator::Order::Forward, values),
            "k, block 0: 8 of 32 threads of a warp arrive at a shuffle");
}

} // namespace
} // namespace msc::test
