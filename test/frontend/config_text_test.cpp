// Exact texts of messages about blocks: what is wrong, where, and the repair.
#include "ErrorText.h"

using namespace msc::test;

namespace {

const std::vector<Mistake> mistakes = {
    {"MissingMinimize", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), epochs: 5}
)T",
     R"T(net.mir:5:1: error: the train block does not say what to minimize
    5 | train {optimizer: SGD(learning_rate: 0.1), epochs: 5}
      | ^~~~~
help: add 'minimize: loss', where loss is a result of the network
)T"},
    {"MinimizeUnknownResult", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: los}
)T",
     R"T(net.mir:5:54: error: 'los' is no result of the network
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: los}
      |                                                      ^~~
help: did you mean 'loss'?
)T"},
    {"MinimizeTensor", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: out}
)T",
     R"T(net.mir:5:54: error: cannot minimize 'out': expected a single number such as f32[], found 'tensor<4x2xf32>'
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: out}
      |                                                      ^~~
)T"},
    {"MissingOptimizer", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {minimize: loss}
)T",
     R"T(net.mir:5:1: error: the train block needs 'optimizer: Momentum(learning_rate: 0.1, momentum: 0.9)' or another optimizer
    5 | train {minimize: loss}
      | ^~~~~
)T"},
    {"UnknownOptimizer", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Momentun(0.1, 0.9), minimize: loss}
)T",
     R"T(net.mir:5:19: error: unknown optimizer 'Momentun': expected SGD or Momentum
    5 | train {optimizer: Momentun(0.1, 0.9), minimize: loss}
      |                   ^~~~~~~~
help: did you mean 'Momentum'?
)T"},
    {"OptimizerNotYet", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: AdamW(learning_rate: 0.1), minimize: loss}
)T",
     R"T(net.mir:5:19: error: optimizer 'AdamW' is not supported here: expected SGD or Momentum
    5 | train {optimizer: AdamW(learning_rate: 0.1), minimize: loss}
      |                   ^~~~~
)T"},
    {"OptimizerArgument", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Momentum(learning_rat: 0.1, momentum: 0.9, learning_rate: 0.1), minimize: loss}
)T",
     R"T(net.mir:5:28: error: unknown key 'learning_rat' in the arguments of 'Momentum'
    5 | train {optimizer: Momentum(learning_rat: 0.1, momentum: 0.9, learning_rate: 0.1), minimize: loss}
      |                            ^~~~~~~~~~~~
help: did you mean 'learning_rate'?
)T"},
    {"MomentumNeedsMomentum", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Momentum(0.1), minimize: loss}
)T",
     R"T(net.mir:5:19: error: 'Momentum' needs 'momentum'
    5 | train {optimizer: Momentum(0.1), minimize: loss}
      |                   ^~~~~~~~
)T"},
    {"ScheduleNotYet", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(Cosine(0.1, total: 3)), minimize: loss}
)T",
     R"T(net.mir:5:19: error: learning rate schedule 'Cosine' is not supported here: expected a number
    5 | train {optimizer: SGD(Cosine(0.1, total: 3)), minimize: loss}
      |                   ^~~
)T"},
    {"TrainKey", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss, epoch: 3}
)T",
     R"T(net.mir:5:60: error: unknown key 'epoch' in the train block
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss, epoch: 3}
      |                                                            ^~~~~
help: did you mean 'epochs'?
)T"},
    {"EpochsZero", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss, epochs: 0}
)T",
     R"T(net.mir:5:68: error: 'epochs' expects a whole number from 1 up, found '0'
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss, epochs: 0}
      |                                                                    ^
)T"},
    {"MetricsNotYet", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss, metrics: [Accuracy(logits, label)]}
)T",
     R"T(net.mir:5:60: error: 'metrics' is not supported here: metrics are not computed yet
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss, metrics: [Accuracy(logits, label)]}
      |                                                            ^~~~~~~
)T"},
    {"UnknownBlock", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
trian {optimizer: SGD(learning_rate: 0.1)}
)T",
     R"T(net.mir:5:1: error: unknown block 'trian'
    5 | trian {optimizer: SGD(learning_rate: 0.1)}
      | ^~~~~
help: did you mean 'train'?
)T"},
    {"BlockTwice", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
checkpoint {directory: "a"}
checkpoint {directory: "b"}
)T",
     R"T(net.mir:6:1: error: duplicate block 'checkpoint'
    6 | checkpoint {directory: "b"}
      | ^~~~~~~~~~
net.mir:5:1: note: the first one is here
    5 | checkpoint {directory: "a"}
      | ^~~~~~~~~~
)T"},
    {"FieldTwice", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
checkpoint {keep: 1, keep: 2}
)T",
     R"T(net.mir:5:22: error: 'keep' is given twice
    5 | checkpoint {keep: 1, keep: 2}
      |                      ^~~~
net.mir:5:13: note: first given here
    5 | checkpoint {keep: 1, keep: 2}
      |             ^~~~
)T"},
    {"DatasetSource", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Randm(seed: 1), columns: {x: uniform}, steps: 3}
)T",
     R"T(net.mir:5:18: error: unknown source 'Randm': expected Random or Npy
    5 | dataset {source: Randm(seed: 1), columns: {x: uniform}, steps: 3}
      |                  ^~~~~
help: did you mean 'Random'?
)T"},
    {"DatasetSourceNotYet", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Cifar10(path: env("DATA_PATH")), columns: {x: uniform}}
)T",
     R"T(net.mir:5:18: error: source 'Cifar10' is not supported here
    5 | dataset {source: Cifar10(path: env("DATA_PATH")), columns: {x: uniform}}
      |                  ^~~~~~~
help: convert the data to .npy files and use Npy()
)T"},
    {"DatasetWithoutSteps", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: uniform}}
)T",
     R"T(net.mir:5:1: error: a Random dataset needs 'steps', the number of batches per epoch
    5 | dataset {source: Random(seed: 1), columns: {x: uniform}}
      | ^~~~~~~
)T"},
    {"DatasetDistribution", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: unifrm}, steps: 3}
)T",
     R"T(net.mir:5:48: error: unknown distribution 'unifrm' of column 'x': expected uniform, normal, zeros, ones or constant
    5 | dataset {source: Random(seed: 1), columns: {x: unifrm}, steps: 3}
      |                                                ^~~~~~
help: did you mean 'uniform'?
)T"},
    {"DatasetColumnUnknown", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: uniform, y: uniform}, steps: 3}
)T",
     R"T(net.mir:5:1: error: column 'y' feeds no input of the network
    5 | dataset {source: Random(seed: 1), columns: {x: uniform, y: uniform}, steps: 3}
      | ^~~~~~~
help: did you mean 'x'?
)T"},
    {"DatasetColumnMissing", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {xx: uniform}, steps: 3}
)T",
     R"T(net.mir:5:1: error: column 'xx' feeds no input of the network
    5 | dataset {source: Random(seed: 1), columns: {xx: uniform}, steps: 3}
      | ^~~~~~~
help: did you mean 'x'?
)T"},
    {"ContextKey", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {paralel_mode: auto_parallel}
)T",
     R"T(net.mir:5:10: error: unknown key 'paralel_mode' in the context block
    5 | context {paralel_mode: auto_parallel}
      |          ^~~~~~~~~~~~
help: did you mean 'parallel_mode'?
)T"},
    {"ContextWord", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {parallel_mode: auto_paralel}
)T",
     R"T(net.mir:5:25: error: unknown parallel_mode 'auto_paralel': expected stand_alone, data_parallel, semi_auto_parallel, auto_parallel, hybrid_parallel
    5 | context {parallel_mode: auto_paralel}
      |                         ^~~~~~~~~~~~
help: did you mean 'auto_parallel'?
)T"},
    {"ContextUnsupported", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {pipeline_stages: 2}
)T",
     R"T(net.mir:5:10: error: 'pipeline_stages: 2' is known to MindSpore, not supported here: pipeline stages are not built yet
    5 | context {pipeline_stages: 2}
      |          ^~~~~~~~~~~~~~~
)T"},
    {"ContextGlobalRank", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {global_rank: 1}
)T",
     R"T(net.mir:5:10: error: 'global_rank' is known to MindSpore, not supported here: one plan serves all ranks, and each process learns its rank when the run starts
    5 | context {global_rank: 1}
      |          ^~~~~~~~~~~
)T"},
    {"ContextNothingToDo", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {parameter_broadcast: true}
)T",
     R"T(net.mir:5:10: warning: 'parameter_broadcast' has nothing to do: every rank draws the same initial values, so there is nothing to broadcast
    5 | context {parameter_broadcast: true}
      |          ^~~~~~~~~~~~~~~~~~~
)T"},
    {"ContextDeviceNum", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {device_num: 8}
)T",
     R"T(net.mir:5:22: error: 'device_num' is 8, but --devices is 1
    5 | context {device_num: 8}
      |                      ^
help: pass --devices 8
)T"},
    {"ContextPynative", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {mode: PYNATIVE_MODE}
)T",
     R"T(net.mir:5:16: error: 'PYNATIVE_MODE' is known to MindSpore, not supported here: a network is compiled as a whole
    5 | context {mode: PYNATIVE_MODE}
      |                ^~~~~~~~~~~~~
)T"},
    {"ContextFullBatchClash", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {full_batch: true, dataset_strategy: data_parallel}
)T",
     R"T(net.mir:5:10: error: 'full_batch: true' clashes with 'dataset_strategy: data_parallel'
    5 | context {full_batch: true, dataset_strategy: data_parallel}
      |          ^~~~~~~~~~
net.mir:5:28: note: the dataset strategy is here
    5 | context {full_batch: true, dataset_strategy: data_parallel}
      |                            ^~~~~~~~~~~~~~~~
)T"},
    {"ContextDatasetStrategy", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {dataset_strategy: (8, 1)}
)T",
     R"T(net.mir:5:28: error: 'dataset_strategy' expects data_parallel, full_batch or pieces per dimension per input, such as ((8, 1), (8, 1)), found '(8, 1)'
    5 | context {dataset_strategy: (8, 1)}
      |                            ^
)T"},
    {"ContextBoolean", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {dataset_repeat_dim_right: 1}
)T",
     R"T(net.mir:5:36: error: 'dataset_repeat_dim_right' expects true or false, found '1'
    5 | context {dataset_repeat_dim_right: 1}
      |                                    ^
)T"},
    {"MeshAxisName", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
mesh (2, 4)
)T",
     R"T(net.mir:5:7: error: an axis of a mesh needs a name, such as 'data: 2'
    5 | mesh (2, 4)
      |       ^
)T"},
};

INSTANTIATE_TEST_SUITE_P(ConfigErrorText, ErrorText, testing::ValuesIn(mistakes), mistakeName);

} // namespace
