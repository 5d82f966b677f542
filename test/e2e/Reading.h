// A network in memory, as the compiler reads it.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"

#include "mlir/IR/MLIRContext.h"

#include <string>

namespace msc::e2e {

struct Reading {
  Reading(const std::string &text, int64_t devices) : stream(said), diagnostics(context, sources, stream) {
    mlir::DialectRegistry registry;
    net::registerNetDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<net::NetDialect, dist::DistDialect>();
    frontend::ParseOptions options;
    options.devices = devices;
    module = frontend::parseString(text, "random.mir", context, options, sources);
  }
  net::NetworkOp network() { return *module->getOps<net::NetworkOp>().begin(); }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  llvm::SourceMgr sources;
  std::string said;
  llvm::raw_string_ostream stream;
  frontend::Diagnostics diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace msc::e2e
