// Exact texts of messages about blocks other than train: what is wrong, where, and the repair.
#include "ErrorText.h"

using namespace msc::test;

namespace {

const std::vector<Mistake> mistakes = {
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
     R"T(net.mir:5:18: error: source 'Cifar10' is not in this version
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
     R"T(net.mir:5:48: error: unknown distribution 'unifrm' of column 'x': expected uniform, normal, zeros, ones, constant or integers
    5 | dataset {source: Random(seed: 1), columns: {x: unifrm}, steps: 3}
      |                                                ^~~~~~
help: did you mean 'uniform'?
)T"},
    {"DistributionBounds", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: uniform(5, 1)}, steps: 3}
)T",
     R"T(net.mir:5:48: error: 'uniform' of column 'x' expects the lower bound first, found (5.0, 1.0)
    5 | dataset {source: Random(seed: 1), columns: {x: uniform(5, 1)}, steps: 3}
      |                                                ^~~~~~~
)T"},
    {"DistributionDeviation", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: normal(0, -1)}, steps: 3}
)T",
     R"T(net.mir:5:48: error: 'normal' of column 'x' expects a standard deviation that is not negative, behind the mean, found (0.0, -1.0)
    5 | dataset {source: Random(seed: 1), columns: {x: normal(0, -1)}, steps: 3}
      |                                                ^~~~~~
)T"},
    {"DistributionIntegers", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: integers(3, 3)}, steps: 3}
)T",
     R"T(net.mir:5:48: error: 'integers' of column 'x' expects the smallest number and one beyond the largest, found (3.0, 3.0)
    5 | dataset {source: Random(seed: 1), columns: {x: integers(3, 3)}, steps: 3}
      |                                                ^~~~~~~~
)T"},
    {"DatasetNumbersBehindTheTable", R"T(network n(%ids: i32[4]) {
  param %table: f32[20, 2] = Normal(0.5)
  %e = Gather(%table, %ids, 0)
  %loss = ReduceSum(%e)
  return loss: %loss
}
dataset {source: Random(seed: 1), columns: {ids: integers(0, 30)}, steps: 3}
)T",
     R"T(net.mir:7:45: error: column 'ids' draws numbers up to 29, but the table has 20 rows
    7 | dataset {source: Random(seed: 1), columns: {ids: integers(0, 30)}, steps: 3}
      |                                             ^~~
net.mir:3:8: note: they are looked up here
    3 |   %e = Gather(%table, %ids, 0)
      |        ^~~~~~
help: write ids: integers(0, 20)
)T"},
    {"DatasetLabelsBehindTheClasses", R"T(network n(%x: f32[4, 2], %label: i32[4, 1]) {
  %flat = Reshape(%label, (4))
  %loss = SoftmaxCrossEntropyWithLogits(%x, %flat, sparse: true)
  return loss: %loss
}
dataset {source: Random(seed: 1), columns: {x: uniform, label: integers(1, 3)}, steps: 3}
)T",
     R"T(net.mir:6:57: error: column 'label' draws labels up to 2, but there are 2 classes
    6 | dataset {source: Random(seed: 1), columns: {x: uniform, label: integers(1, 3)}, steps: 3}
      |                                                         ^~~~~
net.mir:3:11: note: the last dimension of the logits is the classes
    3 |   %loss = SoftmaxCrossEntropyWithLogits(%x, %flat, sparse: true)
      |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~
help: write label: integers(1, 2)
)T"},
    {"DatasetColumnUnknown", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: uniform, y: uniform}, steps: 3}
)T",
     R"T(net.mir:5:57: error: column 'y' feeds no input of the network
    5 | dataset {source: Random(seed: 1), columns: {x: uniform, y: uniform}, steps: 3}
      |                                                         ^
help: expected one of x
)T"},
    {"DatasetInputWithoutColumn", R"T(network n(%x: f32[4, 2], %y: f32[4, 2]) {
  %l = MSELoss(%x, %y)
  return loss: %l
}
dataset {source: Npy(), columns: {x: "x.npy"}}
)T",
     R"T(net.mir:5:1: error: the dataset has no column for input 'y'
    5 | dataset {source: Npy(), columns: {x: "x.npy"}}
      | ^~~~~~~
help: add 'y: "y.npy"' to its columns
)T"},
    {"DatasetWholeNumbersWithoutColumn", R"T(network n(%x: i32[4], %y: i64[4], %z: f32[61, 2]) {
  %e = Gather(%z, %x, 0)
  %l = ReduceSum(%e)
  return loss: %l, out: %y
}
dataset {source: Random(seed: 1), columns: {z: uniform, y: integers(0, 3)}, steps: 1}
)T",
     R"T(net.mir:6:1: error: the dataset has no column for input 'x'
    6 | dataset {source: Random(seed: 1), columns: {z: uniform, y: integers(0, 3)}, steps: 1}
      | ^~~~~~~
help: add 'x: integers(0, 61)' to its columns
)T"},
    {"DatasetOtherWholeNumbersWithoutColumn", R"T(network n(%x: i32[4], %z: f32[4, 2]) {
  %l = ReduceSum(%z)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {z: uniform}, steps: 1}
)T",
     R"T(net.mir:5:1: error: the dataset has no column for input 'x'
    5 | dataset {source: Random(seed: 1), columns: {z: uniform}, steps: 1}
      | ^~~~~~~
help: add 'x: integers(0, 10)' to its columns
)T"},
    {"DatasetColumnsMisspelt", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), column: {x: uniform}, steps: 3}
)T",
     R"T(net.mir:5:35: error: unknown key 'column' in the dataset block
    5 | dataset {source: Random(seed: 1), column: {x: uniform}, steps: 3}
      |                                   ^~~~~~
help: did you mean 'columns'?
)T"},
    {"DatasetColumnNumber", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: 3}, steps: 3}
)T",
     R"T(net.mir:5:48: error: unknown distribution '3' of column 'x': expected uniform, normal, zeros, ones, constant or integers
    5 | dataset {source: Random(seed: 1), columns: {x: 3}, steps: 3}
      |                                                ^
help: write constant(3)
)T"},
    {"DatasetColumnOfOneBound", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: uniform(1)}, steps: 3}
)T",
     R"T(net.mir:5:48: error: 'uniform' of column 'x' takes 2 numbers, but 1 is given
    5 | dataset {source: Random(seed: 1), columns: {x: uniform(1)}, steps: 3}
      |                                                ^~~~~~~
help: write uniform(-1, 1)
)T"},
    {"DatasetColumnMissing", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {xx: uniform}, steps: 3}
)T",
     R"T(net.mir:5:45: error: column 'xx' feeds no input of the network
    5 | dataset {source: Random(seed: 1), columns: {xx: uniform}, steps: 3}
      |                                             ^~
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
context {device_num: many}
)T",
     R"T(net.mir:5:22: error: 'device_num' expects a whole number from 1 to 1048576, found 'many'
    5 | context {device_num: many}
      |                      ^~~~
)T"},
    {"ContextSearchMode", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {parallel_mode: auto_parallel, search_mode: greedy}
)T",
     R"T(net.mir:5:53: error: unknown search_mode 'greedy': expected sharding_propagation, dynamic_programming, recursive_programming, optimal
    5 | context {parallel_mode: auto_parallel, search_mode: greedy}
      |                                                     ^~~~~~
)T"},
    {"ContextSearchModesClash", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {search_mode: sharding_propagation, auto_parallel_search_mode: dynamic_programming}
)T",
     R"T(net.mir:5:45: error: 'auto_parallel_search_mode: dynamic_programming' clashes with 'search_mode: sharding_propagation'
    5 | context {search_mode: sharding_propagation, auto_parallel_search_mode: dynamic_programming}
      |                                             ^~~~~~~~~~~~~~~~~~~~~~~~~
net.mir:5:10: note: the search mode is here
    5 | context {search_mode: sharding_propagation, auto_parallel_search_mode: dynamic_programming}
      |          ^~~~~~~~~~~
)T"},
    {"SearchModeIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {device_num: 2, parallel_mode: data_parallel, search_mode: optimal}
)T",
     R"T(net.mir:5:55: warning: 'search_mode' has nothing to do: data_parallel mode does not search
    5 | context {device_num: 2, parallel_mode: data_parallel, search_mode: optimal}
      |                                                       ^~~~~~~~~~~
)T"},
    {"DatasetStrategyIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {device_num: 2, parallel_mode: data_parallel, dataset_strategy: full_batch}
)T",
     R"T(net.mir:5:55: warning: 'dataset_strategy' has nothing to do: in data_parallel mode every rank gets its own rows
    5 | context {device_num: 2, parallel_mode: data_parallel, dataset_strategy: full_batch}
      |                                                       ^~~~~~~~~~~~~~~~
)T"},
    {"RepeatDimIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {device_num: 2, dataset_repeat_dim_right: true}
)T",
     R"T(net.mir:5:25: warning: 'dataset_repeat_dim_right' has nothing to do: no device is left over by the dataset_strategy
    5 | context {device_num: 2, dataset_repeat_dim_right: true}
      |                         ^~~~~~~~~~~~~~~~~~~~~~~~
)T"},
    {"FullBatchClash", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {full_batch: false, dataset_strategy: full_batch}
)T",
     R"T(net.mir:5:10: error: 'full_batch: false' clashes with 'dataset_strategy: full_batch'
    5 | context {full_batch: false, dataset_strategy: full_batch}
      |          ^~~~~~~~~~
net.mir:5:29: note: the dataset strategy is here
    5 | context {full_batch: false, dataset_strategy: full_batch}
      |                             ^~~~~~~~~~~~~~~~
)T"},
    {"SaveGraphsPathIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {save_graphs_path: "here"}
)T",
     R"T(net.mir:5:10: warning: 'save_graphs_path' has nothing to do: 'save_graphs' is 0
    5 | context {save_graphs_path: "here"}
      |          ^~~~~~~~~~~~~~~~
)T"},
    {"DistributionOfNpy", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Npy(), columns: {x: uniform}}
)T",
     R"T(net.mir:5:38: error: expected a path in quotes or env("NAME"), found 'uniform'
    5 | dataset {source: Npy(), columns: {x: uniform}}
      |                                      ^~~~~~~
help: columns of Npy are files; source: Random() draws 'uniform'
)T"},
    {"DistributionOfIntegers", R"T(network n(%x: i32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), columns: {x: uniform}, steps: 3}
)T",
     R"T(net.mir:5:1: error: column 'x' is uniform, but the input holds whole numbers
    5 | dataset {source: Random(seed: 1), columns: {x: uniform}, steps: 3}
      | ^~~~~~~
net.mir:1:11: note: the input is here
    1 | network n(%x: i32[4, 2]) {
      |           ^~
help: write x: integers(0, 10), which draws 0 to 9
)T"},
    {"DropRemainder", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Npy(), columns: {x: "x.npy"}, drop_remainder: false}
)T",
     R"T(net.mir:5:64: error: 'drop_remainder: false' is not in this version: every batch has the size of the inputs
    5 | dataset {source: Npy(), columns: {x: "x.npy"}, drop_remainder: false}
      |                                                                ^~~~~
)T"},
    {"DatasetName", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset trian {source: Npy(), columns: {x: "x.npy"}}
)T",
     R"T(net.mir:5:1: error: unknown dataset 'trian': expected train or evaluate
    5 | dataset trian {source: Npy(), columns: {x: "x.npy"}}
      | ^~~~~~~
help: did you mean 'train'?
)T"},
    {"DatasetEvaluateIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset evaluate {source: Npy(), columns: {x: "x.npy"}}
)T",
     R"T(net.mir:5:1: warning: dataset 'evaluate' has nothing to do: networks are not evaluated yet
    5 | dataset evaluate {source: Npy(), columns: {x: "x.npy"}}
      | ^~~~~~~
)T"},
    {"DatasetBatch", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Npy(), columns: {x: "x.npy"}, batch: 8}
)T",
     R"T(net.mir:5:1: error: 'batch' is 8, but input 'x' has 4 rows
    5 | dataset {source: Npy(), columns: {x: "x.npy"}, batch: 8}
      | ^~~~~~~
net.mir:1:11: note: the input is here
    1 | network n(%x: f32[4, 2]) {
      |           ^~
)T"},
    {"DatasetSeedTwice", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Random(seed: 1), seed: 2, columns: {x: uniform}, steps: 3}
)T",
     R"T(net.mir:5:35: error: 'seed' is given twice
    5 | dataset {source: Random(seed: 1), seed: 2, columns: {x: uniform}, steps: 3}
      |                                   ^~~~
net.mir:5:25: note: first given here
    5 | dataset {source: Random(seed: 1), seed: 2, columns: {x: uniform}, steps: 3}
      |                         ^~~~
)T"},
    {"DatasetSeedIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: Npy(), columns: {x: "x.npy"}, seed: 2}
)T",
     R"T(net.mir:5:48: warning: 'seed' has nothing to do: the samples are not shuffled
    5 | dataset {source: Npy(), columns: {x: "x.npy"}, seed: 2}
      |                                                ^~~~
)T"},
    {"DevicesInTheContext", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
context {devices: 2}
)T",
     R"T(net.mir:5:10: error: unknown key 'devices' in the context block
    5 | context {devices: 2}
      |          ^~~~~~~
help: did you mean 'device_num'?
)T"},
    {"FileAsSource", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
dataset {source: "x.npy"}
)T",
     R"T(net.mir:5:18: error: unknown source 'x.npy': expected Random or Npy
    5 | dataset {source: "x.npy"}
      |                  ^~~~~~~
help: files are columns: write source: Npy(), columns: {x: "x.npy"}
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
