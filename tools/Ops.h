// `msc ops`: which operators there are, and what each one takes.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace msc::tools {

struct OpsFlags {
  std::string name; ///< empty: all
  bool json = false;

  void addTo(CLI::App &app);
};

/// Prints the operators; returns the exit code.
int runOps(const OpsFlags &flags);

} // namespace msc::tools
