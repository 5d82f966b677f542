#include "passes/codegen/ObjectModule.h"

#include "passes/codegen/SharedObject.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

namespace msc::codegen {

static const llvm::Target &target() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  return *llvm::TargetRegistry::lookupTarget("x86_64-unknown-linux-gnu", error);
}

ObjectModule::ObjectModule(llvm::StringRef isa) : name(isa) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard; // only what the IR calls fma
  options.NoTrappingFPMath = true;
  machine.reset(target().createTargetMachine("x86_64-unknown-linux-gnu", isa, "", options, llvm::Reloc::PIC_,
                                             llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  content = std::make_unique<llvm::Module>("kernels", context);
  content->setTargetTriple("x86_64-unknown-linux-gnu");
  content->setDataLayout(machine->createDataLayout());
}

bool ObjectModule::verify(std::string &message) const {
  llvm::raw_string_ostream stream(message);
  return !llvm::verifyModule(*content, &stream);
}

// The emitter writes code that is nearly final: what is left is to hoist, to fold addresses and to share subexpressions.
void ObjectModule::optimise() {
  llvm::PassBuilder builder(machine.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function &function : *content)
    if (!function.isDeclaration())
      passes.run(function, functions);
}

llvm::Expected<std::string> ObjectModule::compile() {
  for (llvm::Function &function : *content)
    if (!function.isDeclaration())
      function.addFnAttr("target-cpu", name);
  optimise();
  llvm::SmallVector<char, 0> object;
  {
    llvm::raw_svector_ostream stream(object);
    llvm::legacy::PassManager generator;
    if (machine->addPassesToEmitFile(generator, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                     /*DisableVerify=*/true))
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "this llvm cannot write objects for '%s'", name.c_str());
    generator.run(*content);
  }
  return linkSharedObject(object);
}

} // namespace msc::codegen
