// The GPU kernels of a plan in one LLVM module, from IR to PTX text.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace msc::codegen {

/// PTX for sm_80 and later: the driver turns it into code for the GPU at hand. Needs no CUDA toolkit.
class PtxModule {
public:
  PtxModule();
  llvm::Module &module() { return *content; }
  /// The optimised IR, as the code generator gets it.
  std::string irText();
  /// Optimises and generates the text. The module is used up.
  llvm::Expected<std::string> compile();
  bool verify(std::string &message) const;

private:
  void optimise();

  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> content;
  bool isOptimised = false;
};

} // namespace msc::codegen
