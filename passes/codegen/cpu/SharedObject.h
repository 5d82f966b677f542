// A linker for one case: kernels that call nothing and refer only to their own constants.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace msc::codegen {

/// Turns an x86-64 ELF relocatable object into a shared object that exports its global functions. Relocations other
/// than PC-relative ones to the object's own sections, undefined symbols and writable data are errors with the name.
llvm::Expected<std::string> linkSharedObject(llvm::ArrayRef<char> object);

} // namespace msc::codegen
