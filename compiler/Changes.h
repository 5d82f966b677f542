// What a user could change of a network so that it needs less memory, and the network with such changes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mlir {
class ModuleOp;
}
namespace llvm {
class SourceMgr;
}
namespace msc::frontend {
struct ParseOptions;
}
namespace msc::net {
struct Config;
}

namespace msc::compiler {

/// What is taken otherwise than the network says.
struct NetworkChanges {
  std::vector<std::string> recompute; ///< calls of cells by NetworkFacts::Call::place: as with {recompute: true} behind them
  uint64_t accumulateSteps = 0;       ///< of the train block; 0: what it says
  std::string ampLevel, ampType;      ///< of the train block; empty: what it says
  bool freesStrategies = false;       ///< strategies and shardings that stand in files of the user are left out
  bool dropsUnread = false;           ///< parameters that nothing reads, in files of the user, are left out
  bool inference = false;             ///< as if there were neither a train nor a checkpoint block: nothing but the forward pass
};

/// What there is to change.
struct NetworkFacts {
  struct Call {
    std::string place; ///< "net.mir:34:8"
    std::string line;  ///< "net.mir:34", as messages name the file
    std::string name;  ///< of the first instance: "h.{i}"
  };
  std::vector<Call> calls;                         ///< of cells, in files of the user; those that are computed again already are left out
  struct Given {
    std::string line, name; ///< "net.mir:34", "h.{i}.attn.q"
  };
  std::vector<Given> strategies;                   ///< and shardings that stand in files of the user
  std::vector<Given> unread;                       ///< parameters in files of the user that nothing reads
  std::map<std::string, int64_t> consts;           ///< that -D may override
  std::vector<std::vector<int64_t>> inputs, parameters; ///< shapes; without `unread`
  bool trains = false;
  uint64_t accumulateSteps = 1, steps = 0;         ///< of the train block; 0: it does not say them
  std::string ampLevel, parallelMode, searchMode;
  int64_t devices = 1;
};

/// Parsing takes the changes of cells and notes what else there is. Holds references to all four.
void watch(frontend::ParseOptions &options, const NetworkChanges &changes, NetworkFacts &facts, const llvm::SourceMgr &sources);

/// Puts changes of the train block into the module.
void applyChanges(mlir::ModuleOp module, const NetworkChanges &changes);

/// The rest of the facts.
void noteFacts(mlir::ModuleOp module, const net::Config &config, NetworkFacts &facts, const llvm::SourceMgr &sources);

} // namespace msc::compiler
