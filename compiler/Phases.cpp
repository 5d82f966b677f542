#include "compiler/Phases.h"

#include "dialects/plan/PlanDialect.h"
#include "passes/autodiff/Passes.h"
#include "passes/infer/Passes.h"
#include "passes/optimize/Passes.h"
#include "passes/partition/Passes.h"
#include "passes/plan/Passes.h"
#include "passes/sharding/Passes.h"

using namespace mlir;

namespace msc::compiler {

static std::string datasetStrategyText(const net::DatasetStrategy &strategy) {
  switch (strategy.kind) {
  case net::DatasetStrategy::Kind::DataParallel: return "data_parallel";
  case net::DatasetStrategy::Kind::FullBatch: return "full_batch";
  case net::DatasetStrategy::Kind::Given: break;
  }
  return net::strategyText(strategy.pieces);
}

frontend::ParseOptions parseOptionsOf(const CompileOptions &options) {
  frontend::ParseOptions parse;
  if (options.devices > 0)
    parse.devices = options.devices;
  for (const auto &[key, text] : options.context)
    if (key == "parallel_mode") {
      parse.parallelMode = text;
    } else if (key == "device_num") {
      parse.overridesDeviceNum = true;
      int64_t number = 0;
      if (!parse.devices && !llvm::StringRef(text).getAsInteger(10, number) && number > 0)
        parse.devices = number;
    }
  parse.defines = options.defines;
  parse.repropagate = options.repropagate;
  parse.layerLibrary = libraryFolder();
  parse.keepBroken = true;
  return parse;
}

std::vector<net::ConfigOverride> overridesOf(const CompileOptions &options) {
  std::vector<net::ConfigOverride> overrides;
  for (const auto &[key, text] : options.context)
    overrides.push_back({key, text});
  return overrides;
}

/// The user gave some operator a strategy.
static bool isConfigured(ModuleOp module) {
  return module
      .walk([](net::Operator op) {
        bool isGiven = net::getInStrategy(op) && passes::isByUser(op);
        return isGiven ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool chooseSearchMode(ModuleOp module, net::Config &config) {
  if (config.context.parallelMode != "auto_parallel" || !config.context.searchMode.empty())
    return false;
  const bool searches = !isConfigured(module);
  config.context.searchMode = searches ? "optimal" : "sharding_propagation";
  return searches;
}

passes::TrainingFacts trainingFactsOf(const net::Config &config, const CompileOptions &options) {
  if (!config.train)
    return {};
  return {.minimize = config.train->minimize, .inBuckets = options.commFusion && config.context.commFusion, .train = config.train};
}

/// Makes a plan, without machine code, of a module whose operators have strategies. False: it cannot be compiled.
static bool plan(ModuleOp module, std::vector<Phase> phases, const net::Config &config, const CompileOptions &options) {
  for (auto &&more : {partitionPhases(config, options), optimizePhases(config, options), planPhases(config, options, MachineCode::None)})
    phases.insert(phases.end(), more.begin(), more.end());
  for (const Phase &phase : phases) {
    PassManager manager(module.getContext());
    manager.enableVerifier(false); // as in Compiler.cpp
    phase.build(manager);
    if (failed(manager.run(module)))
      return false;
  }
  return true;
}

static double bytesOf(ModuleOp module) {
  double bytes = 0;
  for (auto program : module.getOps<plan_ir::ProgramOp>())
    bytes = std::max(bytes, static_cast<double>(program.getArenaBytes().value_or(0)));
  return bytes;
}

/// A step: its steps as they are planned, what collectives hide behind computation taken off where the machine overlaps.
static passes::PlannedStep plannedStep(ModuleOp module, const net::Config &config, const CompileOptions &options) {
  // What runs beside collectives depends on the order of independent lines; which strategies are taken shall not.
  const Phase inOneOrder{"order", "independent operators stand in one order",
                         [](PassManager &manager) { manager.addPass(passes::createCanonicalOrderPass()); }};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!plan(module, {unrollPhase(), inOneOrder}, config, options))
    return {infinity, infinity};
  double us = 0;
  for (auto program : module.getOps<plan_ir::ProgramOp>()) {
    for (Operation &step : program.getBody().front())
      if (auto collective = dyn_cast<plan_ir::CollectiveOp>(step))
        us += collective.getPredictedUs().convertToDouble();
      else if (plan_ir::isStep(&step))
        us += plan_ir::computeUs(&step);
    if (dist::machineOf(module).overlaps)
      us -= passes::hiddenUs(program);
  }
  return {us, bytesOf(module)};
}

/// What a rank needs, lines as they stand.
static double plannedBytes(ModuleOp module, const net::Config &config, const CompileOptions &options) {
  return plan(module, {unrollPhase()}, config, options) ? bytesOf(module) : std::numeric_limits<double>::infinity();
}

std::vector<Phase> strategyPhases(const net::Config &config, const CompileOptions &options) {
  infer::CheckNetworkOptions check;
  check.loss = config.train ? config.train->minimize : "";
  check.keep = options.keep;
  passes::AssignStrategiesPassOptions assign;
  assign.devices = config.devices;
  assign.parallelMode = config.context.parallelMode;
  assign.searchMode = config.context.searchMode;
  assign.memoryBytes = options.searchBytes;
  assign.closesGap = options.closesGap;
  assign.searchOperations = options.searchOperations;
  assign.tellsMemory = options.explains || options.estimates;
  passes::TrainingFacts training = trainingFactsOf(config, options);
  assign.minimize = training.minimize;
  assign.inBuckets = training.inBuckets;
  assign.datasetStrategy = datasetStrategyText(config.context.datasetStrategy);
  assign.datasetRepeatDimRight = config.context.datasetRepeatDimRight;
  assign.strict = options.strict;
  infer::MixedPrecisionOptions precision;
  if (config.train) {
    precision.level = config.train->ampLevel;
    precision.element = config.train->ampType;
    precision.narrowAttention = config.context.deviceTarget == "cuda" || precision.element == "bf16"; // CPUs have kernels of bf16
  }
  return {
      {"check", "the network as a whole makes sense, and operands have the types that mixed precision asks for",
       [check, precision](PassManager &manager) {
         manager.addPass(infer::createCheckNetwork(check));
         manager.addPass(infer::createMixedPrecision(precision));
       }},
      {"strategies", "every forward operator has a strategy and its origin",
       [assign, config, options, training](PassManager &manager) {
         passes::Planning planning;
         if (!options.estimates)
           planning = {[config, options](ModuleOp module) { return plannedStep(module, config, options); },
                       [config, options](ModuleOp module) { return plannedBytes(module, config, options); }, static_cast<double>(options.memoryLimit)};
         passes::SearchWatch watch = options.onSearch;
         if (watch && options.isTrial)
           watch = [watch = options.onSearch](double, double) { watch(0, std::numeric_limits<double>::infinity()); };
         manager.addPass(passes::createAssignStrategiesPass(assign, training, std::move(planning), options.candidates,
                                                            options.searched, std::move(watch)));
       }},
  };
}

Phase unrollPhase() {
  return {"unroll", "the rounds of repeats stand one after the other",
          [](PassManager &manager) { manager.addPass(passes::createUnrollPass()); }};
}

std::vector<Phase> partitionPhases(const net::Config &config, const CompileOptions &options) {
  autodiff::BuildGradientsOptions gradients;
  gradients.rankTensors = config.context.parallelMode == "hybrid_parallel" ? config.devices : 1;
  gradients.loss = config.train ? config.train->minimize : "";
  gradients.keep = options.keep;
  return {
      {"gradients", "backward operators and the update of every parameter are there",
       [gradients](PassManager &manager) { manager.addPass(autodiff::createBuildGradients(gradients)); }},
      {"partition", "every value has a sharding, every change of sharding is explicit",
       [](PassManager &manager) { manager.addPass(passes::createPartitionPass()); }},
      {"reshard", "every change of sharding is a slice or a collective",
       [](PassManager &manager) { manager.addPass(passes::createPlanReshardsPass()); }},
  };
}

static passes::FusionRule fusionRule(const net::FusionConfig &config) {
  using Mode = passes::FusionRule::Mode;
  Mode mode = config.mode == "size" ? Mode::Size : config.mode == "index" ? Mode::Index : Mode::Auto;
  return {mode, config.megabytes, config.indices};
}

std::vector<Phase> optimizePhases(const net::Config &config, const CompileOptions &options) {
  const net::ContextConfig &context = config.context;
  passes::CommFusion fusion{fusionRule(context.fuseAllReduce), fusionRule(context.fuseAllGather),
                            fusionRule(context.fuseReduceScatter)};
  return {
      {"reuse", "statistics of the forward pass are not computed again",
       [on = options.reuse](PassManager &manager) {
         if (on)
           manager.addPass(passes::createReuseStatisticsPass());
       }},
      {"partial_sums", "linear operators compute with the terms of sums where that is cheaper",
       // Where every rank has tensors of its own, what is whole is not the same on all of them.
       [on = options.partialSums && context.parallelMode != "hybrid_parallel"](PassManager &manager) {
         if (on)
           manager.addPass(passes::createKeepPartialsPass());
       }},
      {"moves", "all moves of a value are planned together",
       [on = options.moves](PassManager &manager) {
         if (on)
           manager.addPass(passes::createPlanMovesPass());
       }},
      {"comm_fusion", "gradient collectives of one group run together",
       [fusion, on = options.commFusion && context.commFusion](PassManager &manager) {
         if (on)
           manager.addPass(passes::createFuseCollectivesPass(fusion));
       }},
  };
}

std::vector<Phase> planPhases(const net::Config &config, const CompileOptions &options, MachineCode machineCode) {
  passes::BuildPlanOptions build;
  build.fusion = options.fusion;
  build.cpu = config.context.deviceTarget != "cuda";
  build.gpu = config.context.deviceTarget != "cpu" && (machineCode == MachineCode::All || (!build.cpu && machineCode != MachineCode::None));
  build.thisProcessor = machineCode == MachineCode::ThisProcessor;
  build.machineCode = machineCode != MachineCode::None;
  if (options.onCluster && build.machineCode)
    build.onCluster = [visit = options.onCluster](func::FuncOp cluster) {
      std::string text;
      llvm::raw_string_ostream(text) << cluster;
      visit(text);
    };
  if (build.gpu)
    build.onGpuIr = options.onGpuIr;
  return {
      {"kernels", "steps in order, kernels as machine code",
       [build](PassManager &manager) {
         manager.addPass(passes::createReadNarrowPass());
         manager.addPass(passes::createBuildPlanPass(build));
       }},
      {"overlap", "collectives run while the rank computes",
       [options](PassManager &manager) {
         // Memory that nobody else needs is worth time only where communication costs none.
         const bool isFree = manager.getContext()->getLoadedDialect<dist::DistDialect>()->getMachine().overlaps;
         passes::OverlapOptions overlap{isFree ? 0.1 : 0.0, static_cast<int64_t>(options.memoryLimit)};
         if (options.overlap)
           manager.nest<plan_ir::ProgramOp>().addPass(passes::createOverlapCollectivesPass(overlap));
       }},
      {"memory", "every buffer has its offset in the arena",
       [](PassManager &manager) { manager.nest<plan_ir::ProgramOp>().addPass(passes::createAssignMemoryPass()); }},
  };
}

} // namespace msc::compiler
