// `msc redistribute`: how a tensor gets from one sharding to another, and what that costs.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace msc::tools {

/// What stands on the command line. Each side is given over named axes, or in MindSpore's form.
struct RedistributeFlags {
  std::string mesh;
  int64_t devices = 0;
  std::string shape;
  std::string dtype = "f32";
  struct Side {
    std::string axes;         ///< "[x, y]"
    std::string deviceMatrix; ///< "(2, 4)"
    std::string tensorMap;    ///< "(1, 0)", counted from the right, -1 for none
  } from, to;
  int64_t rank = -1;
  std::string machine = "cpu-local";
  std::string deviceOrder;
  bool json = false;
  bool all = false;
  bool verify = false;

  void addTo(CLI::App &app);
};

/// Prints the steps; returns the exit code.
int runRedistribute(const RedistributeFlags &flags);

} // namespace msc::tools
