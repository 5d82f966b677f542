// What msc and msrun share on the command line: CLI11 parses, the errors are ours.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace msc::tools {

/// The program's name and its arguments.
struct Arguments {
  std::string program;
  std::vector<std::string> words;
  bool speaks = true; ///< false: another process says the same
};

/// Parses into the variables bound to `app`. Returns -1 to go on, else the exit code: 0 after --help or --version (text
/// on stdout), 2 after a wrong word (one `error:` line on stderr and a `help:` line that offers the nearest flag or verb).
int parseCommandLine(CLI::App &app, const Arguments &arguments);

/// "msc: error: ..." and, unless empty, "help: ..." on stderr.
void printError(const std::string &program, const std::string &message, const std::string &help);

} // namespace msc::tools
