#include "compiler/Compiler.h"

#include "compiler/ApplyStrategies.h"
#include "compiler/Dumps.h"
#include "compiler/Explain.h"
#include "compiler/Explanation.h"
#include "compiler/LeftOut.h"
#include "compiler/MemoryLimit.h"
#include "compiler/Phases.h"
#include "compiler/PlanHeader.h"
#include "compiler/PlanWriter.h"
#include "compiler/Tables.h"
#include "compiler/WhyNot.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetDialect.h"
#include "dialects/net/Repeat.h"
#include "dialects/net/Suggest.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"
#include "frontend/Printer.h"
#include "passes/optimize/Passes.h"
#include "passes/plan/Passes.h"
#include "passes/sharding/Communication.h"
#include "passes/sharding/Decisions.h"
#include "runtime/MissingFile.h"
#include "runtime/machine/MachineFile.h"
#include "runtime/machine/Presets.h"
#include "runtime/messages/Catalogue.h"
#include "runtime/plan/PlanChecker.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <chrono>
#include <filesystem>
#include <numeric>
#include <set>

using namespace mlir;

namespace msc::compiler {

/// Messages are in the language of the user, errors and warnings with their code.
static std::string wordingOf(llvm::StringRef text, bool isMain) {
  return isMain ? messages::withCode(text.str()) : messages::translated(text.str());
}

Result<std::string> format(const std::string &text, const std::string &path) {
  llvm::SourceMgr sources;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  frontend::Diagnostics diagnostics(context, sources, llvm::errs(), wordingOf);
  if (std::optional<std::string> formatted = frontend::formatString(text, path, context, sources))
    return std::move(*formatted);
  return Error{ExitCode::Failed, "", ""};
}

std::string defaultOutput(const std::string &input) {
  return std::filesystem::path(input).stem().string() + ".plan";
}

std::vector<ContextOption> contextOptions() {
  std::vector<ContextOption> options;
  for (StringRef name : net::contextOptionNames())
    options.push_back({name.str(), net::contextOptionHelp(name), net::contextOptionValues(name)});
  return options;
}

std::string libraryFolder() {
  llvm::SmallString<128> folder(
      llvm::sys::path::parent_path(llvm::sys::fs::getMainExecutable(nullptr, reinterpret_cast<void *>(&libraryFolder))));
  llvm::sys::path::append(folder, "..", "share", "msc");
  llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
  return folder.str().str();
}

namespace {

/// One compilation. Each step returns false once a diagnostic has been printed or `failure` is set.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), context(MLIRContext::Threading::DISABLED), diagnostics(context, sources, options.isTrial ? llvm::nulls() : llvm::errs(), wordingOf) {
    if (options.said)
      diagnostics.sayOnce(*options.said);
    DialectRegistry registry;
    registry.insert<dist::DistDialect, plan_ir::PlanDialect>();
    net::registerNetDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false);
  }

  /// The errors of the network and of its blocks, then those of its strategies.
  Result<CompileOutcome> check() {
    mayLackNetwork = true;
    options.context.emplace_back("save_graphs", "0");
    bool isLibrary = parse() && readConfig() && isSound() && module->getOps<net::NetworkOp>().empty();
    if (isLibrary || (isSound() && config && decideStrategies() && explainStrategies() &&
                      (options.strict ? communicates() : explanation.report())))
      return std::move(outcome);
    return failure;
  }

  Result<CompileOutcome> run() {
    bool done = parse() && readConfig() && isSound() && decideStrategies() && explainStrategies();
    if (done && options.estimates && isExpected())
      return std::move(outcome);
    done = done && runPhases({unrollPhase()}, /*counts=*/false) && afterStrategies() &&
                runPhases(partitionPhases(*config, options)) && afterPartition() && optimize() && explainCommunication() &&
                afterOptimization() &&
                buildPlan() && finish();
    if (!done && failure.message.empty() && diagnostics.blamesCommandLine())
      return Error{ExitCode::Usage, "", ""};
    if (!done)
      return failure;
    return std::move(outcome);
  }

private:
  template <typename F> auto timed(const std::string &phase, F work) {
    auto start = std::chrono::steady_clock::now();
    auto result = work();
    outcome.findings.timing.emplace_back(phase,
                                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return result;
  }

  bool fail(const Error &error) {
    failure = error;
    return false;
  }

  /// All mistakes of the text are reported before this stops.
  bool isSound() {
    if (diagnostics.errors() == 0 && (*module)->hasAttr(frontend::brokenAttributeName))
      return fail({ExitCode::Internal, "the network could not be read, and nothing says why",
                   "please report this with the network"});
    return diagnostics.errors() == 0;
  }

  net::NetworkOp network() { return *module->getOps<net::NetworkOp>().begin(); }

  bool parse() {
    return timed("parse", [&] {
      for (StringRef name : options.keep)
        if (options.changes.inference && name.starts_with("grad:"))
          return fail({ExitCode::Usage, "cannot keep '" + name.str() + "': --inference leaves out the backward pass",
                       "leave out --inference, or keep a value of the forward pass"});
      if (!std::filesystem::is_regular_file(options.input))
        return fail(missingFile(options.input));
      frontend::ParseOptions parseOptions = parseOptionsOf(options);
      parseOptions.keepRepeats = true;
      parseOptions.mayLackNetwork = mayLackNetwork;
      watch(parseOptions, options.changes, outcome.facts, sources);
      module = frontend::parseFile(options.input, context, parseOptions, sources);
      if (module)
        leftOut.take(*module);
      for (unsigned buffer = 1; buffer <= sources.getNumBuffers(); ++buffer)
        if (StringRef name = sources.getMemoryBuffer(buffer)->getBufferIdentifier(); !name.starts_with(frontend::libraryPrefix))
          outcome.sources.push_back(frontend::displayedPath(sources, name));
      return static_cast<bool>(module);
    });
  }

  /// What makes the machine of a file as large as is asked for.
  std::string largerFileHelp(const MachineModel &machine) const {
    const std::string wanted = std::to_string(config->devices), fewer = ", or pass --devices " + std::to_string(machine.devices);
    const int64_t ranks = machine.levels.back().ranks;
    return "in " + options.machine + ", write \"devices\": " + wanted +
           (ranks != 0 && ranks < config->devices ? " and, in the last level, \"ranks\": 0 (any number)" : "") + fewer;
  }

  /// A machine does not grow.
  Status fitsMachine() {
    const MachineModel &machine = dist::machineOf(*module);
    if (machine.devices == 0 || config->devices <= machine.devices)
      return Status::ok();
    const std::optional<std::string> larger = presetOfDevices(machine.name, config->devices);
    const bool isFile = !findPreset(options.machine);
    return Error{ExitCode::Usage,
                 "machine '" + machine.name + "' has " + std::to_string(machine.devices) + " devices, but " +
                     std::to_string(config->devices) + " are asked for",
                 isFile ? largerFileHelp(machine)
                        : "name a larger one, such as " + (larger ? *larger : *presetOfDevices("h100x8", config->devices)) + ", or take fewer devices"};
  }

  /// How collectives among more ranks than were measured behave is a guess.
  void noteExtrapolation() {
    const MachineModel &machine = dist::machineOf(*module);
    if (machine.measuredRanks != 0 && config->devices > machine.measuredRanks)
      emitRemark(FileLineColLoc::get(&context, "--machine", 0, 0))
          << "'" << machine.name << "' was measured on " << machine.measuredRanks << " ranks, its times for "
          << config->devices << " are extrapolated";
  }

  /// Who names a machine of eight devices may expect a plan for all of them.
  void noteImpliedDevices() {
    const MachineModel &machine = dist::machineOf(*module);
    if (machine.devices <= 1 || !(*module)->hasAttr(frontend::impliedDevicesName))
      return;
    InFlightDiagnostic diagnostic = emitRemark(FileLineColLoc::get(&context, "--machine", 0, 0))
                                    << "the plan is for 1 device of the " << machine.devices << " of '" << machine.name << "'";
    net::addHelp(diagnostic, "--devices " + std::to_string(machine.devices) + " uses all");
  }

  /// What is cheap among threads of a CPU need not be so among GPUs.
  void noteOtherKind() {
    if (config->context.deviceTarget != "cuda" || dist::machineOf(*module).name != MachineModel::cpuLocal().name)
      return;
    InFlightDiagnostic diagnostic = emitRemark(FileLineColLoc::get(&context, "--machine", 0, 0))
                                    << "the plan is for GPUs alone, but all is priced on '" << MachineModel::cpuLocal().name << "'";
    net::addHelp(diagnostic, "name the machine, such as --machine " + (config->devices <= 8 ? "h100x8" : *presetOfDevices("h100x8", config->devices)));
  }

  /// Strategies for fewer devices fit a multiple of them and leave the others with copies of their work.
  void warnOfDevices(int64_t saved) {
    const std::string all = std::to_string(config->devices);
    InFlightDiagnostic diagnostic = emitWarning(FileLineColLoc::get(&context, "--strategy-load", 0, 0))
                                    << "the strategies of '" << options.strategyFile << "' were saved for " << saved
                                    << (saved == 1 ? " device" : " devices") << ", they are taken as they are for " << all;
    net::addHelp(diagnostic, "save strategies for " + all + ": msc compile NETWORK --devices " + all + " --strategy-save " +
                                 newFileLike(options.strategyFile));
  }

  Status applyFile() {
    if (options.strategyFile.empty())
      return Status::ok();
    Result<StrategyFile> file = readStrategies(options.strategyFile);
    if (!file)
      return file.error();
    const std::string &mode = config->context.parallelMode;
    const bool areIgnored = config->devices == 1 || mode == "stand_alone" || mode == "data_parallel";
    Status status = applyStrategies(*module, file->strategies, options.strategyFile, areIgnored ? 0 : config->devices);
    if (status && !areIgnored && file->devices != 0 && file->devices != config->devices)
      warnOfDevices(file->devices);
    return status;
  }

  bool readConfig() {
    return timed("options", [&] {
      Result<MachineModel> machine = readMachine(options.machine);
      if (!machine)
        return fail(machine.error());
      context.getLoadedDialect<dist::DistDialect>()->setMachine(std::move(*machine));
      applyChanges(*module, options.changes);
      FailureOr<net::Config> read = net::readConfig(*module, overridesOf(options));
      if (failed(read))
        return false;
      config = std::move(*read);
      context.getLoadedDialect<dist::DistDialect>()->setOnlyGpus(config->context.deviceTarget == "cuda");
      if (Status status = fitsMachine(); !status)
        return fail(status.error());
      noteExtrapolation();
      noteImpliedDevices();
      noteOtherKind();
      context.getLoadedDialect<dist::DistDialect>()->setMachine(dist::machineOf(*module).amongFirst(config->devices));
      outcome.findings.isSearchImplied = chooseSearchMode(*module, *config); // strategies of a file do not change how the others are chosen
      if (diagnostics.errors() == 0 && !module->getOps<net::NetworkOp>().empty())
        warnOfSameSteps();
      noteFacts(*module, *config, outcome.facts, sources);
      if (!options.saveGraphsRanks.empty() && config->context.saveGraphs == 0)
        return fail({ExitCode::Usage, "--save-graphs-ranks has no effect: no dumps are written",
                     "add --save-graphs 1, 2 or 3"});
      (*module)->setAttr(passes::datasetPlaceAttributeName, LocationAttr(config->context.datasetStrategy.location));
      Result<DumpFolder> folder = DumpFolder::create(config->context.saveGraphsPath, config->context.saveGraphs,
                                                     options.saveGraphsRanks, config->devices);
      if (!folder)
        return fail(folder.error());
      dumps = std::move(*folder);
      return true;
    });
  }

  /// In hybrid_parallel mode nothing is cut unless the network says how.
  void warnOfSameSteps() {
    const bool isHybrid = config->context.parallelMode == "hybrid_parallel";
    if (!isHybrid || !config->train || config->devices == 1 || passes::differsByRank(network()))
      return;
    InFlightDiagnostic diagnostic = emitWarning(config->train->location);
    diagnostic << "all " << config->devices << " devices compute the same step: hybrid_parallel mode cuts nothing, and the network has no 'Rank'";
    net::addHelp(diagnostic, "pass --parallel-mode data_parallel, or take other data on every rank by %rank = Rank()");
  }

  /// `counts`: dumps count every phase as a stage.
  bool runPhases(const std::vector<Phase> &phases, bool counts = true) {
    for (const Phase &phase : phases) {
      PassManager manager(&context);
      manager.enableVerifier(false); // the phases end in verifiers of their own contracts
      phase.build(manager);
      if (timed(phase.name, [&] { return mlir::failed(manager.run(*module)); }))
        return false;
      if (counts)
        dumps.skip();
    }
    return true;
  }

  /// Communication passes, one by one, and what each of them saves.
  bool optimize() {
    passes::Communication before = passes::communicationOf(network());
    for (const Phase &phase : optimizePhases(*config, options)) {
      if (!runPhases({phase}, /*counts=*/false))
        return false;
      passes::Communication after = passes::communicationOf(network());
      outcome.findings.savings.push_back({phase.name, before.bytes - after.bytes, before.us - after.us});
      before = after;
    }
    dumps.skip(); // one stage, however many passes there are
    return true;
  }

  bool buildPlan() {
    if (!runPhases(planPhases(*config, options, options.isTrial ? MachineCode::None : options.machineCode)))
      return false;
    double hidden = 0;
    for (auto program : module->getOps<plan_ir::ProgramOp>())
      hidden += passes::hiddenUs(program);
    outcome.findings.savings.push_back({"overlap", 0, hidden});
    outcome.findings.overlaps = dist::machineOf(*module).overlaps;
    if (outcome.findings.overlaps)
      outcome.plan.mutable_prediction()->set_hidden_us(hidden);
    return true;
  }

  bool dump(StringRef stage, DumpFolder::Print text, DumpFolder::Print graph) {
    Status status = dumps.write(stage, text, graph);
    return status ? true : fail(status.error());
  }

  bool dumpRanks(StringRef stage, frontend::RankDumpKind kind) {
    return dump(
        stage, [&](int64_t rank, llvm::raw_ostream &out) { frontend::printRankDump(*module, rank, kind, out); },
        [&](int64_t rank, llvm::raw_ostream &out) { frontend::printRankDot(*module, rank, kind, out); });
  }

  /// What of the options changes what runs: "" for the defaults.
  std::string unusualOptions() {
    std::string text;
    for (auto [isOn, name] : {std::pair(options.fusion, " no-fusion"), std::pair(options.moves, " no-moves"),
                              std::pair(options.reuse, " no-reuse"),
                              std::pair(options.partialSums, " no-partial-sums"),
                              std::pair(options.commFusion && config->context.commFusion, " no-comm-fusion")})
      if (!isOn)
        text += name;
    std::set<std::string> kept(options.keep.begin(), options.keep.end());
    for (const std::string &value : kept)
      text += " keep " + value;
    std::string machine = machineJson(dist::machineOf(network()));
    if (Result<MachineModel> usual = readMachine(CompileOptions().machine); usual && machineJson(*usual) != machine)
      text += " " + machine;
    return text;
  }

  bool decideStrategies() {
    for (const Phase &phase : strategyPhases(*config, options))
      if (!runPhases({phase}) || (phase.name == "check" && !(knowsAskedOperator() && applyGiven())))
        return false;
    return true;
  }

  /// Strategies of a file and of --why-not, once there are casts of mixed precision, which may have some.
  bool applyGiven() {
    if (Status status = applyFile(); !status)
      return fail(status.error());
    return succeeded(applyForced(*module, options, config->devices));
  }

  /// Nobody waits for a search to hear of a mistyped name.
  bool knowsAskedOperator() {
    std::vector<NamedOperator> operators;
    std::vector<std::vector<NamedOperator>> later; // of rounds behind the first one
    if (!options.op.empty())
      network().walk([&](net::Operator op) {
        auto [file, line] = fileAndLine(op->getLoc());
        for (auto [round, name] : llvm::enumerate(net::namesInRounds(op, net::getInstanceName(op)))) {
          later.resize(std::max(later.size(), round));
          (round == 0 ? operators : later[round - 1]).push_back({name, file + ":" + std::to_string(line)});
        }
      });
    for (const std::vector<NamedOperator> &ofRound : later)
      llvm::append_range(operators, ofRound);
    Status known = checkOperator(network().getSymName().str(), operators, options.op);
    return known ? true : fail(known.error());
  }

  bool explainStrategies() {
    outcome.findings.search = passes::takeSearchFacts(network());
    if (options.forcedStrategy.empty()) // --why-not is about what differs
      leftOut.report(network());
    return timed("alternatives", [&] {
      explanation.afterStrategies(network(), *config);
      return true;
    });
  }

  /// What of the network is gathered is known once it communicates.
  bool communicates() {
    return runPhases({unrollPhase()}) && runPhases(partitionPhases(*config, options)) && optimize() && explainCommunication();
  }

  /// What the search says instead of a plan.
  bool isExpected() {
    const std::optional<passes::SearchFacts> &search = outcome.findings.search;
    if (!search || search->arenaBytes <= 0)
      return false;
    outcome.plan.set_arena_bytes(static_cast<uint64_t>(search->arenaBytes));
    outcome.plan.mutable_prediction()->set_step_us(search->us);
    return true;
  }

  bool explainCommunication() {
    return timed("alternatives", [&] {
      explanation.afterOptimization(network());
      return explanation.report();
    });
  }

  bool afterStrategies() {
    writeHeader(network().getSymName(), *config, outcome.plan);
    outcome.plan.set_digest(digestOf(network(), *config, unusualOptions()));
    return dump(
        "step_parallel_begin", [&](int64_t, llvm::raw_ostream &out) { frontend::printBeginDump(*module, out); },
        [&](int64_t, llvm::raw_ostream &out) { frontend::printBeginDot(*module, out); });
  }

  bool afterPartition() {
    writeOperatorNotes(network(), tables);
    if (Status status = dumps.chooseRanks(*module); !status)
      return fail(status.error());
    return dumpRanks("step_parallel_end", frontend::RankDumpKind::ParallelEnd) &&
           dumpRanks("18_execute", frontend::RankDumpKind::Execute);
  }

  bool afterOptimization() {
    return dumpRanks("19_backend", frontend::RankDumpKind::Backend);
  }

  bool finish() {
    return writePlan() && explainPlan() && writeDumps();
  }

  bool writePlan() {
    return timed("write", [&] {
      outcome.plan.set_machine(dist::machineOf(*module).name);
      for (auto program : module->getOps<plan_ir::ProgramOp>()) {
        writeProgram(program, tables);
        std::vector<double> &times = outcome.findings.computeUs.emplace_back();
        for (Operation &step : program.getBody().front())
          if (plan_ir::isStep(&step))
            times.push_back(plan_ir::computeUs(&step));
      }
      predict();
      if (options.isTrial)
        return true;
      Status sound = plan::checkPlan(outcome.plan);
      if (!sound)
        return fail({ExitCode::Internal, "the compiled plan does not pass its own check: " + sound.error().message,
                     "please report this with the network"});
      return true;
    });
  }

  bool explainPlan() {
    const bool isLeftOut = llvm::none_of(outcome.plan.operators(), [&](const plan::OperatorNote &note) { return note.name() == options.op; });
    if (!options.op.empty() && isLeftOut) // it was there before
      return fail({ExitCode::Usage, "'" + options.op + "' is left out, for no result uses it", "return what it makes, or ask about another operator"});
    return timed("alternatives", [&] {
      if (!options.isTrial)
        explanation.afterPlan(outcome.plan);
      return true;
    });
  }

  bool writeDumps() {
    return timed("write", [&] {
      Status dumped = options.isTrial ? Status::ok() : dumps.finish(options.input);
      return dumped ? true : fail(dumped.error());
    });
  }

  /// Sums over the steps of what was priced while building them.
  void predict() {
    plan::Prediction *prediction = outcome.plan.mutable_prediction();
    double microseconds = 0;
    uint64_t bytes = 0;
    for (const plan::Program &program : outcome.plan.programs())
      for (const plan::Variant &variant : program.variants())
        for (const plan::Step &step : variant.steps()) {
          microseconds += step.collective().predicted_us(); // zero for other steps
          bytes += step.collective().bytes();
        }
    uint64_t parameters = 0;
    for (const plan::Parameter &parameter : outcome.plan.parameters())
      parameters += outcome.plan.buffers(parameter.buffer()).bytes();
    double computeUs = 0;
    for (const std::vector<double> &times : outcome.findings.computeUs)
      computeUs += std::accumulate(times.begin(), times.end(), 0.0);
    prediction->set_communication_us(microseconds);
    prediction->set_communication_bytes(bytes);
    prediction->set_compute_us(computeUs);
    prediction->set_step_us(microseconds + computeUs);
    prediction->set_parameter_bytes(parameters);
  }

  CompileOptions options;
  llvm::SourceMgr sources;
  MLIRContext context;
  frontend::Diagnostics diagnostics;
  OwningOpRef<ModuleOp> module;
  std::optional<net::Config> config;
  DumpFolder dumps;
  CompileOutcome outcome;
  Explanation explanation{options, outcome.findings};
  PlanTables tables{outcome.plan};
  LeftOut leftOut;
  bool mayLackNetwork = false;
  Error failure{ExitCode::Failed, "", ""};
};

} // namespace

Result<CompileOutcome> compileOnce(const CompileOptions &options) { return Compilation(options).run(); }

Result<CompileOutcome> compile(const CompileOptions &options) {
  if (options.memoryLimit != 0)
    return compileWithin(options, "");
  Result<MachineModel> machine = readMachine(options.machine);
  if (!machine || machine->memoryBytes == 0) // compiling says what is wrong with it
    return compileOnce(options);
  CompileOptions within = options;
  within.memoryLimit = static_cast<uint64_t>(machine->memoryBytes);
  return compileWithin(within, machine->name);
}

Status check(const CompileOptions &options) {
  Result<CompileOutcome> outcome = Compilation(options).check();
  return outcome ? Status::ok() : Status(outcome.error());
}

} // namespace msc::compiler
