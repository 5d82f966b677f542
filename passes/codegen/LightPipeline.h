// The optimisations that the emitters' code still wants: it is nearly final, what is left is to hoist, to fold addresses
// and to share subexpressions.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace msc::codegen {

void runLightPipeline(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace msc::codegen
