// Values of the partitioned network by values of the global one, and every change of sharding between them.
#pragma once

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <string>

namespace msc::passes {

/// Why and for whom a value changes its sharding.
struct MoveReason {
  mlir::Operation *op = nullptr; ///< whose phase, scope and place the move takes
  std::string sentence;          ///< for people
};

/// One new value per global value; partial results are completed when somebody first needs them whole. A value that was
/// brought to a sharding once is not brought there again: all users share it, backward included.
class Placements {
public:
  explicit Placements(mlir::OpBuilder &builder) : builder(builder) {}

  /// `value` is the new form of `global`; it may be partial. `reason` speaks of its completion.
  void set(mlir::Value global, mlir::Value value, MoveReason reason = {});
  bool has(mlir::Value global) const { return entries.contains(global); }

  /// As its operator left it.
  mlir::Value raw(mlir::Value global) const { return entries.find(global)->second.value; }
  /// Without partial axes, in the operator's own output sharding.
  mlir::Value completed(mlir::Value global);
  /// The sharding that completed() has, without making it.
  Sharding completedSharding(mlir::Value global) const;
  /// Under the given sharding (canonical form).
  mlir::Value under(mlir::Value global, const Sharding &sharding, const MoveReason &reason);

private:
  struct Entry {
    mlir::Value value;
    mlir::Value whole; ///< null until completed
    MoveReason completion;
    std::map<std::string, mlir::Value> moved; ///< by text of the sharding
  };
  mlir::Value reshard(mlir::Value value, const Sharding &target, llvm::StringRef move, const MoveReason &reason);

  mlir::OpBuilder &builder;
  llvm::DenseMap<mlir::Value, Entry> entries;
};

} // namespace msc::passes
