// Passes that make communication fewer, smaller and earlier. They do not change what a network computes.
#pragma once

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace msc::passes {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/optimize/Passes.h.inc"

} // namespace msc::passes
