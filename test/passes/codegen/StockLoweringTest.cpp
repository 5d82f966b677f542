// MLIR's own path (loops, one scalar at a time, libm) as an independent reference: it shares no code with the emitter and
// none with the evaluator of the other tests.
#include "ClusterText.h"
#include "KernelTestSupport.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/TargetSelect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace msc::test {
namespace {

/// Compiles the module to machine code through stock passes only; functions take bare pointers, results last.
std::unique_ptr<mlir::ExecutionEngine> compileStock(mlir::ModuleOp module) {
  mlir::DialectRegistry registry;
  mlir::arith::registerBufferizableOpInterfaceExternalModels(registry);
  mlir::linalg::registerBufferizableOpInterfaceExternalModels(registry);
  mlir::tensor::registerBufferizableOpInterfaceExternalModels(registry);
  mlir::bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  mlir::memref::registerAllocationOpInterfaceExternalModels(registry);
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadDialect<mlir::bufferization::BufferizationDialect, mlir::memref::MemRefDialect,
                                   mlir::scf::SCFDialect, mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect>();
  for (auto func : module.getOps<mlir::func::FuncOp>())
    func->setAttr("llvm.emit_c_interface", mlir::UnitAttr::get(module.getContext()));

  mlir::PassManager passes(module.getContext());
  mlir::bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.setFunctionBoundaryTypeConversion(mlir::bufferization::LayoutMapOption::IdentityLayoutMap);
  passes.addPass(mlir::bufferization::createEmptyTensorToAllocTensorPass());
  passes.addPass(mlir::bufferization::createOneShotBufferizePass(options));
  passes.addPass(mlir::bufferization::createBufferResultsToOutParamsPass());
  // What lies between operators is on the stack: nothing here would free it elsewhere.
  passes.addNestedPass<mlir::func::FuncOp>(mlir::bufferization::createPromoteBuffersToStackPass([](mlir::Value) { return true; }));
  passes.addNestedPass<mlir::func::FuncOp>(mlir::createConvertLinalgToLoopsPass());
  passes.addPass(mlir::createConvertSCFToCFPass());
  passes.addPass(mlir::createConvertMathToLibmPass());
  passes.addPass(mlir::createConvertMathToLLVMPass());
  passes.addPass(mlir::createArithToLLVMConversionPass());
  passes.addPass(mlir::createFinalizeMemRefToLLVMConversionPass());
  mlir::ConvertFuncToLLVMPassOptions bare;
  bare.useBarePtrCallConv = true;
  passes.addPass(mlir::createConvertFuncToLLVMPass(bare));
  passes.addPass(mlir::createConvertControlFlowToLLVMPass());
  passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (mlir::failed(passes.run(module)))
    return nullptr;
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  auto engine = mlir::ExecutionEngine::create(module);
  return engine ? std::move(*engine) : nullptr;
}

struct Compared {
  std::string name, text;
  double tolerance;
};

std::vector<Compared> clusters(int64_t r, int64_t c) {
  auto f = [](const char *name) { return ClusterText(name); };
  return {
      {"gelu", f("gelu").argument("x", {r, c}, "f32").argument("b", {c}, "f32")
          .generic("s", {r, c}, "f32", "pp", {"x", "b"}, {"ab", "b", "ab"}, "%y = arith.addf %x0, %x1 : f32")
          .generic("g", {r, c}, "f32", "pp", {"s"}, {"ab", "ab"},
                   "%k = arith.constant 0.70710678 : f32\n %h = arith.constant 0.5 : f32\n %o = arith.constant 1.0 : f32\n"
                   "%m = arith.mulf %x0, %k : f32\n %e = math.erf %m : f32\n %p = arith.addf %e, %o : f32\n"
                   "%q = arith.mulf %x0, %h : f32\n %y = arith.mulf %q, %p : f32")
          .returns({"g"}).str(), 1e-6},
      {"softmax", f("softmax").argument("x", {r, c}, "f32").argument("unused", {c}, "f32")
          .generic("m", {r}, "f32", "pr", {"x"}, {"ab", "a"}, "%y = arith.maximumf %acc, %x0 : f32", "-1.0e30")
          .generic("e", {r, c}, "f32", "pp", {"x", "m"}, {"ab", "a", "ab"},
                   "%d = arith.subf %x0, %x1 : f32\n %y = math.exp %d : f32")
          .generic("s", {r}, "f32", "pr", {"e"}, {"ab", "a"}, "%y = arith.addf %acc, %x0 : f32", "0.0")
          .generic("p", {r, c}, "f32", "pp", {"e", "s"}, {"ab", "a", "ab"}, "%y = arith.divf %x0, %x1 : f32")
          .returns({"p"}).str(), 1e-6},
      {"bias_gradient", f("bias_gradient").argument("x", {r, c}, "f32").argument("b", {c}, "f32")
          .generic("s", {c}, "f32", "rp", {"x"}, {"ab", "b"}, "%y = arith.addf %acc, %x0 : f32", "0.0")
          .generic("u", {c}, "f32", "p", {"s", "b"}, {"a", "a", "a"}, "%y = arith.mulf %x0, %x1 : f32")
          .returns({"u"}).str(), 2e-5},
      {"transposed", f("transposed").argument("x", {r, c}, "f32").argument("b", {c}, "f32")
          .generic("t", {c, r}, "f32", "pp", {"x", "b"}, {"ba", "a", "ab"}, "%y = arith.addf %x0, %x1 : f32")
          .returns({"t"}).str(), 0},
  };
}

TEST(StockLowering, AgreesWithTheKernels) {
  for (auto [r, c] : std::vector<std::pair<int64_t, int64_t>>{{5, 37}, {33, 64}, {70, 3}})
    for (const Compared &compared : clusters(r, c)) {
      auto module = parse(compared.text);
      ASSERT_TRUE(module);
      auto func = *module->getOps<mlir::func::FuncOp>().begin();
      int64_t count = mlir::cast<mlir::RankedTensorType>(func.getResultTypes()[0]).getNumElements();
      codegen::KernelLibrary library;
      auto kernel = library.add(func);
      ASSERT_TRUE(mlir::succeeded(kernel));
      auto objects = library.finish(module->getLoc());
      int64_t extent = 1;
      for (auto [pointer, dim] : kernel->rangeSizes)
        extent *= mlir::cast<mlir::RankedTensorType>(pointer < func.getNumArguments() ? func.getArgumentTypes()[pointer]
                                                                                       : func.getResultTypes()[0]).getDimSize(dim);
      auto engine = compileStock(*module);
      ASSERT_TRUE(engine) << compared.name;
      Buffer x(r * c * sizeof(float)), b(c * sizeof(float)), ours(count * sizeof(float)), theirs(count * sizeof(float));
      std::mt19937 random(3);
      std::uniform_real_distribution<float> real(-3, 3);
      for (int64_t i = 0; i < r * c; ++i)
        reinterpret_cast<float *>(x.data())[i] = real(random);
      for (int64_t i = 0; i < c; ++i)
        reinterpret_cast<float *>(b.data())[i] = real(random);
      auto address = engine->lookup(compared.name);
      ASSERT_TRUE(bool(address)) << llvm::toString(address.takeError());
      reinterpret_cast<void (*)(void *, void *, void *)>(*address)(x.data(), b.data(), theirs.data());
      LoadedObject loaded((*objects)[0].bytes);
      callKernel(loaded.symbol(kernel->symbol), {x.data(), b.data(), ours.data()}, 0, extent);
      for (int64_t i = 0; i < count; ++i) {
        float got = reinterpret_cast<float *>(ours.data())[i], want = reinterpret_cast<float *>(theirs.data())[i];
        ASSERT_NEAR(got, want, compared.tolerance * std::max(1.0f, std::fabs(want))) << compared.name << " element " << i;
      }
    }
}

} // namespace
} // namespace msc::test
