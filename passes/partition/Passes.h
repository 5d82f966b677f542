// Passes that split a network over devices.
#pragma once

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace msc::passes {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/partition/Passes.h.inc"

} // namespace msc::passes
