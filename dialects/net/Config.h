// The blocks of a network as plain structs: dataset, train, checkpoint, context.
//
// An option that is parsed and has no effect is a lie. Each one is handed on here, or warns why there is nothing to do,
// or is an error that says so. Words and keys that nobody knows are errors with the nearest known one.
#pragma once

#include "dialects/net/ShardingRule.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace msc::net {

/// One column of a dataset; it feeds the network's input of the same name.
struct ColumnConfig {
  std::string name;
  std::string distribution;   ///< Random: "uniform", "normal", "zeros", "ones", "constant", "integers"; Npy: empty
  std::vector<double> values; ///< uniform: {low, high}; normal: {mean, sigma}; constant: {value}; integers: {low, high}
  std::string path;           ///< Npy: a file; `${NAME}` is taken from the environment when the run starts
  int64_t classes = 0;        ///< it holds labels, of classes 0 to classes - 1; negative ones are of none. 0: it holds something else
};

/// `dataset [train|evaluate] {...}`: where the batches come from.
struct DatasetConfig {
  std::string name;           ///< "" or "train", "evaluate"
  std::string source;         ///< "Random" or "Npy"
  uint64_t seed = 1;
  uint64_t steps = 0;         ///< batches per epoch; 0: all that the files hold
  bool sameBatch = false;     ///< every batch is the first one
  std::vector<ColumnConfig> columns;
  std::optional<int64_t> batch; ///< the global batch, as written; it is dimension 0 of the inputs
  bool shuffle = false;
  mlir::Location location;
};

/// A number that depends on the step, such as a learning rate: `kind` and `values` as in plan.proto's Schedule.
struct ScheduleConfig {
  std::string kind = "constant";
  std::vector<double> values;
  uint64_t warmup = 0; ///< updates of the linear rise to the first value; the schedule begins behind them
};

/// `optimizer: Momentum(...)` of the train block. See dialects/net/Optimizers.h for the optimizers and their arguments.
struct OptimizerConfig {
  std::string name;                     ///< "Momentum"
  ScheduleConfig learningRate;
  std::map<std::string, double> numbers; ///< the other arguments, defaults filled in; 0 and 1 are false and true
  std::optional<std::vector<std::string>> noDecay; ///< patterns of parameters without weight decay; absent: the default
  mlir::Location location;

  double number(const std::string &argument) const { return numbers.at(argument); }
  bool flag(const std::string &argument) const { return numbers.at(argument) != 0; }
};

/// What the loss is multiplied by so that small gradients do not vanish; gradients are divided by it again.
struct LossScaleConfig {
  double scale = 1;       ///< of the first step
  bool dynamic = false;   ///< divided by `factor` on overflow, multiplied by it after `window` steps without
  double factor = 2;
  uint64_t window = 2000;
};

/// What becomes of gradients before the optimizer takes them, in this order.
struct GradientConfig {
  LossScaleConfig lossScale;
  uint64_t accumulateSteps = 1;                      ///< batches whose gradients make one update, as their mean
  std::optional<std::pair<double, double>> clipValue; ///< least and largest element
  double clipGlobalNorm = 0;                         ///< largest norm of all gradients together; 0: any
};

/// `train {...}`: what is minimized, how, and for how long.
struct TrainConfig {
  OptimizerConfig optimizer;
  GradientConfig gradients;
  std::string minimize;       ///< name of the network's result
  uint64_t epochs = 1;
  uint64_t steps = 0;         ///< total; 0: epochs times the steps of the dataset
  uint64_t seed = 1;          ///< of initial values
  std::string logEvery;       ///< "", "epoch" or a number of steps
  std::string ampLevel = "O0"; ///< of mixed precision: "O0" to "O3"
  std::string ampType = "f16"; ///< "f16" or "bf16"
  mlir::Location location;
};

/// `checkpoint {...}`: when and where parameters and states are saved.
struct CheckpointConfig {
  std::string directory = "ckpt";
  std::string prefix;         ///< empty: the network's name
  uint64_t everyEpochs = 0;
  uint64_t everySteps = 0;
  uint64_t keep = 5;          ///< newest ones that stay; 0: all
  bool perRank = false;
  mlir::Location location;
};

/// How dataset inputs are spread over the devices.
struct DatasetStrategy {
  enum class Kind { DataParallel, FullBatch, Given };
  Kind kind = Kind::DataParallel;
  Strategy pieces;            ///< Given: pieces per dimension per input
  mlir::Location location;    ///< where it was written, in the file or as a flag; unknown if nowhere
};

/// How collectives of one kind that bring gradients together are put into buckets: MindSpore's `comm_fusion`.
struct FusionConfig {
  std::string mode = "auto";    ///< "auto", "size", "index"
  int64_t megabytes = 64;       ///< of a bucket, in modes auto and size
  std::vector<int64_t> indices; ///< mode index: numbers of the collectives that begin a bucket, ascending
};

/// `context {...}` with the flags that override it: how the network is spread over the devices, and what is dumped.
struct ContextConfig {
  std::string parallelMode;   ///< "stand_alone", "data_parallel", "semi_auto_parallel", "auto_parallel", "hybrid_parallel"
  std::string searchMode;     ///< "sharding_propagation", ...; empty: not chosen
  DatasetStrategy datasetStrategy;
  bool datasetRepeatDimRight = false;
  std::string deviceTarget = "auto"; ///< "auto", "cpu", "cuda"
  int64_t saveGraphs = 0;     ///< 0 none, 1 step_parallel_begin and 18_execute, 2 all dumps, 3 Graphviz too
  std::string saveGraphsPath = ".";
  bool commFusion = true;     ///< false: every collective on its own
  FusionConfig fuseAllReduce, fuseAllGather, fuseReduceScatter;
  std::optional<bool> gradientsMean; ///< what the user wrote; losses and gradients are global means either way
  mlir::Location location;
};

/// The first mesh of the file, if it has one: names and sizes in order.
struct MeshConfig {
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;
};

/// All blocks of a network. A block that is not there is absent or has its defaults.
struct Config {
  int64_t devices = 1;
  std::optional<MeshConfig> mesh;
  std::vector<DatasetConfig> datasets;
  std::optional<TrainConfig> train;
  std::optional<CheckpointConfig> checkpoint;
  ContextConfig context;
};

/// A flag of the command line that overrides an option of `context`, e.g. {"parallel-mode", "data_parallel"}. Kebab and
/// snake case are the same.
struct ConfigOverride {
  std::string key;
  std::string text;
};

/// What a train block says about the update, in one text: equal texts mean equal updates.
std::string updateText(const TrainConfig &train);

/// Name of the module attribute (i64) that holds the number of devices; the frontend sets it.
inline constexpr llvm::StringLiteral devicesAttributeName = "net.devices";
/// Of a module whose text has mistakes for which blocks or statements were left out.
inline constexpr llvm::StringLiteral incompleteName = "net.incomplete";

/// Reads all `net.config` operators of the module. Reports every mistake, then fails; else the context block holds the
/// overrides, so that a dump says what it was compiled with.
llvm::FailureOr<Config> readConfig(mlir::ModuleOp module, llvm::ArrayRef<ConfigOverride> overrides = {});

/// The options of `context` that may be overridden by a flag, in snake case.
std::vector<llvm::StringRef> contextOptionNames();
/// One line about an option that works; empty for those that are only understood.
std::string contextOptionHelp(llvm::StringRef name);
/// Its values if they are "BOOL" or "0..3", else empty.
std::string contextOptionValues(llvm::StringRef name);

} // namespace msc::net
