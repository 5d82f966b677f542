// What the PTX of typical clusters looks like, and that NVIDIA's assembler takes it.
#include "ClusterText.h"
#include "GpuEmulator.h"
#include "KernelTestSupport.h"
#include "PtxSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

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

TEST(Ptx, Show) {
  const char *file = std::getenv("MSC_SHOW");
  if (!file) return;
  Compiled c = compile(ClusterText("f").argument("x", {128, 1024}, "f32").argument("b", {1024}, "f32")
      .generic("y", {128, 1024}, "f32", "pp", {"x", "b"}, {"ab", "b", "ab"}, "%s = arith.addf %x0, %x1 : f32\n %y = math.exp %s : f32").returns({"y"}).str());
  fmt::print("{}", c.ptx);
}

} // namespace
} // namespace msc::test
