// Passes that choose strategies.
#pragma once

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace msc::passes {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/sharding/Passes.h.inc"

} // namespace msc::passes
