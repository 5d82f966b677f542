// `msc ops`: which operators and layers there are, and what each one takes.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace msc::compiler {
struct OperatorDescription;
}

namespace msc::tools {

struct OpsFlags {
  std::string name; ///< empty: all
  bool json = false;

  void addTo(CLI::App &app);
};

/// "ReduceSum(x, axis: ints = (), keep_dims: bool = false) -> output"; "[a: int]" may be left out and has no default.
std::string signature(const compiler::OperatorDescription &op);

/// Prints the operators; returns the exit code.
int runOps(const OpsFlags &flags);

} // namespace msc::tools
