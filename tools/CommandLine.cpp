#include "tools/CommandLine.h"

#include "runtime/ControlCharacters.h"
#include "runtime/messages/Catalogue.h"
#include "runtime/Nearest.h"
#include "runtime/WriteRepair.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace msc::tools {

std::string errorText(const std::string &program, const std::string &message, const std::string &help) {
  constexpr const char *kept = "\n\t"; // a help may have several lines
  return program + ": error: " + withoutControls(messages::withCode(message)) + "\n" +
         (help.empty() ? "" : "help: " + withoutControls(messages::translated(help), kept) + "\n");
}

void printError(const std::string &program, const std::string &message, const std::string &help) {
  std::fputs(errorText(program, message, help).c_str(), stderr);
}

void prepareProcess() {
  for (int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
      return;
  std::signal(SIGXFSZ, SIG_IGN);
}

Status printText(const std::string &text) {
  if ((std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) || errno == EPIPE)
    return {};
  return Error{ExitCode::NoResource, std::string("cannot write to stdout: ") + std::strerror(errno), writeRepair(errno)};
}

/// The first option with an empty value: it would be taken for one that was not given. "" if there is none.
static std::string emptyOption(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    if (option->get_items_expected_max() > 0 && std::count(option->results().begin(), option->results().end(), "") != 0)
      return option->get_name();
  for (const CLI::App *verb : app.get_subcommands())
    if (std::string name = emptyOption(*verb); !name.empty())
      return name;
  return "";
}

/// Flags and verbs of an application and of the verbs that were chosen.
static void collectWords(const CLI::App &app, std::vector<std::string> &flags, std::vector<std::string> &verbs) {
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  for (const CLI::App *verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
    if (verb->parsed())
      collectWords(*verb, flags, verbs);
  }
}

static int fail(const Arguments &arguments, const std::string &message, const std::string &help) {
  if (arguments.speaks)
    printError(arguments.program, message, help);
  return 2;
}

/// "'msc compile --help'": the help of the verb that was chosen.
static std::string helpCommand(const CLI::App &app, const std::string &program) {
  std::string command = program;
  for (const CLI::App *verb : app.get_subcommands())
    command += " " + verb->get_name();
  return "'" + command + " --help'";
}

/// The nearest flag; the beginning of a flag is near to it, however long the rest. Nobody who errs means --help.
static std::string nearestFlag(const std::string &word, std::vector<std::string> flags) {
  constexpr size_t shortest = 5; // "--" and three letters
  std::erase_if(flags, [](const std::string &flag) { return flag == "--help" || flag == "--version"; });
  for (const std::string &flag : flags)
    if (word.size() >= shortest && flag.rfind(word, 0) == 0)
      return flag;
  return nearest(word, flags);
}

static int reportStranger(const CLI::App &app, const Arguments &arguments, const std::string &word) {
  std::vector<std::string> flags, verbs;
  collectWords(app, flags, verbs);
  std::string bare = word.substr(0, word.find('='));
  if (word.rfind("-", 0) == 0) {
    if (std::find(flags.begin(), flags.end(), bare) != flags.end() && !app.get_subcommands().empty()) {
      std::string verb = app.get_subcommands().front()->get_name();
      return fail(arguments, "flag '" + bare + "' stands in front of '" + verb + "'",
                  "write it behind: " + arguments.program + " " + verb + " ... " + bare);
    }
    if (arguments.program == "msc" && bare == "--device")
      return fail(arguments, "unknown flag '--device'", "'msrun --device' chooses where a plan runs, --device-target for what it is compiled");
    if (arguments.program == "msrun" && (bare == "--devices" || bare == "-D"))
      return fail(arguments, "unknown flag '" + bare + "'", "the plan says it: compile the network again with " + bare);
    std::string near = nearestFlag(bare, flags);
    return fail(arguments, "unknown flag '" + bare + "'",
                near.empty() ? helpCommand(app, arguments.program) + " lists the flags" : "did you mean '" + near + "'?");
  }
  bool hasVerb = verbs.empty() || !app.get_subcommands().empty();
  std::string near = hasVerb ? "" : nearest(bare, verbs);
  auto isDefine = [](const std::string &other) { return other.starts_with("-D"); };
  if (hasVerb && bare != word && std::ranges::any_of(arguments.words, isDefine))
    return fail(arguments, "unexpected argument '" + word + "'", "one -D for each const: -D " + word);
  return fail(arguments, (hasVerb ? "unexpected argument '" : "unknown command '") + word + "'",
              near.empty() ? helpCommand(app, arguments.program) + " shows what it takes" : "did you mean '" + near + "'?");
}

static bool isBoolean(const CLI::Option &option) { return option.get_type_name() == kBoolean; }

/// "--devices needs a number from 1 to 8", "--machine needs a value".
static std::string lackOfValue(const CLI::Option &option) {
  std::string type = option.get_type_name();
  size_t dots = type.find("..");
  return option.get_name() + (dots == std::string::npos ? " needs a value"
                                                        : " needs a number from " + type.substr(0, dots) + " to " + type.substr(dots + 2));
}

/// The option of `app` or of `verb`, which may be null, that is called like this; else null.
static const CLI::Option *findOption(const CLI::App &app, const CLI::App *verb, const std::string &word) {
  if (word.size() > 1 && word[0] == '-')
    for (const CLI::App *level : {&app, verb})
      for (const CLI::Option *option : level ? level->get_options() : std::vector<const CLI::Option *>())
        if (option->check_name(word))
          return option;
  return nullptr;
}

/// CLI11 takes the next word for the value of an option, whatever it is. Here, a flag is none: a boolean option then stands
/// for true, also in front of a file; another one lacks its value.
static Status completeValues(const CLI::App &app, const std::string &program, std::vector<std::string> &words) {
  const CLI::App *verb = nullptr;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    for (const CLI::App *candidate : app.get_subcommands({}))
      if (!verb && candidate->get_name() == words[i])
        verb = candidate;
    const CLI::Option *option = findOption(app, verb, words[i]);
    if (!option || option->get_items_expected_min() == 0)
      continue;
    std::string next = i + 1 < words.size() ? words[i + 1] : "--";
    bool lacks = next.rfind("--", 0) == 0 || findOption(app, verb, next);
    if (isBoolean(*option) && (lacks || next.find_first_of("./") != std::string::npos))
      words[i] += "=true";
    else if (lacks)
      return Error{ExitCode::Usage, lackOfValue(*option),
                   "'" + program + (verb ? " " + verb->get_name() : "") + " --help' shows what it takes"};
    else
      ++i;
  }
  return {};
}

void takesNumber(CLI::Option &option, int64_t least, int64_t most) {
  option.type_name(fmt::format("{}..{}", least, most));
  option.check([=](const std::string &text) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool isOctal = text.size() > 1 && text.front() == '0'; // to CLI11, which reads the number itself
    bool good = error == std::errc() && end == text.data() + text.size() && value >= least && value <= most && !isOctal;
    return good ? std::string() : fmt::format("'{}' is no number from {} to {}", text, least, most);
  });
}

/// The number in front of a size, and the unit behind it in small letters.
static std::optional<std::pair<double, std::string>> splitSize(std::string_view text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if ((error != std::errc() && error != std::errc::result_out_of_range) || !std::isfinite(number))
    return std::nullopt;
  if (error == std::errc::result_out_of_range)
    number = HUGE_VAL;
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' '));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::pair(number, unit);
}

/// The bytes of a unit; nothing if there is none of that name.
static std::optional<double> bytesOf(std::string unit) {
  if (unit.empty() || unit == "b")
    return 1;
  double base = 1024;
  if ((unit.ends_with("ib") && unit.size() == 3) || (unit.ends_with("i") && unit.size() == 2))
    unit.resize(1);
  else if (unit.ends_with("b") && unit.size() == 2) {
    base = 1000;
    unit.resize(1);
  }
  constexpr std::string_view prefixes = "kmgt";
  const size_t power = prefixes.find(unit);
  return unit.size() == 1 && power != std::string_view::npos ? std::optional(std::pow(base, static_cast<double>(power + 1))) : std::nullopt;
}

std::optional<uint64_t> readBytes(std::string_view text) {
  const auto size = splitSize(text);
  const std::optional<double> unit = size ? bytesOf(size->second) : std::nullopt;
  const double bytes = unit ? size->first * *unit : 0;
  return bytes >= 1 && bytes < 0x1p63 ? std::optional(static_cast<uint64_t>(bytes)) : std::nullopt;
}

std::string bytesHelp(std::string_view text) {
  constexpr const char *all = "write a number and a unit: k, M, G, T or KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of 1000), or B";
  const auto size = splitSize(text);
  if (!size)
    return all;
  if (!bytesOf(size->second))
    return "there is no unit '" + std::string(text.substr(text.size() - size->second.size())) + "': " + all;
  return "write 1 B or more, at most 8388607 TiB";
}

/// What CLI11 says, in plain words.
static std::string plainText(const CLI::ParseError &error) {
  std::string text = error.what();
  auto cut = [&](const std::string &separator) {
    size_t at = text.find(separator);
    return std::pair(text.substr(0, at), at == std::string::npos ? "" : text.substr(at + separator.size()));
  };
  if (dynamic_cast<const CLI::RequiredError *>(&error)) {
    std::string name = cut(" is required").first;
    return (name[0] == '-' ? "option '" : "argument '") + name + "' is missing";
  }
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error))
    return cut(": ").first + " is given more than once";
  if (dynamic_cast<const CLI::ConversionError *>(&error)) { // of a flag: numbers have their checks
    text = cut(": ").second;
    auto [name, value] = cut(" = ");
    return name + " is true or false, not '" + value + "'";
  }
  return text;
}

/// The help of an application and of its verbs in the language of the user.
static void translateHelp(CLI::App &app) {
  app.description(messages::translated(app.get_description()));
  app.footer(messages::translated(app.get_footer()));
  for (const char *label : {"Usage", "OPTIONS", "SUBCOMMAND", "Positionals", "REQUIRED", "Needs", "Excludes"})
    app.get_formatter()->label(label, messages::translated(label));
  for (CLI::Option *option : app.get_options()) {
    option->description(messages::translated(option->get_description()));
    option->group(messages::translated(option->get_group()));
  }
  for (CLI::App *verb : app.get_subcommands({})) {
    verb->group(messages::translated(verb->get_group()));
    translateHelp(*verb);
  }
}

int parseCommandLine(CLI::App &app, const Arguments &arguments) {
  if (messages::languageOfEnvironment() != messages::Language::English)
    translateHelp(app);
  std::vector<std::string> words = arguments.words;
  if (Status status = completeValues(app, arguments.program, words); !status)
    return fail(arguments, status.error().message, status.error().help);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  app.allow_extras(true);
  for (CLI::App *verb : app.get_subcommands({}))
    verb->allow_extras(true);
  try {
    app.parse(reversed);
  } catch (const CLI::Success &success) {
    std::ostringstream out;
    if (!arguments.speaks || app.exit(success, out) != 0)
      return arguments.speaks ? 2 : 0;
    Status printed = printText(out.str());
    if (!printed)
      printError(arguments.program, printed.error().message, "");
    return printed ? 0 : static_cast<int>(printed.error().code);
  } catch (const CLI::ParseError &error) {
    bool lacksVerb = !app.get_subcommands({}).empty() && app.get_subcommands().empty();
    if (lacksVerb && !arguments.words.empty())
      return reportStranger(app, arguments, arguments.words.front());
    if (lacksVerb)
      return fail(arguments, "a command is missing", "'" + arguments.program + " --help' lists them");
    return fail(arguments, plainText(error), helpCommand(app, arguments.program) + " shows what it takes");
  }
  if (std::string name = emptyOption(app); !name.empty())
    return fail(arguments, name + " has an empty value", "give it one, or leave it out");
  std::vector<std::string> extra = app.remaining(true);
  std::erase(extra, "--"); // words behind it are no flags
  if (!extra.empty())
    return reportStranger(app, arguments, extra.front());
  return -1;
}

} // namespace msc::tools
