#include "passes/codegen/cpu/ObjectModule.h"

#include "passes/codegen/LightPipeline.h"
#include "passes/codegen/cpu/SharedObject.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

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

llvm::Expected<std::string> ObjectModule::compile() {
  for (llvm::Function &function : *content)
    if (!function.isDeclaration())
      function.addFnAttr("target-cpu", name);
  runLightPipeline(*content, *machine);
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
