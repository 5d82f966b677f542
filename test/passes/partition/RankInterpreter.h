// Runs a partitioned network on all of its ranks: every operator on the rank's own shards with the reference functions,
// every collective within its group. Shares no code with the runtime.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "test/reference/Interpreter.h"

namespace msc::test {

/// One tensor per rank.
using Shards = std::vector<reference::Tensor>;

class RankInterpreter {
public:
  explicit RankInterpreter(net::NetworkOp network);

  /// Runs one step. `global` holds the values of inputs, parameters, scalars and constants before partitioning; results
  /// are in `values`. Returns what went wrong, or nothing.
  std::string run(const reference::Tensors &global);

  /// The shards of a value.
  llvm::DenseMap<mlir::Value, Shards> values;
  /// Operators that exchanged elements.
  int64_t exchanges = 0;

private:
  std::string evaluate(mlir::Operation &op);
  std::string collective(dist::CollectiveOp op);
  std::string slice(dist::SliceOp op);
  std::string regions(mlir::Operation &op);
  Shards cut(const reference::Tensor &whole, mlir::Value value) const;

  net::NetworkOp network;
  int64_t devices;
  reference::Interpreter reference;
};

/// What is wrong with the shards of a value that should be `whole`; empty if nothing is.
std::string compareShards(mlir::Value value, const Shards &shards, const reference::Tensor &whole);

} // namespace msc::test
