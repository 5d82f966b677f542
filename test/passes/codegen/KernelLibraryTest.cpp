// The library: one kernel per distinct cluster, the same bytes every time, clear refusals.
#include "ClusterText.h"
#include "KernelTestSupport.h"
#include "passes/codegen/cpu/ObjectModule.h"

#include "mlir/IR/Diagnostics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace msc::test {
namespace {

using codegen::CompiledKernel;
using codegen::KernelLibrary;

std::string addBias(const std::string &name, int64_t r, int64_t c, const std::string &operation = "arith.addf") {
  return ClusterText(name).argument("x", {r, c}, "f32").argument("b", {c}, "f32")
      .generic("y", {r, c}, "f32", "pp", {"x", "b"}, {"ab", "b", "ab"}, "%y = " + operation + " %x0, %x1 : f32")
      .returns({"y"}).str();
}

std::string relu(const std::string &name, std::vector<int64_t> shape) {
  std::string loops(shape.size(), 'p'), all = std::string("abcd").substr(0, shape.size());
  return ClusterText(name).argument("x", shape, "f32")
      .generic("y", shape, "f32", loops, {"x"}, {all, all}, "%z = arith.constant 0.0 : f32\n %y = arith.maximumf %x0, %z : f32")
      .returns({"y"}).str();
}

std::vector<CompiledKernel> addAll(KernelLibrary &library, const std::string &text) {
  auto module = parse(text);
  std::vector<CompiledKernel> kernels;
  for (auto func : module->getOps<mlir::func::FuncOp>())
    kernels.push_back(*library.add(func));
  return kernels;
}

TEST(KernelLibrary, SharesAKernelBetweenClustersThatDifferInTheRangeOnly) {
  KernelLibrary library;
  auto kernels = addAll(library, addBias("a", 8, 33) + addBias("b", 9, 33) + addBias("c", 8, 34) + addBias("d", 8, 33, "arith.mulf"));
  EXPECT_EQ(kernels[0].symbol, kernels[1].symbol);
  EXPECT_NE(kernels[0].symbol, kernels[2].symbol);
  EXPECT_NE(kernels[0].symbol, kernels[3].symbol);
  EXPECT_EQ(library.size(), 3u);
  EXPECT_FALSE(kernels[0].flat);
  EXPECT_EQ(kernels[0].rangeSizes, (llvm::SmallVector<std::pair<unsigned, unsigned>>{{0, 0}}));
  EXPECT_EQ(kernels[0].innerSizes, (llvm::SmallVector<std::pair<unsigned, unsigned>>{{0, 1}}));
}

TEST(KernelLibrary, FlatKernelsServeEveryShape) {
  KernelLibrary library;
  auto kernels = addAll(library, relu("a", {8, 33}) + relu("b", {5}) + relu("c", {2, 3, 4}));
  EXPECT_EQ(library.size(), 1u);
  EXPECT_TRUE(kernels[0].flat);
  EXPECT_TRUE(kernels[0].innerSizes.empty());
  EXPECT_EQ(kernels[2].rangeSizes.size(), 3u);
}

TEST(KernelLibrary, CutsOneLongRow) {
  KernelLibrary library;
  auto sum = [](const std::string &name, std::vector<int64_t> shape, const std::string &kept) {
    std::vector<int64_t> rest = kept.empty() ? std::vector<int64_t>() : std::vector<int64_t>{shape[0]};
    return ClusterText(name).argument("x", shape, "f32")
        .generic("s", rest, "f32", kept.empty() ? "rr" : "pr", {"x"}, {"ab", kept}, "%y = arith.addf %acc, %x0 : f32", "0.0")
        .returns({"s"}).str();
  };
  auto kernels = addAll(library, sum("all", {1024, 1024}, "") + sum("rows", {2, 1 << 19}, "a") + sum("short", {256, 256}, ""));
  EXPECT_EQ(kernels[0].pieces, 16); // of 256 KiB
  EXPECT_EQ(kernels[0].scratch, 16 * 8);
  EXPECT_EQ(kernels[1].pieces, 0); // two rows
  EXPECT_EQ(kernels[2].pieces, 0); // 256 KiB in all
  EXPECT_TRUE(kernels[0].rangeSizes.empty());
}

TEST(KernelLibrary, WritesAroundTheCachesWhatIsAlignedAndOnlyWritten) {
  auto streamed = [](const std::string &text, bool streams = true) {
    KernelLibrary library;
    auto module = parse(text);
    for (auto func : module->getOps<mlir::func::FuncOp>())
      EXPECT_TRUE(mlir::succeeded(library.add(func, nullptr, streams)));
    std::string code = library.irText();
    bool found = code.find("!nontemporal") != std::string::npos;
    EXPECT_EQ(code.find("sfence") != std::string::npos, found) << code;
    return found;
  };
  EXPECT_TRUE(streamed(relu("flat", {8, 33})));
  EXPECT_FALSE(streamed(relu("flat", {8, 33}), false));
  EXPECT_TRUE(streamed(addBias("rows", 8, 64)));
  EXPECT_FALSE(streamed(addBias("unaligned", 8, 33)));
  EXPECT_FALSE(streamed(ClusterText("in_place").argument("x", {64}, "f32", 0)
                            .generic("y", {64}, "f32", "p", {"x"}, {"a", "a"}, "%y = arith.negf %x0 : f32").returns({"y"}).str()));
}

TEST(KernelLibrary, GivesTheSameBytesEveryTime) {
  std::string text = addBias("a", 8, 33) + relu("b", {5, 6}) + addBias("c", 8, 128, "arith.subf");
  std::vector<std::string> first;
  for (int round = 0; round < 3; ++round) {
    KernelLibrary library;
    addAll(library, text);
    auto objects = library.finish(mlir::UnknownLoc::get(&context()));
    ASSERT_TRUE(mlir::succeeded(objects));
    ASSERT_EQ(objects->size(), 2u);
    EXPECT_EQ((*objects)[0].isa, "x86-64-v3");
    EXPECT_EQ((*objects)[1].isa, "x86-64-v4");
    std::vector<std::string> bytes = {(*objects)[0].bytes, (*objects)[1].bytes};
    if (round == 0)
      first = bytes;
    EXPECT_TRUE(bytes == first);
    EXPECT_EQ(bytes[0].find("/work"), std::string::npos) << "a path stands in the object";
  }
}

TEST(KernelLibrary, AnEmptyLibraryIsLegal) {
  KernelLibrary library;
  auto objects = library.finish(mlir::UnknownLoc::get(&context()));
  ASSERT_TRUE(mlir::succeeded(objects));
  LoadedObject loaded((*objects)[0].bytes);
  EXPECT_EQ(loaded.symbol("anything"), nullptr);
}

std::string whyNot(const std::string &text) {
  auto module = parse(text);
  auto functions = module->getOps<mlir::func::FuncOp>();
  return KernelLibrary::whyNot(llvm::SmallVector<mlir::func::FuncOp>(functions.begin(), functions.end()));
}

TEST(KernelLibrary, SaysWhyAClusterIsNotOneKernel) {
  EXPECT_EQ(whyNot(relu("f", {3, 4})), "");
  EXPECT_EQ(whyNot(ClusterText("f").argument("x", {4, 4}, "f32")
                       .generic("r", {4}, "f32", "pr", {"x"}, {"ab", "a"}, "%y = arith.addf %acc, %x0 : f32", "0.0")
                       .generic("c", {4}, "f32", "rp", {"x"}, {"ab", "b"}, "%y = arith.addf %acc, %x0 : f32", "0.0")
                       .returns({"r", "c"}).str()),
            "operators reduce over different dimensions");
  EXPECT_EQ(whyNot(ClusterText("f").argument("x", {4, 4}, "f32")
                       .generic("n", {4, 4}, "f32", "pp", {"x"}, {"ab", "ab"}, "%y = arith.negf %x0 : f32")
                       .generic("s", {4, 4}, "f32", "pp", {"n", "n"}, {"ab", "ba", "ab"}, "%y = arith.addf %x0, %x1 : f32")
                       .returns({"s"}).str()),
            "a value is used in two index orders");
  EXPECT_EQ(whyNot(ClusterText("f").argument("x", {4}, "f32")
                       .generic("s", {4}, "f32", "p", {"x"}, {"a", "a"}, "%y = math.atan %x0 : f32")
                       .returns({"s"}).str()),
            "'math.atan' has no code in kernels");
  EXPECT_EQ(whyNot(ClusterText("f").argument("x", {4, 5}, "f32").argument("b", {5}, "f32")
                       .generic("n", {5}, "f32", "p", {"b"}, {"a", "a"}, "%y = arith.negf %x0 : f32")
                       .generic("s", {4, 5}, "f32", "pp", {"x", "n"}, {"ab", "b", "ab"}, "%y = arith.addf %x0, %x1 : f32")
                       .returns({"n", "s"}).str()),
            "a result lacks a dimension over which the work is cut");
  EXPECT_EQ(whyNot(ClusterText("f").argument("x", {4, 4}, "f32", 0).argument("z", {4, 4}, "f32")
                       .generic("s", {4, 4}, "f32", "pp", {"x", "z"}, {"ba", "ab", "ab"}, "%y = arith.addf %x0, %x1 : f32")
                       .returns({"s"}).str()),
            "argument 0 is updated in place but read in another index order");
}

// Operators that share no value run together only if their sizes agree, and then for every size that occurs.
TEST(KernelLibrary, SaysWhyAClusterIsNotOneKernelForEverySize) {
  auto sumBeside = [](const std::string &name, int64_t rows) {
    return ClusterText(name).argument("x", {3, 2, 2}, "f32").argument("y", {rows, 2}, "f32")
        .generic("s", {}, "f32", "rrr", {"x"}, {"abc", ""}, "%y = arith.addf %acc, %x0 : f32", "0.0")
        .generic("n", {rows, 2}, "f32", "pp", {"y"}, {"ab", "ab"}, "%y = arith.negf %x0 : f32")
        .returns({"s", "n"}).str();
  };
  EXPECT_EQ(whyNot(sumBeside("large", 2)), "");
  EXPECT_EQ(whyNot(sumBeside("large", 2) + sumBeside("small", 1)), "it cannot take the form of the kernel for other sizes");
  EXPECT_EQ(whyNot(relu("large", {3, 4}) + relu("small", {1, 4})), "");
}

TEST(KernelLibrary, AddEmitsTheReasonAsDiagnostic) {
  auto module = parse(ClusterText("atan").argument("x", {4}, "f32")
                          .generic("s", {4}, "f32", "p", {"x"}, {"a", "a"}, "%y = math.atan %x0 : f32").returns({"s"}).str());
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context(), [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  KernelLibrary library;
  EXPECT_TRUE(mlir::failed(library.add(*module->getOps<mlir::func::FuncOp>().begin())));
  EXPECT_EQ(message, "cluster 'atan' cannot be one kernel: 'math.atan' has no code in kernels");
}

} // namespace
} // namespace msc::test
