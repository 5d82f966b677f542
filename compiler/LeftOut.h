// What `--repropagate` makes of a dump whose strategies were edited.
#pragma once

#include "dialects/net/Network.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <set>
#include <string>

namespace msc::compiler {

/// Strategies of a dump that are not kept. An edit that keeps its `strategy_origin` is one of them.
class LeftOut {
public:
  /// Of a module that was just read.
  void take(mlir::ModuleOp module);
  /// A note if operators have other strategies now.
  void report(net::NetworkOp network) const;

private:
  bool isReplaced(mlir::Operation *op) const;

  llvm::StringMap<std::set<std::string>> strategies; ///< by the names of operators
};

} // namespace msc::compiler
