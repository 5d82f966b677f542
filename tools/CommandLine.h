// What msc and msrun share on the command line: CLI11 parses, the errors are ours.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}

namespace msc::tools {

/// The program's name and its arguments.
struct Arguments {
  std::string program;
  std::vector<std::string> words;
  bool speaks = true; ///< false: another process says the same
};

/// The type name of options that are true or false; without a value they are true.
inline constexpr const char *kBoolean = "BOOL";

/// The option takes whole numbers from `least` to `most`, both included.
void takesNumber(CLI::Option &option, int64_t least, int64_t most);

/// "1000000", "1e6", "16GiB", "16Gi", "16 G", "1.5GB": KiB, MiB, GiB, TiB, with B or not, and k, M, G, T are powers of 1024, kB, MB, GB, TB powers of 1000, in capitals
/// or not. Nothing if it is no size from 1 byte to 2^63 - 1.
std::optional<uint64_t> readBytes(std::string_view text);
/// The help for what readBytes does not take.
std::string bytesHelp(std::string_view text);

/// Parses into the variables bound to `app`. Returns -1 to go on, else the exit code: 0 after --help or --version (text
/// on stdout), 2 after a wrong word or an empty value (one `error:` line on stderr and a
/// `help:` line that offers the nearest flag or verb), 4 if stdout takes no text.
int parseCommandLine(CLI::App &app, const Arguments &arguments);

/// To be called first: a closed standard file is replaced by /dev/null, lest the first file that is opened gets its lines, and
/// a write beyond the limit on file sizes (ulimit -f) is an error of that write, not the end of the process.
void prepareProcess();

/// Brings `text` to stdout. NoResource if it does not get there; a reader that has gone had what it wanted.
Status printText(const std::string &text);

/// "msc: error: ..." and, unless empty, "help: ...", in the language of the user; each ends in a newline.
std::string errorText(const std::string &program, const std::string &message, const std::string &help);
/// The same on stderr.
void printError(const std::string &program, const std::string &message, const std::string &help);

} // namespace msc::tools
