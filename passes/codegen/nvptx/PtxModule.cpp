#include "passes/codegen/nvptx/PtxModule.h"

#include "passes/codegen/LightPipeline.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

namespace msc::codegen {

static constexpr const char *triple = "nvptx64-nvidia-cuda";

static const llvm::Target &target() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  return *llvm::TargetRegistry::lookupTarget(triple, error);
}

PtxModule::PtxModule() {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // only what the IR calls fma
  machine.reset(target().createTargetMachine(triple, "sm_80", "+ptx70", options, std::nullopt, std::nullopt,
                                             llvm::CodeGenOptLevel::Default));
  content = std::make_unique<llvm::Module>("kernels", context);
  content->setTargetTriple(triple);
  content->setDataLayout(machine->createDataLayout());
}

bool PtxModule::verify(std::string &message) const {
  llvm::raw_string_ostream stream(message);
  return !llvm::verifyModule(*content, &stream);
}

void PtxModule::optimise() {
  if (!isOptimised)
    runLightPipeline(*content, *machine, /*remembersLoads=*/false);
  isOptimised = true;
}

std::string PtxModule::irText() {
  optimise();
  std::string text;
  llvm::raw_string_ostream(text) << *content;
  return text;
}

llvm::Expected<std::string> PtxModule::compile() {
  optimise();
  llvm::SmallVector<char, 0> text;
  {
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager generator;
    if (machine->addPassesToEmitFile(generator, stream, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                     /*DisableVerify=*/true))
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "this llvm cannot write PTX");
    generator.run(*content);
  }
  return std::string(text.begin(), text.end());
}

} // namespace msc::codegen
