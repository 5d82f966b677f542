// msrun: runs a plan.
#include "runtime/Nearest.h"
#include "runtime/calibrate/Calibrate.h"
#include "runtime/checkpoint/File.h"
#include "runtime/comm/mpi/Loader.h"
#include "runtime/comm/nccl/Loader.h"
#include "runtime/data/DataSource.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/executor/Fetch.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/Timeline.h"
#include "runtime/launch/Launch.h"
#include "runtime/machine/MachineFile.h"
#include "runtime/messages/Catalogue.h"
#include "runtime/plan/PlanChecker.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanText.h"
#include "tools/CommandLine.h"
#include "tools/LastWords.h"
#include "tools/FileKind.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

using namespace msc;

namespace {

/// The command line as it was written.
struct Flags {
  RunOptions options;
  std::optional<std::string> transport;
  std::vector<std::string> inputs, fetches;
  std::string timelineSteps; ///< "N" or "FIRST:N", or empty
  std::string device = "auto", matmulPrecision, collectives, tuning;
  bool noCudaGraph = false, deterministic = false;
  bool printPlan = false, saveGraphs = false;
  std::string machineFile; ///< of --calibrate, which takes the place of a plan; else empty
  int64_t ranks = 0;       ///< of --calibrate; 0: as it was started
  int64_t ranksPerNode = 0; ///< of --calibrate; 0: as ranks lie on hosts
  double timeout = 0; ///< seconds; 0 = none

  static std::string wholeNumber(const std::string &text) {
    bool good = !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string::npos;
    return good ? "" : fmt::format("'{}' is no whole number", text);
  }

  void addTo(CLI::App &app) {
    CLI::Option *plan = app.add_option("plan", options.planPath, "a plan that 'msc compile' wrote");
    CLI::Option *transportOption = app.add_option("--transport", transport, "threads or mpi (default: as it was started)");
    app.add_option("--device", device, "cpu or cuda (default: what the plan says)");
    app.add_option("--matmul-precision", matmulPrecision,
                   "of CUDA: f32, or tf32, which rounds the operands of f32 products and convolutions to 10 bits (default: f32)");
    app.add_option("--collectives", collectives,
                   "of CUDA: nccl (a GPU for every rank), local (ranks on one GPU) or host (through its memory) (default: the first that can be)");
    app.add_option("--tune", tuning,
                   "of CUDA: FILE, in which the fastest of cuDNN's engines for each convolution, and of cuBLASLt's algorithms for each large product, are kept; "
                   "measures what it lacks (default: those that the libraries think fastest)");
    app.add_flag("--deterministic", deterministic,
                 "measures nothing: a file of --tune is only read (without --tune, and on CPUs, runs repeat their bits with or without this)");
    app.add_flag("--no-cuda-graph", noCudaGraph,
                 "of CUDA: waits for every operator, so that a message names the one that failed");
    tools::takesNumber(*app.add_option("--threads-per-rank", options.threadsPerRank, "(default: processors / ranks of this host)"), 1, 4096);
    app.add_option("--epochs", options.epochs, "overrides the plan's epochs")->check(wholeNumber);
    app.add_option("--steps", options.steps, "overrides the plan's total number of steps")->check(wholeNumber);
    app.add_option("--log-every", options.log.every, "N or epoch: which steps print their loss; 0: none");
    app.add_flag("--log-all-ranks", options.log.allRanks, "every rank prints, not only rank 0");
    app.add_flag("--log-prefix", options.log.prefix, "lines start with the rank");
    app.add_option("--input", inputs, "NAME=FILE.npy,...: global arrays of inputs; param:NAME or state:NAME: what it begins with")->delimiter(',')->allow_extra_args(false);
    app.add_option("--fetch", fetches, "NAME=FILE.npy,...: writes results, param:NAME or state:NAME")->delimiter(',')->allow_extra_args(false);
    app.add_option("--report", options.report, "writes all steps as JSON");
    app.add_option("--timeline", options.timeline.path, "writes when each step of the plan ran, for Perfetto, as 'msc explain --timeline' predicts it");
    app.add_option("--timeline-steps", timelineSteps, "N or FIRST:N: so many steps of the run, from the second or FIRST on (default: one)");
    app.add_flag("--print-plan", printPlan, "prints the plan as rank 0 sees it, and ends");
    app.add_flag("--save-graphs", saveGraphs, "writes what each rank runs to rank_<r>/msrun.txt (above 16 ranks: one per program)");
    app.add_option("--save-graphs-path", options.saveGraphs, "the folder of --save-graphs (default: the current one)");
    app.add_option("--checkpoint-directory", options.checkpoint.directory, "overrides the plan's folder");
    app.add_flag("--checkpoint-per-rank", options.checkpoint.perRank, "one folder per rank");
    app.add_flag("--no-checkpoint", options.checkpoint.off, "writes no checkpoints");
    app.add_option("--resume", options.checkpoint.resume, "DIR or latest: goes on from a checkpoint");
    CLI::Option *calibrate =
        app.add_option("--calibrate", machineFile,
                       "measures what computation and communication cost here, in about 20 s, and writes the machine file "
                       "that 'msc compile --machine' reads (default: machine.json)")
            ->expected(0, 1)
            ->default_str("machine.json")
            ->excludes(plan);
    CLI::Option *ranksOption = app.add_option("--ranks", ranks, "of --calibrate: threads that take part (default: one per processor, at least 8)");
    tools::takesNumber(*ranksOption->needs(calibrate), 2, 1024);
    CLI::Option *nodeOption = app.add_option("--ranks-per-node", ranksPerNode, "of --calibrate: consecutive ranks that share a node, within which communication is measured on its own (default: the ranks of a host)");
    tools::takesNumber(*nodeOption->needs(calibrate), 1, 1 << 20);
    app.add_option("--timeout", timeout, "seconds without progress after which the run ends (default: no limit)")
        ->check([](const std::string &text) {
          char *end = nullptr;
          double seconds = std::strtod(text.c_str(), &end);
          bool good = !text.empty() && *end == '\0' && seconds >= 0 && seconds <= 1e9;
          return good ? std::string() : fmt::format("'{}' is no number of seconds", text);
        });
    // Whatever else is said is about the run of a plan.
    app.callback([&app, calibrate, allowed = std::set{calibrate, ranksOption, nodeOption, transportOption}] {
      for (CLI::Option *option : app.get_options())
        if (!calibrate->empty() && !option->empty() && !allowed.contains(option))
          throw CLI::ExcludesError(option->get_name(), calibrate->get_name());
    });
  }
};

Status splitPairs(const std::vector<std::string> &texts, const char *flag, std::map<std::string, std::string> &pairs) {
  for (const std::string &text : texts) {
    size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return Error{ExitCode::Usage, fmt::format("{} {} has no name or no file", flag, text),
                   fmt::format("write {} name=file.npy", flag)};
    std::string name = text.substr(0, equals);
    // Values are written with a % in networks.
    if (name[0] == '%')
      name.erase(0, 1);
    if (!pairs.emplace(name, text.substr(equals + 1)).second)
      return Error{ExitCode::Usage, fmt::format("{} names '{}' twice", flag, name), ""};
  }
  return {};
}

/// "3", "10:3"; numbers from 1.
Status readTimelineSteps(const std::string &text, TimelineOptions &timeline) {
  size_t colon = text.find(':');
  auto read = [](const std::string &digits, uint64_t &number) {
    bool good = Flags::wholeNumber(digits).empty();
    number = good ? std::strtoull(digits.c_str(), nullptr, 10) : 0;
    return number != 0;
  };
  bool hasFirst = colon != std::string::npos;
  if (!read(hasFirst ? text.substr(colon + 1) : text, timeline.count) || (hasFirst && !read(text.substr(0, colon), timeline.first)))
    return Error{ExitCode::Usage, fmt::format("--timeline-steps {} is no number of steps", text),
                 "write --timeline-steps 3, or 10:3 for three from the tenth on"};
  if (timeline.path.empty())
    return Error{ExitCode::Usage, "--timeline-steps has no effect without --timeline", "add --timeline FILE"};
  return {};
}

/// What is traced has to lie in memory until it is written. One step may always be.
Status checkTracedEvents(const plan::Program &program, const TimelineOptions &timeline) {
  int steps = 0;
  for (const plan::Variant &variant : program.variants())
    steps = std::max(steps, variant.steps_size());
  uint64_t most = std::max<uint64_t>(1, mostTracedEvents / static_cast<uint64_t>(std::max(1, steps)));
  if (timeline.count <= most)
    return {};
  return Error{ExitCode::Usage,
               fmt::format("--timeline-steps asks for {} steps of {} events, more than a timeline takes", timeline.count, steps),
               fmt::format("ask for {} at most", most)};
}

Status checkFlags(Flags &flags) {
  RunOptions &options = flags.options;
  if (Status status = splitPairs(flags.inputs, "--input", options.inputs); !status)
    return status;
  if (Status status = splitPairs(flags.fetches, "--fetch", options.fetches); !status)
    return status;
  if (!flags.timelineSteps.empty())
    if (Status status = readTimelineSteps(flags.timelineSteps, options.timeline); !status)
      return status;
  const std::string &every = options.log.every;
  if (!every.empty() && every != "epoch" && every.find_first_not_of("0123456789") != std::string::npos)
    return Error{ExitCode::Usage, fmt::format("--log-every {} is no number of steps", every), "write --log-every 10, or epoch"};
  std::string device = flags.device;
  std::ranges::transform(device, device.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (device == "gpu") // as MindSpore says it, and so does device_target
    device = "cuda";
  if (device == "auto" || device == "cpu" || device == "cuda")
    flags.device = device;
  else
    return Error{ExitCode::Usage, fmt::format("unknown device '{}'", flags.device), "choose cpu or cuda"};
  if (!options.saveGraphs.empty() && !flags.saveGraphs)
    return Error{ExitCode::Usage, "--save-graphs-path has no effect without --save-graphs", "add --save-graphs"};
  if (flags.saveGraphs && options.saveGraphs.empty())
    options.saveGraphs = ".";
  if (options.checkpoint.off && options.checkpoint.perRank)
    return Error{ExitCode::Usage, "--checkpoint-per-rank and --no-checkpoint exclude each other", ""};
  return {};
}

/// "did you mean 'x'? there are x, y and 3 more"
std::string suggestion(const std::string &name, const std::vector<std::string> &known, const char *introduction) {
  std::string near = name.size() > 1 ? nearest(name, known) : "";
  const std::string bare = name.substr(name.find(':') + 1); // of a parameter, the bare name, or one of the other kind
  for (const char *kind : {"param:", "state:"})
    if (std::count(known.begin(), known.end(), kind + bare) != 0)
      near = kind + bare;
  constexpr size_t most = 12;
  size_t shown = std::min(known.size(), most);
  std::string list = fmt::format("{} {}", introduction, fmt::join(known.begin(), known.begin() + shown, ", "));
  if (shown < known.size())
    list += fmt::format(" and {} more", known.size() - shown);
  return near.empty() ? list : fmt::format("did you mean '{}'? {}", near, list);
}

/// Inputs and results that the plan does not have are a mistake in the command line.
Status checkNames(const PlanIndex &index, const RunOptions &options) {
  const plan::Program *program = programToRun(index);
  if (!program)
    return Error{ExitCode::BadFile, fmt::format("{} has no program", options.planPath), ""};
  if (Status status = checkTracedEvents(*program, options.timeline); !status)
    return status;
  for (const auto &[name, file] : options.fetches)
    if (auto found = findFetch(index, *program, name); !found)
      return Error{found.error().code, found.error().message,
                   suggestion(name, fetchableNames(index, *program), "there are") + "; 'msc compile --keep' keeps more"};
  std::vector<std::string> inputs;
  for (const plan::Input &input : program->inputs())
    inputs.push_back(input.name());
  for (const plan::Parameter &parameter : index.plan().parameters())
    inputs.push_back(fetchName(parameter));
  for (const auto &[name, file] : options.inputs)
    if (std::count(inputs.begin(), inputs.end(), name) == 0)
      return Error{ExitCode::Usage, fmt::format("the network has no input '{}'", name),
                   inputs.empty() ? "it has none" : suggestion(name, inputs, "its inputs are")};
  return {};
}

bool isSameFile(const std::string &a, const std::string &b) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  auto canonical = [&](const std::string &path) { return fs::weakly_canonical(fs::absolute(path, ignored), ignored); };
  return fs::equivalent(a, b, ignored) || canonical(a) == canonical(b);
}

/// The files that a run reads, each with what it is.
std::vector<std::pair<std::string, std::string>> filesRead(const plan::Plan &plan, const RunOptions &options) {
  std::vector<std::pair<std::string, std::string>> files{{options.planPath, "the plan"}};
  for (const auto &[name, file] : options.inputs)
    files.emplace_back(file, fmt::format("input '{}'", name));
  for (const plan::Dataset &dataset : plan.datasets())
    for (const plan::Dataset::Column &column : dataset.columns())
      if (Result<std::string> path = expandPath(column.path()); path && !path->empty())
        files.emplace_back(*path, fmt::format("column '{}' of the data set", column.name()));
  return files;
}

/// The file of the network, the first that is not of the library, if it may be compiled for other numbers of ranks; else "": strategies
/// that the user wrote are for this one.
std::string networkOf(const plan::Plan &plan) {
  for (const plan::OperatorNote &note : plan.operators())
    if (isGiven(note))
      return "";
  for (const std::string &file : plan.files())
    if (!file.starts_with("<msc>/"))
      return file;
  return "NETWORK";
}

/// Files that are written after the run can be written, it may have taken hours by then, and are not its own input.
Status checkTargets(const plan::Plan &plan, const RunOptions &options) {
  std::vector<std::pair<std::string, std::string>> targets; // with the flag
  for (const auto &[name, file] : options.fetches)
    targets.emplace_back(file, fmt::format("--fetch {}={}", name, file));
  if (!options.report.empty())
    targets.emplace_back(options.report, "--report " + options.report);
  if (!options.timeline.path.empty())
    targets.emplace_back(options.timeline.path, "--timeline " + options.timeline.path);
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto &[target, flag] = targets[i];
    if (target == "-")
      return Error{ExitCode::Usage, fmt::format("{}: stdout has the lines of the run", flag), "name a file"};
    for (size_t j = 0; j < i; ++j)
      if (isSameFile(targets[j].first, target))
        return Error{ExitCode::Usage, fmt::format("'{}' would be written twice", target), "give each result a file of its own"};
    for (const auto &[file, what] : filesRead(plan, options))
      if (isSameFile(file, target))
        return Error{ExitCode::Usage, fmt::format("{} would overwrite {}", flag, what), "choose another name"};
    if (Status status = target == options.timeline.path ? checkTimelineFile(target) : checkWritable(target); !status)
      return status;
  }
  return {};
}

/// The folder of --checkpoint-directory is there, or is made, if this run writes to it.
Status checkCheckpointDirectory(const plan::Plan &plan, const CheckpointFlags &flags) {
  if (flags.directory.empty() || flags.off || flags.resume == "latest" || !plan.has_checkpointing())
    return {};
  std::error_code error;
  std::filesystem::create_directories(flags.directory, error);
  return error ? fileError("make the folder", flags.directory, error.value()) : checkWritable(flags.directory + "/.writable");
}

/// A word without dot and slash is a command, and msrun has none: what may have been meant.
Status checkPlanName(const std::string &word) {
  if (word.find_first_of("./") != std::string::npos)
    return {};
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> plans;
  for (const fs::directory_entry &entry : fs::directory_iterator(".", ignored))
    if (entry.path().extension() == ".plan")
      plans.push_back(entry.path().filename().string());
  std::sort(plans.begin(), plans.end());
  std::string near = nearest(word + ".plan", plans);
  std::string help = fs::exists(word, ignored) ? fmt::format("write './{}' for the file of that name", word)
                     : near.empty()            ? "'msrun net.plan' runs a plan"
                                               : fmt::format("did you mean '{}'?", near);
  return Error{ExitCode::Usage, fmt::format("unknown command '{}'", word), help};
}

/// A flag that would do nothing is a mistake, too.
Status checkEffects(const plan::Plan &plan, const RunOptions &options) {
  const CheckpointFlags &checkpoint = options.checkpoint;
  auto idle = [&](bool given, const char *flag, const char *why) -> Status {
    return given ? Status(Error{ExitCode::Usage, fmt::format("{} has no effect: {}", flag, why), fmt::format("leave out {}", flag)})
                 : Status();
  };
  const char *noTraining = "the plan does not train", *noBlock = "the network has no checkpoint block";
  const char *noFolder = "a plan that does not train has no checkpoint block";
  bool trains = plan.has_training(), saves = plan.has_checkpointing();
  if (!saves && checkpoint.resume == "latest" && checkpoint.directory.empty())
    return Error{ExitCode::Usage, fmt::format("--resume latest does not know the folder: {}", trains ? noBlock : noFolder),
                 trains ? "add --checkpoint-directory DIR" : "add --checkpoint-directory DIR, the folder of the run that trained"};
  for (Status status : {idle(!trains && options.epochs, "--epochs", noTraining),
                        idle(!trains && options.steps, "--steps", noTraining),
                        idle(!trains && !options.log.every.empty(), "--log-every", noTraining),
                        idle(options.epochs && options.steps, "--epochs", "--steps says where the run ends"),
                        idle(!saves && checkpoint.resume.empty() && !checkpoint.directory.empty(),
                             "--checkpoint-directory", noBlock),
                        idle(!saves && checkpoint.resume.empty() && checkpoint.perRank, "--checkpoint-per-rank", noBlock)})
    if (!status)
      return status;
  return {};
}

bool wantsCuda(const Flags &flags, const plan::Plan &plan) {
  return flags.device == "cuda" || (flags.device == "auto" && plan.device_target() == "cuda");
}

/// What the command line says about devices fits the one that is used.
Status checkDeviceFlags(const Flags &flags, bool cuda) {
  if (!flags.matmulPrecision.empty() && flags.matmulPrecision != "f32" && flags.matmulPrecision != "tf32")
    return Error{ExitCode::Usage, fmt::format("unknown precision '{}'", flags.matmulPrecision), "choose f32 or tf32"};
  if (!flags.collectives.empty() && flags.collectives != "nccl" && flags.collectives != "local" &&
      flags.collectives != "host")
    return Error{ExitCode::Usage, fmt::format("unknown collectives '{}'", flags.collectives), "choose nccl, local or host"};
  for (auto [given, flag] : {std::pair(!flags.matmulPrecision.empty(), "--matmul-precision"),
                             std::pair(!flags.collectives.empty(), "--collectives"),
                             std::pair(!flags.tuning.empty(), "--tune"), std::pair(flags.noCudaGraph, "--no-cuda-graph")})
    if (given && !cuda)
      return Error{ExitCode::Usage, fmt::format("{} has no effect: the run is on CPUs", flag), "add --device cuda"};
  if (cuda && flags.options.threadsPerRank != 0)
    return Error{ExitCode::Usage, "--threads-per-rank has no effect: the run is on GPUs", "leave out --threads-per-rank"};
  return {};
}

/// The GPUs, with the plan's kernels for them.
Result<std::shared_ptr<device::Backend>> openCuda(const Flags &flags, const plan::Plan &plan) {
  device::CudaOptions options;
  for (const plan::CodeObject &object : plan.objects())
    if (object.isa() == "nvptx64")
      options.ptx = object.code();
  if (options.ptx.empty() && !plan.kernels().empty())
    return Error{ExitCode::BadFile, fmt::format("{} holds no code for GPUs", flags.options.planPath),
                 "compile the network again with --device-target auto"};
  options.tensorFloat = flags.matmulPrecision == "tf32";
  options.graphs = !flags.noCudaGraph;
  options.tuning = flags.tuning;
  options.deterministic = flags.deterministic;
  using device::Collectives;
  options.collectives = flags.collectives == "nccl"    ? Collectives::Nccl
                        : flags.collectives == "local" ? Collectives::Local
                        : flags.collectives == "host"  ? Collectives::Host
                                                       : Collectives::Auto;
  if (options.collectives == Collectives::Nccl || (options.collectives == Collectives::Auto && plan.devices() > 1)) {
    auto nccl = comm::loadNccl();
    if (nccl)
      options.nccl = *nccl;
    else if (options.collectives == Collectives::Nccl)
      return nccl.error();
    else
      options.ncclProblem = nccl.error().message;
  }
  Result<std::shared_ptr<device::Backend>> backend = device::loadCudaBackend(options);
  const bool isForGpusAlone = std::ranges::all_of(plan.objects(), [](const plan::CodeObject &object) { return object.isa() == "nvptx64"; });
  constexpr std::string_view onCpus = "run on CPUs with --device cpu";
  if (backend || !isForGpusAlone || plan.kernels().empty() || !backend.error().help.ends_with(onCpus))
    return backend;
  Error error = backend.error();
  error.help.replace(error.help.size() - onCpus.size(), onCpus.size(), "compile the network with --device-target auto and run on CPUs");
  return error;
}

/// A file that was read, decoded and proven.
Result<plan::Plan> loadPlan(const std::string &path) {
  if (tools::FileKind kind = tools::fileKindOf(path); kind != tools::FileKind::Plan && kind != tools::FileKind::Missing)
    return tools::wrongKind(path, kind, "a plan");
  Result<plan::Plan> plan = plan::readPlan(path);
  if (!plan)
    return plan;
  if (Status status = plan::checkPlan(*plan); !status)
    return Error{status.error().code, fmt::format("{} is refused: {}", path, status.error().message), status.error().help};
  return plan;
}

/// How this process ends, and whether it still has to say why.
struct Outcome {
  Status status;
  bool prints = true;
};

void printFailure(const Error &error) { tools::printError("msrun", error.message, error.help); }

Outcome runOn(const Launch &launch, SharedRun &shared, std::chrono::milliseconds timeout) {
  const PlanIndex &index = *shared.index;
  auto announce = [&](const device::RankCount &ranks) {
    const char *device = shared.backend ? shared.backend->name() : "cpu";
    std::fprintf(stderr, "%s\n", launchLine(index.devices(), launch.transport, device).c_str());
    if (std::string note = shared.backend ? shared.backend->note(ranks) : ""; !note.empty())
      std::fprintf(stderr, "%s\n", messages::translatedLine("note: " + note).c_str());
  };
  auto fitsHost = [&](int64_t ranks) {
    return shared.backend ? Status() : device::checkHostMemory(index.plan().arena_bytes(), ranks);
  };
  if (launch.transport == Transport::Threads) {
    if (Status status = fitsHost(index.devices()); !status)
      return {status};
    announce({index.devices(), index.devices(), true});
    return {runThreads(shared, timeout, printFailure), false};
  }
  // What mpirun says is enough to refuse a wrong number of ranks before MPI is loaded.
  if (launch.size)
    if (Status status = checkRankCount(index.devices(), launch, *launch.size, shared.options.planPath, networkOf(index.plan())); !status)
      return {status};
  reserveSignals();
  auto world = comm::loadMpiWorld();
  if (!world)
    return {world.error()};
  if (Status status = checkRankCount(index.devices(), launch, (*world)->size(), shared.options.planPath, networkOf(index.plan())); !status)
    return {status};
  if (Status status = fitsHost((*world)->localSize()); !status)
    return {status};
  if ((*world)->rank() == 0)
    announce({index.devices(), (*world)->localSize(), false});
  return {runRank(shared, **world, timeout, printFailure), false};
}

/// The file of --calibrate is new, or a machine file that is replaced.
Status checkMachineFile(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !readMachine(path))
    return Error{ExitCode::Usage, fmt::format("--calibrate would overwrite '{}', which is no machine file", path),
                 "choose another name"};
  return checkWritable(path);
}

/// Figures of a machine that does other work as well lead searches astray.
void warnOfSpread(double percent) {
  constexpr double tolerable = 20;
  if (percent <= tolerable)
    return;
  const std::string text = fmt::format("msrun: warning: repeated measurements spread by {:.0f} %, more than {:.0f} %", percent, tolerable);
  std::fprintf(stderr, "%s\n", messages::translatedLine(text).c_str());
  std::fprintf(stderr, "%s\n", messages::translatedLine("help: measure again when the machine does nothing else").c_str());
}

Status writeMachine(const Calibration &calibration, const std::string &path) {
  const std::string &name = calibration.machine.name;
  const double percent = 100 * calibration.spread;
  if (Status status = writeTextFile(path, machineJson(calibration.machine)); !status)
    return status;
  warnOfSpread(percent);
  return tools::printText(fmt::format("{}: machine '{}', measured; repeated measurements spread by {:.0f} %\n", path, name, percent));
}

Status checkNodes(int64_t ranks, int64_t ranksPerNode) {
  if (ranksPerNode == 0 || ranks % ranksPerNode == 0)
    return {};
  return Error{ExitCode::Usage, fmt::format("{} ranks do not make up nodes of {}", ranks, ranksPerNode),
               "give --ranks-per-node a divisor of the number of ranks"};
}

/// Measures this machine, with the ranks that mpirun has started or with threads.
Outcome calibrateHere(const Flags &flags) {
  constexpr double seconds = 18; // with start, memory that is touched first and the fit: 20
  Result<Launch> launch = detectLaunch(flags.transport, processEnvironment);
  if (!launch)
    return {launch.error()};
  if (Status status = checkMachineFile(flags.machineFile); !status && launch->rank.value_or(0) == 0)
    return {status};
  if (launch->transport == Transport::Threads) {
    // Groups of 2, 4 and 8 tell what each further member costs, also where threads share a processor.
    int64_t ranks = flags.ranks != 0 ? flags.ranks : std::max<int64_t>(8, std::thread::hardware_concurrency());
    if (Status status = checkNodes(ranks, flags.ranksPerNode); !status)
      return {status};
    std::fprintf(stderr, "%s\n", launchLine(ranks, launch->transport, "cpu").c_str());
    Result<Calibration> calibration = calibrateThreads(ranks, seconds, flags.ranksPerNode);
    return {calibration ? writeMachine(*calibration, flags.machineFile) : Status(calibration.error())};
  }
  if (flags.ranks != 0)
    return {Error{ExitCode::Usage, "--ranks has no effect: mpirun says how many ranks there are", "leave out --ranks"}};
  auto world = comm::loadMpiWorld();
  if (!world)
    return {world.error()};
  if ((*world)->size() < 2)
    return {Error{ExitCode::Usage, "one rank has nobody to communicate with", "start at least 2 ranks"}};
  if (Status status = checkNodes((*world)->size(), flags.ranksPerNode); !status)
    return {status};
  if ((*world)->rank() == 0)
    std::fprintf(stderr, "%s\n", launchLine((*world)->size(), launch->transport, "cpu").c_str());
  Result<Calibration> calibration = calibrate(**world, seconds, flags.ranksPerNode);
  Status status = calibration ? Status() : Status(calibration.error());
  if (status && (*world)->rank() == 0)
    status = writeMachine(*calibration, flags.machineFile);
  if (!status)
    (*world)->abort(status.error());
  return {status};
}

Outcome execute(Flags &flags) {
  if (!flags.machineFile.empty())
    return calibrateHere(flags);
  if (flags.options.planPath.empty())
    return {Error{ExitCode::Usage, "argument 'plan' is missing", "'msrun --help' shows what it takes"}};
  if (Status status = checkPlanName(flags.options.planPath); !status)
    return {status};
  if (Status status = checkFlags(flags); !status)
    return {status};
  Result<plan::Plan> plan = loadPlan(flags.options.planPath);
  if (!plan)
    return {plan.error()};
  PlanIndex index(*plan);
  if (flags.printPlan) {
    if (flags.options.steps || flags.options.epochs)
      return {Error{ExitCode::Usage,
                    fmt::format("{} has no effect: --print-plan runs nothing", flags.options.steps ? "--steps" : "--epochs"),
                    "leave out one of them"}};
    if (rankInEnvironment(processEnvironment) == 0)
      return {tools::printText(planText(index, 0))};
    return {};
  }
  if (Status status = checkNames(index, flags.options); !status)
    return {status};
  if (Status status = checkEffects(*plan, flags.options); !status)
    return {status};
  bool cuda = wantsCuda(flags, *plan);
  if (Status status = checkDeviceFlags(flags, cuda); !status)
    return {status};
  Result<Launch> launch = detectLaunch(flags.transport, processEnvironment);
  if (!launch)
    return {launch.error()};
  if (launch->rank.value_or(0) == 0) { // which writes them
    if (Status status = checkTargets(*plan, flags.options); !status)
      return {status};
    if (Status status = checkCheckpointDirectory(*plan, flags.options.checkpoint); !status)
      return {status};
  }
  flags.options.log.allRanks = printsOnEveryRank(flags.options.log.allRanks, processEnvironment);
  SharedRun shared;
  shared.index = &index;
  shared.options = flags.options;
  if (cuda) {
    auto backend = openCuda(flags, *plan);
    if (!backend)
      return {backend.error()};
    shared.backend = *backend;
  } else {
    auto kernels = device::KernelLibrary::load(*plan);
    if (!kernels)
      return {kernels.error()};
    shared.kernels = *kernels;
  }
  return runOn(*launch, shared, std::chrono::milliseconds(std::llround(flags.timeout * 1000)));
}

/// What is wrong with a command line or a file is wrong for all ranks, as a rule: rank 0 says it and ends, whereupon mpirun
/// ends the others within a second. This returns if that does not happen: then rank 0 has nothing to say.
void leaveTheWordToRank0(int64_t rank) {
  if (rank != 0)
    std::this_thread::sleep_for(std::chrono::seconds(3));
}

} // namespace

int main(int argc, char **argv) {
  tools::LastWords lastWords("msrun", "raise the limit that 'ulimit -v' or the container sets, or use fewer ranks");
  tools::prepareProcess();
  std::signal(SIGPIPE, SIG_IGN); // a pipe whose reader has gone is an error of the write, not the end of the process
  CLI::App app("msrun: runs a plan on ranks that are threads or MPI processes, with CPUs or GPUs", "msrun");
  app.set_version_flag("--version", fmt::format("msrun {} (plan formats {}-{})", MSC_VERSION, plan::oldestPlanFormat,
                                                plan::planFormat));
  Flags flags;
  flags.addTo(app);
  int64_t rank = rankInEnvironment(processEnvironment);
  if (int code = tools::parseCommandLine(app, {"msrun", {argv + 1, argv + argc}, rank == 0}); code >= 0) {
    if (code > 0)
      leaveTheWordToRank0(rank);
    return code;
  }
  Outcome outcome = execute(flags);
  if (outcome.status)
    return 0;
  Error error = outcome.status.error();
  if (outcome.prints) {
    leaveTheWordToRank0(rank);
    printFailure(rank == 0 ? error : Error{error.code, fmt::format("rank {}: {}", rank, error.message), error.help});
  }
  return static_cast<int>(error.code);
}
