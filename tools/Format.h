// `msc fmt`: lays files out in the one way.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace msc::tools {

struct FormatFlags {
  std::vector<std::string> files; ///< "-": from stdin to stdout
  bool check = false;

  void addTo(CLI::App &app);
};

/// Writes the files that change, or with `check` only names them. Returns the exit code: 0, 1 if a file has mistakes or
/// would change, 2 if a file is missing, 3 if it is no text, 4 if it cannot be written.
int runFormat(const FormatFlags &flags);

} // namespace msc::tools
