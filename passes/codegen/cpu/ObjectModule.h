// One LLVM module per instruction set, from IR to the bytes of a shared object.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace msc::codegen {

/// Kernels for one instruction set. Owns its context, so that two of them may be compiled at the same time.
class ObjectModule {
public:
  /// `isa` is "x86-64-v3" or "x86-64-v4": the target, never the CPU of this machine.
  explicit ObjectModule(llvm::StringRef isa);
  llvm::StringRef isa() const { return name; }
  llvm::Module &module() { return *content; }
  /// Optimises, generates code and links. The module is used up.
  llvm::Expected<std::string> compile();
  /// Checks the module; for tests and debugging.
  bool verify(std::string &message) const;

private:
  std::string name;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> content;
};

} // namespace msc::codegen
