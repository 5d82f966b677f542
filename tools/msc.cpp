// msc: compiles networks, explains plans, plans redistributions, describes operators.
#include "compiler/Compiler.h"
#include "compiler/Explain.h"
#include "compiler/Page.h"
#include "compiler/PlanDiff.h"
#include "compiler/Report.h"
#include "compiler/StrategyFile.h"
#include "compiler/Tables.h"
#include "compiler/Timeline.h"
#include "compiler/WhyNot.h"
#include "runtime/messages/Catalogue.h"
#include "runtime/Nearest.h"
#include "runtime/WriteRepair.h"
#include "runtime/machine/MachineFile.h"
#include "runtime/machine/Presets.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/checkpoint/File.h"
#include "tools/CommandLine.h"
#include "tools/FileKind.h"
#include "tools/Format.h"
#include "tools/LastWords.h"
#include "tools/Ops.h"
#include "tools/Redistribute.h"
#include "tools/lsp/Server.h"

#include "llvm/Support/ErrorHandling.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <optional>
#include <system_error>

#include <sys/ioctl.h>
#include <unistd.h>

using namespace msc;

namespace {

/// Says every ten seconds that a search goes on, and how far it has come.
std::function<void(double, double)> searchNotes() {
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds pause(10);
  return [begin = Clock::now(), next = std::make_shared<Clock::time_point>(Clock::now() + pause)](double leastUs, double knownUs) {
    const Clock::time_point now = Clock::now();
    if (now < *next)
      return;
    *next = now + pause;
    std::string text = fmt::format("searching for {} s", std::chrono::duration_cast<std::chrono::seconds>(now - begin).count());
    if (leastUs > 0 && std::isfinite(knownUs)) {
      const auto us = timeTexts({leastUs, knownUs});
      text += fmt::format(": no strategies take less than {}, some take {}", us[0], us[1]);
    } else if (leastUs > 0) {
      text += fmt::format(": no strategies take less than {}", timeText(leastUs));
    } else if (std::isfinite(knownUs)) {
      text += fmt::format(": some strategies take {}", timeText(knownUs));
    }
    std::fprintf(stderr, "%s\n", messages::translatedLine("note: " + text).c_str());
  };
}

/// What `compile` and `explain` share: how a network is compiled.
struct CompileFlags {
  compiler::CompileOptions options;
  std::vector<std::string> defines;
  std::vector<compiler::ContextOption> contextOptions;
  std::vector<std::optional<std::string>> context; ///< one text per option
  bool noFusion = false;
  bool noMoves = false;
  bool noPartialSums = false, noReuse = false;
  bool noCommFusion = false;
  bool noOverlap = false;
  std::string memoryLimit;
  std::vector<CLI::Option *> own;

  /// `dumps`: with the flags that write dumps.
  void addTo(CLI::App &app, bool dumps) {
    size_t first = app.get_options().size();
    tools::takesNumber(*app.add_option("--devices", options.devices, "number of devices (default: what the network says, else 1)"), 1,
                       int64_t{1} << 20);
    app.add_option("-D,--define", defines, "NAME=VALUE: overrides a const of the network")->allow_extra_args(false);
    app.add_option("--keep", options.keep, "values to keep as results, e.g. %a,grad:w")->delimiter(',');
    app.add_option("--machine", options.machine,
                   fmt::format("{}, or a machine file: what it is compiled for", presetWords()));
    app.add_flag("--no-fusion", noFusion, "one kernel per operator");
    app.add_flag("--no-moves", noMoves, "complete and redistribute values as 18_execute shows it, one after the other");
    app.add_flag("--no-reuse", noReuse, "compute statistics again in the backward pass, as 18_execute shows it");
    app.add_flag("--no-partial-sums", noPartialSums, "complete every sum before it is used, as 18_execute shows it");
    app.add_flag("--no-comm-fusion", noCommFusion, "every collective on its own, as comm_fusion {openstate: false}");
    app.add_flag("--no-overlap", noOverlap, "every collective is awaited at once, as 19_backend shows it");
    tools::takesNumber(*app.add_option("--candidates", options.candidates,
                                       "of so many assignments a search takes the one that is fastest with all passes; 1: the one of least "
                                       "modelled time (default: 4 of a small network, fewer of a larger one)"),
                       1, int64_t{64});
    app.add_option("--memory-limit", memoryLimit, "what a rank may need, e.g. 16GiB or 16GB: the search keeps within it, a plan that does not is refused")
        ->type_name("BYTES");
    app.add_flag("--inference", options.changes.inference, "the forward pass alone, as if there were no train block");
    app.add_option("--strategy-load", options.strategyFile, "a file of strategies for the operators that have none");
    app.add_flag("--repropagate", options.repropagate, "of a dump, keep only strategies without a strategy_origin: delete it where an edit shall stay");
    app.add_flag("--strict", options.strict, "what costs something and nobody asked for is an error: work done twice, whole parameters gathered, uneven pieces");
    if (dumps)
      app.add_option("--save-graphs-ranks", options.saveGraphsRanks,
                     "ranks that are dumped: all, or 0,5 (default: all up to 16 devices, else one per local shapes)");
    for (const compiler::ContextOption &option : compiler::contextOptions())
      if (dumps || option.name.rfind("save_graphs", 0) != 0)
        contextOptions.push_back(option);
    context.resize(contextOptions.size());
    for (size_t i = 0; i < contextOptions.size(); ++i) {
      std::string flag = contextOptions[i].name;
      std::replace(flag.begin(), flag.end(), '_', '-');
      CLI::Option *option = app.add_option("--" + flag, context[i], contextOptions[i].help);
      option->group(contextOptions[i].help.empty() ? "" : "Options of the context block, which they override");
      if (!contextOptions[i].values.empty())
        option->type_name(contextOptions[i].values);
    }
    app.footer("Other options of MindSpore's contexts are understood; a message says why they are not here.");
    std::vector<CLI::Option *> all = app.get_options();
    own.assign(all.begin() + static_cast<ptrdiff_t>(first), all.end());
  }

  /// The first of these flags that was given, or "".
  std::string given() const {
    for (const CLI::Option *option : own)
      if (option->count() > 0)
        return option->get_name();
    return "";
  }

  bool readMemoryLimit() {
    if (memoryLimit.empty())
      return true;
    std::optional<uint64_t> bytes = tools::readBytes(memoryLimit);
    if (!bytes)
      tools::printError("msc", "--memory-limit expects a size, found '" + memoryLimit + "'", tools::bytesHelp(memoryLimit));
    constexpr uint64_t few = 1024;
    if (bytes && *bytes < few && std::ranges::all_of(memoryLimit, [](unsigned char c) { return std::isdigit(c); }))
      for (const std::string &line : {"msc: warning: --memory-limit " + memoryLimit + " is " + memoryLimit + " bytes", "help: write --memory-limit " + memoryLimit + "GiB"})
        std::fprintf(stderr, "%s\n", messages::translatedLine(line).c_str());
    options.memoryLimit = bytes.value_or(0);
    return bytes.has_value();
  }

  /// False after a message if a -D or a size is malformed.
  bool finish() {
    if (!readMemoryLimit())
      return false;
    if (isatty(STDERR_FILENO))
      options.onSearch = searchNotes();
    options.fusion = !noFusion;
    options.moves = !noMoves;
    options.reuse = !noReuse;
    options.partialSums = !noPartialSums;
    options.commFusion = !noCommFusion;
    options.overlap = !noOverlap;
    for (const std::string &define : defines) {
      size_t equals = define.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == define.size()) {
        tools::printError("msc", "-D " + (equals == 0 ? define : define.substr(0, equals)) + " has no value", "write -D name=value");
        return false;
      }
      options.defines.emplace_back(define.substr(0, equals), define.substr(equals + 1));
    }
    for (size_t i = 0; i < context.size(); ++i)
      if (context[i])
        options.context.emplace_back(contextOptions[i].name, *context[i]);
    return true;
  }
};

int fail(const Error &error) {
  if (!error.message.empty())
    tools::printError("msc", error.message, error.help);
  return static_cast<int>(error.code);
}

int printed(const std::string &text) {
  Status status = tools::printText(text);
  return status ? 0 : fail(status.error());
}

/// Of the terminal that stdout is; 0 if it is none: tables have a line for each row then.
size_t terminalColumns() {
  winsize size{};
  return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// A file with the flag that names it, or with what it is.
struct NamedFile {
  std::string name, path;
};

/// Also where there is no such file yet.
bool isSameFile(const std::string &a, const std::string &b) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  auto canonical = [&](const std::string &path) { return fs::weakly_canonical(fs::absolute(path, ignored), ignored); };
  return !a.empty() && !b.empty() && (fs::equivalent(a, b, ignored) || canonical(a) == canonical(b));
}

/// None of the files that are written takes the place of one that is read.
Status checkKept(const std::vector<NamedFile> &written, const std::vector<NamedFile> &read) {
  for (const NamedFile &target : written)
    for (const NamedFile &source : read)
      if (isSameFile(target.path, source.path))
        return Error{ExitCode::Usage, target.name + " " + target.path + " would overwrite " + source.name, "choose another name"};
  return Status::ok();
}

/// Before the work, not after it: the folders that files go to exist, no file takes the place of one that is read, nor of one before it,
/// which `results` name. Paths may be empty.
Status checkTargets(const std::vector<NamedFile> &written, const std::vector<std::string> &results, const std::vector<NamedFile> &read) {
  std::vector<NamedFile> kept = read;
  for (size_t i = 0; i < written.size(); ++i) {
    const auto &[flag, path] = written[i];
    std::error_code ignored;
    if (path == "-")
      return Error{ExitCode::Usage, flag + " - names no file: nothing is written to standard output", "name a file"};
    if (std::filesystem::is_directory(path, ignored))
      return Error{ExitCode::Usage, flag + " " + path + " is a folder", "name a file in it"};
    if (Status status = checkKept({written[i]}, kept); !status)
      return status;
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder))
      return Error{ExitCode::NoResource, "cannot write '" + path + "': there is no folder '" + folder.string() + "'",
                   "create it, or choose another one"};
    kept.push_back({results[i], path});
  }
  return Status::ok();
}

/// What compiling reads, as far as the command line says it.
std::vector<NamedFile> filesRead(const compiler::CompileOptions &options, const std::string &input) {
  std::vector<NamedFile> files{{input, options.input}, {"the file of strategies", options.strategyFile}};
  if (!findPreset(options.machine))
    files.push_back({"the machine file", options.machine});
  return files;
}

/// The same for files that the network names, which are known once it has been read.
Status checkImports(const std::vector<NamedFile> &written, const compiler::CompileOutcome &outcome) {
  std::vector<NamedFile> imports;
  for (const std::string &file : outcome.sources)
    imports.push_back({"what the network imports", file});
  for (const plan::Dataset &dataset : outcome.plan.datasets())
    for (const plan::Dataset::Column &column : dataset.columns())
      if (!column.path().empty())
        imports.push_back({"a column of the data set", column.path()});
  return checkKept(written, imports);
}

/// Other files are called by their name; text that looks like nothing is left to the parser.
Status checkInput(const compiler::CompileOptions &options, const std::string &wanted) {
  const std::string &path = options.input;
  tools::FileKind kind = tools::fileKindOf(path);
  if (kind == tools::FileKind::Network && options.repropagate)
    return Error{ExitCode::Usage, "--repropagate has no effect: " + path + " is no dump", "leave out --repropagate"};
  if (kind == tools::FileKind::Network || kind == tools::FileKind::Dump || kind == tools::FileKind::Text)
    return Status::ok();
  return tools::wrongKind(path, kind, wanted);
}

/// "net.plan: 24.1 KiB, 8 devices, auto_parallel, optimal; a step is predicted to take 55.2 us on cpu-local, and a rank needs 3.3 KiB";
/// where collectives run beside computation: "... 55.2 us, 58.0 us one after the other, on h100x8, ..."; where a plan for `before` devices
/// stood there: "1 device (replaces a plan for 8)".
std::string summaryOf(const std::string &output, const plan::Plan &plan, uint64_t before) {
  std::error_code ignored;
  const uint64_t devices = plan.devices();
  const plan::Prediction &step = plan.prediction();
  const auto us = timeTexts({step.step_us() - step.hidden_us(), step.step_us()});
  const std::string hidden = step.hidden_us() > 0 ? fmt::format(", {} one after the other,", us[1]) : "";
  const std::string instead = before != 0 && before != devices ? fmt::format(" (replaces a plan for {})", before) : "";
  return fmt::format("{}: {}, {} device{}{}, {}{}; a step is predicted to take {}{} on {}, and a rank needs {}\n", output,
                     compiler::bytesText(std::filesystem::file_size(output, ignored)), devices, devices == 1 ? "" : "s", instead, plan.parallel_mode(),
                     plan.parallel_mode() == "auto_parallel" ? ", " + plan.search_mode() : "", us[0],
                     hidden, plan.machine(), compiler::bytesText(plan.arena_bytes()));
}

/// For how many the plan is that will be replaced; 0: there is none, or it is not worth the time to read it.
uint64_t devicesOfPlan(const std::string &path) {
  constexpr uint64_t mostBytes = 16 << 20;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed) || std::filesystem::file_size(path, failed) > mostBytes || failed)
    return 0;
  const Result<plan::Plan> plan = plan::readPlan(path);
  return plan ? plan->devices() : 0;
}

int runCompile(CompileFlags &flags, std::string output, const std::string &report, const std::string &strategies, bool isQuiet) {
  if (!flags.finish())
    return static_cast<int>(ExitCode::Usage);
  if (Status status = checkInput(flags.options, "a network"); !status)
    return fail(status.error());
  if (output.empty())
    output = compiler::defaultOutput(flags.options.input);
  const std::vector<NamedFile> written{{"-o", output}, {"--report", report}, {"--strategy-save", strategies}};
  if (Status status = checkTargets(written, {"the plan", "the report", "the strategies"}, filesRead(flags.options, "the network")); !status)
    return fail(status.error());
  flags.options.explains = !report.empty();
  if (isQuiet)
    flags.options.onSearch = nullptr;
  Result<compiler::CompileOutcome> outcome = compiler::compile(flags.options);
  if (!outcome)
    return fail(outcome.error());
  if (Status status = checkImports(written, *outcome); !status)
    return fail(status.error());
  if (!report.empty())
    if (Status status = writeTextFile(report, compiler::reportJson(outcome->plan, outcome->findings)); !status)
      return fail(status.error());
  if (outcome->refusal)
    return fail(*outcome->refusal);
  std::optional<Result<std::string>> kept;
  if (!strategies.empty() && !*(kept = compiler::strategiesText(strategies, outcome->plan)))
    return fail(kept->error());
  std::error_code ignored;
  const bool isStdout = std::filesystem::equivalent(output, "/dev/stdout", ignored);
  const uint64_t before = isQuiet ? 0 : devicesOfPlan(output);
  if (Status status = plan::writePlan(output, outcome->plan); !status)
    return fail(status.error());
  if (kept)
    if (Status status = writeTextFile(strategies, **kept); !status)
      return fail(status.error());
  return isQuiet || isStdout || !std::filesystem::is_regular_file(output, ignored) ? 0 : printed(summaryOf(output, outcome->plan, before));
}

/// Every file is checked; the first reason to fail is the exit code.
int runCheck(CompileFlags &flags, const std::vector<std::string> &files) {
  if (!flags.finish())
    return static_cast<int>(ExitCode::Usage);
  int code = 0;
  for (const std::string &file : files) {
    flags.options.input = file;
    Status status = checkInput(flags.options, "a network");
    if (status)
      status = compiler::check(flags.options);
    if (!status && code == 0)
      code = static_cast<int>(status.error().code);
    if (!status)
      fail(status.error());
  }
  return code;
}

int runMachine(const std::string &name) {
  const Result<MachineModel> machine = readMachine(name);
  return machine ? printed(machineJson(*machine)) : fail(machine.error());
}

/// `msc explain MSC1101`.
int explainCode(const std::string &word, const std::string &flag) {
  std::vector<std::string> codes;
  for (const messages::Explanation &explanation : messages::explanations())
    codes.push_back(messages::codeText(explanation.code));
  std::string code = word;
  std::transform(code.begin(), code.end(), code.begin(), [](unsigned char c) { return std::toupper(c); });
  auto found = std::find(codes.begin(), codes.end(), code);
  if (found == codes.end()) {
    if (std::string near = nearest(code, codes); !near.empty() && code.size() != near.size())
      return fail({ExitCode::Usage, "there is no message with the code '" + word + "'", "did you mean '" + near + "'?"});
    constexpr size_t familyLetters = 4; // MSC4
    std::vector<std::string> families;
    for (const std::string &known : codes)
      if (families.empty() || !known.starts_with(families.back()))
        families.push_back(known.substr(0, familyLetters));
    auto inFamily = [&](const std::string &known) { return known.starts_with(code.substr(0, familyLetters)); };
    auto first = std::find_if(codes.begin(), codes.end(), inFamily);
    auto last = std::find_if(codes.rbegin(), codes.rend(), inFamily);
    return fail({ExitCode::Usage, "there is no message with the code '" + word + "'",
                 first == codes.end() ? fmt::format("codes begin with {}; a message has its own in brackets at its end", fmt::join(families, ", "))
                                      : fmt::format("codes that begin so run from {} to {}; a message has its own in brackets at its end", *first, *last)});
  }
  if (!flag.empty())
    return fail({ExitCode::Usage, flag + " has no effect: " + code + " is the code of a message", "leave out " + flag});
  return printed(messages::explanationText(messages::explanations()[static_cast<size_t>(found - codes.begin())]));
}

int runServer(CompileFlags &flags) {
  if (!flags.finish())
    return static_cast<int>(ExitCode::Usage);
  lsp::Transport transport(STDIN_FILENO, stdout);
  Error failure;
  int code = lsp::Server(transport, flags.options).run(failure);
  if (!failure.message.empty())
    tools::printError("msc", failure.message, failure.help);
  return code;
}

/// What differs between two plans.
int runDiff(const std::vector<std::string> &paths, bool json) {
  std::vector<plan::Plan> plans;
  if (paths.size() != 2)
    return fail({ExitCode::Usage, "--diff compares two plans, found " + std::to_string(paths.size()), "write --diff A.plan B.plan"});
  for (const std::string &path : paths) {
    if (tools::FileKind kind = tools::fileKindOf(path); kind == tools::FileKind::Network || kind == tools::FileKind::Dump)
      return fail(tools::wrongKind(path, kind, "a plan"));
    Result<plan::Plan> read = plan::readPlan(path);
    if (!read)
      return fail(read.error());
    plans.push_back(std::move(*read));
  }
  Result<compiler::PlanDiff> diff = compiler::diffOf({paths[0], &plans[0]}, {paths[1], &plans[1]});
  if (!diff)
    return fail(diff.error());
  return printed(json ? compiler::diffJson(*diff) : compiler::diffText(*diff, terminalColumns()));
}

/// What `msc explain` is asked for.
struct ExplainFlags {
  std::string op;
  bool json = false;
  std::string html;   ///< the file of the page, which takes the place of the text
  std::string timeline; ///< the file of the trace, which takes the place of the text, too
  std::string whyNot; ///< a strategy
  std::vector<std::string> compared; ///< plans

  /// The first of these flags that was given, or "".
  std::string given() const {
    return !op.empty() ? "--op" : !html.empty() ? "--html" : !timeline.empty() ? "--timeline" : !whyNot.empty() ? "--why-not" : json ? "--json" : "";
  }
};

int hasNoEffect(const std::string &flag, const std::string &why, const std::string &help = "") {
  return fail({ExitCode::Usage, flag + " has no effect: " + why, help.empty() ? "leave out " + flag : help});
}

/// `now` is the network as it is.
int explainWhyNot(const compiler::CompileOptions &options, const ExplainFlags &flags, const compiler::CompileOutcome &now) {
  if (now.plan.parallel_mode() != "auto_parallel" || now.plan.devices() == 1)
    return hasNoEffect("--why-not", now.plan.devices() == 1 ? "on one device nothing is split" : now.plan.parallel_mode() + " mode says how all is split");
  Result<compiler::CompileOptions> other = compiler::forced(options, now.plan, flags.whyNot);
  if (!other)
    return fail(other.error());
  if (const std::string already = compiler::alreadyText(now, *other); !already.empty() && !flags.json)
    return printed(already);
  Result<compiler::CompileOutcome> then = compiler::compile(*other);
  if (!then || then->refusal)
    return fail(then ? *then->refusal : then.error());
  Result<std::string> text = flags.json ? compiler::whyNotJson(now, *then, flags.op) : compiler::whyNotText(now, *then, flags.op, terminalColumns());
  return text ? printed(*text) : fail(text.error());
}

/// "page.html: open it in a browser"; nothing is said of what went into a pipe or to stdout.
std::string hintOf(const std::string &path, const std::string &where) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && !std::filesystem::equivalent(path, "/dev/stdout", ignored)
             ? path + ": open it in " + where + "\n" : "";
}

/// Writes what is asked for.
int explainOutcome(const compiler::CompileOutcome &outcome, const ExplainFlags &asked) {
  if (!asked.html.empty())
    if (Status status = writeTextFile(asked.html, compiler::explainPage(outcome.plan, outcome.findings, asked.op)); !status)
      return fail(status.error());
  if (!asked.timeline.empty())
    if (Status status = writeTextFile(asked.timeline, compiler::timelineJson(outcome.plan, outcome.findings)); !status)
      return fail(status.error());
  if (asked.json)
    return printed(compiler::reportJson(outcome.plan, outcome.findings, asked.op));
  if (!(asked.html + asked.timeline).empty())
    return printed(hintOf(asked.html, "a browser") + hintOf(asked.timeline, "https://ui.perfetto.dev"));
  Result<std::string> text = compiler::explainText(outcome.plan, outcome.findings, asked.op, terminalColumns());
  return text ? printed(*text) : fail(text.error());
}

int runExplain(CompileFlags &flags, const ExplainFlags &asked) {
  if (!flags.finish())
    return static_cast<int>(ExitCode::Usage);
  const std::string &input = flags.options.input, &op = asked.op;
  if (!asked.compared.empty()) {
    ExplainFlags others = asked;
    others.json = false;
    std::string other = !input.empty() ? input : !others.given().empty() ? others.given() : flags.given();
    return other.empty() ? runDiff(asked.compared, asked.json) : hasNoEffect(other, "--diff compares two plans");
  }
  if (input.empty())
    return fail({ExitCode::Usage, "argument 'input' is missing", "'msc explain --help' shows what it takes"});
  if (messages::looksLikeCode(input) && !std::filesystem::exists(input))
    return explainCode(input, !asked.given().empty() ? asked.given() : flags.given());
  if (!asked.whyNot.empty() && op.empty())
    return hasNoEffect("--why-not", "it asks about one operator", "add --op NAME");
  if (std::string page = !asked.html.empty() ? "--html" : "--timeline"; !asked.whyNot.empty() && !(asked.html + asked.timeline).empty())
    return hasNoEffect(page, "--why-not compares two plans");
  bool isPlan = tools::fileKindOf(input) == tools::FileKind::Plan;
  const std::vector<NamedFile> written{{"--html", asked.html}, {"--timeline", asked.timeline}};
  if (Status status = checkTargets(written, {"the page", "the timeline"}, filesRead(flags.options, isPlan ? "the plan" : "the network")); !status)
    return fail(status.error());
  compiler::CompileOutcome outcome;
  if (isPlan) {
    std::string flag = !asked.whyNot.empty() ? "--why-not" : !asked.timeline.empty() ? "--timeline" : flags.given();
    if (!flag.empty())
      return hasNoEffect(flag, input + " is compiled already", "leave out " + flag + ", or explain the network");
    Result<plan::Plan> read = plan::readPlan(input);
    if (!read)
      return fail(read.error());
    outcome.plan = std::move(*read);
  } else {
    if (Status status = checkInput(flags.options, "a plan or a network"); !status)
      return fail(status.error());
    flags.options.context.emplace_back("save_graphs", "0");
    flags.options.op = op;
    flags.options.explains = true;
    flags.options.machineCode = compiler::MachineCode::None;
    if (!asked.whyNot.empty()) // compiles twice
      flags.options.said = std::make_shared<std::set<std::string>>();
    Result<compiler::CompileOutcome> compiled = compiler::compile(flags.options);
    if (!compiled)
      return fail(compiled.error());
    outcome = std::move(*compiled);
    if (Status status = checkImports(written, outcome); !status)
      return fail(status.error());
  }
  if (Status known = compiler::checkOperator(outcome.plan, op); !known)
    return fail(known.error());
  if (!asked.whyNot.empty())
    return outcome.refusal ? fail(*outcome.refusal) : explainWhyNot(flags.options, asked, outcome);
  int code = explainOutcome(outcome, asked);
  return code == 0 && outcome.refusal ? fail(*outcome.refusal) : code;
}

} // namespace

int main(int argc, char **argv) {
  tools::LastWords lastWords("msc", "raise the limit that 'ulimit -v' or the container sets, write a mesh, or pass --search-mode recursive_programming");
  tools::prepareProcess();
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { tools::endWithoutMemory(); });
  CLI::App app("msc: decides how each operator is split over devices and writes one plan", "msc");
  app.set_version_flag("--version", "msc " MSC_VERSION " (MLIR " MSC_MLIR_VERSION ")");
  app.require_subcommand(1);

  CompileFlags compileFlags, explainFlags;
  std::string output, report, strategies, op, html, timeline, whyNot;
  std::vector<std::string> compared;
  bool json = false, isQuiet = false;
  CLI::App *compile = app.add_subcommand("compile", "a network -> a plan");
  compile->add_option("network", compileFlags.options.input, "a network (.mir) or a dump (step_parallel_begin)")->required();
  compile->add_option("-o,--output", output, "where the plan goes (default: <network>.plan in the current folder)");
  compile->add_option("--report", report, "writes what was decided as JSON");
  compile->add_flag("-q,--quiet", isQuiet, "says nothing about what was written");
  compile->add_option("--strategy-save", strategies, "writes the strategies of all operators: JSON if the name ends in .json, else protobuf");
  compileFlags.addTo(*compile, /*dumps=*/true);

  CLI::App *explain = app.add_subcommand("explain", "who decided what, and why each collective is there; or what a message means");
  explain->add_option("input", explainFlags.options.input, "a plan, a network with --devices, or the code of a message, e.g. MSC1101");
  explain->add_option("--op", op, "one operator by its instance name");
  explain->add_option("--diff", compared, "two plans of one network instead: what differs")->expected(1, -1)->type_name("PLAN PLAN");
  explain->add_option("--why-not", whyNot,
                      "of --op: what the network would cost with this strategy, e.g. '((2, 4), (4, 1))', and where the difference is")->type_name("STRATEGY");
  explain->add_flag("--json", json, "the report as JSON on stdout");
  explain->add_option("--html", html, "writes a page for the browser instead: operators, collectives, and which device holds what");
  explain->add_option("--timeline", timeline,
                      "writes the predicted timeline of a step instead, for Perfetto: each step, computing or communicating")->type_name("FILE");
  explainFlags.addTo(*explain, /*dumps=*/false);

  CompileFlags checkFlags;
  std::vector<std::string> checked;
  CLI::App *check = app.add_subcommand("check", "all mistakes of networks");
  check->add_option("files", checked, "networks, libraries or dumps")->required();
  checkFlags.addTo(*check, /*dumps=*/false);

  tools::FormatFlags formatFlags;
  CLI::App *format = app.add_subcommand("fmt", "lays networks out in the one way, in place");
  formatFlags.addTo(*format);

  tools::RedistributeFlags redistributeFlags;
  CLI::App *redistribute = app.add_subcommand("redistribute", "how a tensor gets from one sharding to another");
  redistributeFlags.addTo(*redistribute);

  tools::OpsFlags opsFlags;
  CLI::App *ops = app.add_subcommand("ops", "the operators of networks: operands, attributes, types, formulas");
  opsFlags.addTo(*ops);

  std::string machineName;
  CLI::App *machine = app.add_subcommand("machine", "a machine as a file, to start from: msc machine h100-64 > mine.json");
  machine->add_option("name", machineName, fmt::format("{}, or a machine file", presetWords()))->required();

  CompileFlags serverFlags;
  CLI::App *server = app.add_subcommand("lsp", "answers an editor by the Language Server Protocol on stdin and stdout");
  serverFlags.addTo(*server, /*dumps=*/false);

  if (int code = tools::parseCommandLine(app, {"msc", {argv + 1, argv + argc}}); code >= 0)
    return code;
  if (!compile->parsed() && !explain->parsed())
    try {
      int code = format->parsed()  ? tools::runFormat(formatFlags)
                 : check->parsed() ? runCheck(checkFlags, checked)
                 : server->parsed() ? runServer(serverFlags)
                 : machine->parsed() ? runMachine(machineName)
                 : ops->parsed()   ? tools::runOps(opsFlags)
                                   : tools::runRedistribute(redistributeFlags);
      return code != 0 ? code : printed("");
    } catch (const std::system_error &error) { // fmt::print throws it
      return fail({ExitCode::NoResource, "cannot write to stdout: " + error.code().message(), writeRepair(error.code().value())});
    }
  return compile->parsed() ? runCompile(compileFlags, output, report, strategies, isQuiet) : runExplain(explainFlags, {op, json, html, timeline, whyNot, compared});
}
