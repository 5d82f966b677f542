// The optimisations that the emitters' code still wants: it is nearly final, what is left is to hoist, to fold addresses
// and to share subexpressions.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace msc::codegen {

/// With `remembersLoads` what was read is known until memory changes that may be the same; without, until any may: at a
/// barrier it is forgotten, so that it takes no registers.
void runLightPipeline(llvm::Module &module, llvm::TargetMachine &machine, bool remembersLoads = true);

} // namespace msc::codegen
