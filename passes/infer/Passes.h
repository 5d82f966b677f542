// Checks of whole networks, before anything is decided.
#pragma once

#include "dialects/net/Network.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace msc::infer {

#define GEN_PASS_DECL
#include "passes/infer/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/infer/Passes.h.inc"

} // namespace msc::infer
