// Exact texts of messages about train blocks: what is wrong, where, and the repair.
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
    {"LearningRateOutsideTheOptimizer", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l
}
train {optimizer: AdamW(0.1), minimize: loss, learning_rate: 0.2}
)T",
     R"T(net.mir:5:47: error: unknown key 'learning_rate' in the train block
    5 | train {optimizer: AdamW(0.1), minimize: loss, learning_rate: 0.2}
      |                                               ^~~~~~~~~~~~~
help: it is an argument of the optimizer: AdamW(learning_rate: 0.2)
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
     R"T(net.mir:5:54: error: cannot minimize 'out': expected a single number, found (4, 2) Float32
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: out}
      |                                                      ^~~
help: write minimize: loss
)T"},
    {"MinimizeTensorAlone", R"T(network n(%x: f32[4, 2]) {
  return out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: out}
)T",
     R"T(net.mir:4:54: error: cannot minimize 'out': expected a single number, found (4, 2) Float32
    4 | train {optimizer: SGD(learning_rate: 0.1), minimize: out}
      |                                                      ^~~
help: return a number as well, such as %loss = ReduceMean(%out)
)T"},
    {"MinimizeResultOfAnotherName", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return error: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss}
)T",
     R"T(net.mir:5:54: error: 'loss' is no result of the network
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss}
      |                                                      ^~~~
help: expected one of error, out
)T"},
    {"MinimizeMisspelt", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimise: loss}
)T",
     R"T(net.mir:5:44: error: unknown key 'minimise' in the train block
    5 | train {optimizer: SGD(learning_rate: 0.1), minimise: loss}
      |                                            ^~~~~~~~
help: did you mean 'minimize'?
)T"},
    {"OptimizerMisspelt", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimiser: SGD(learning_rate: 0.1), minimize: loss}
)T",
     R"T(net.mir:5:8: error: unknown key 'optimiser' in the train block
    5 | train {optimiser: SGD(learning_rate: 0.1), minimize: loss}
      |        ^~~~~~~~~
help: did you mean 'optimizer'?
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
     R"T(net.mir:5:19: error: unknown optimizer 'Momentun': expected SGD, Momentum, Adam, AdamW, AdamWeightDecay, Lamb, RMSProp or Adagrad
    5 | train {optimizer: Momentun(0.1, 0.9), minimize: loss}
      |                   ^~~~~~~~
help: did you mean 'Momentum'?
)T"},
    {"OptimizerNotYet", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Ftrl(learning_rate: 0.1), minimize: loss}
)T",
     R"T(net.mir:5:19: error: optimizer 'Ftrl' is not in this version: expected SGD, Momentum, Adam, AdamW, AdamWeightDecay, Lamb, RMSProp or Adagrad
    5 | train {optimizer: Ftrl(learning_rate: 0.1), minimize: loss}
      |                   ^~~~
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
    {"UnknownSchedule", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(Cosin(0.1, total: 3)), minimize: loss}
)T",
     R"T(net.mir:5:19: error: unknown schedule 'Cosin': expected Constant, Step, Exponential, Cosine, Polynomial, Piecewise
    5 | train {optimizer: SGD(Cosin(0.1, total: 3)), minimize: loss}
      |                   ^~~
help: did you mean 'Cosine'?
)T"},
    {"ScheduleOfMindSpore", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: CosineDecayLR(0.0, 0.1, 10)), minimize: loss}
)T",
     R"T(net.mir:5:38: error: unknown schedule 'CosineDecayLR': expected Constant, Step, Exponential, Cosine, Polynomial, Piecewise
    5 | train {optimizer: SGD(learning_rate: CosineDecayLR(0.0, 0.1, 10)), minimize: loss}
      |                                      ^~~~~~~~~~~~~
help: write Cosine(MAX_LR, total: DECAY_STEPS, end: MIN_LR)
)T"},
    {"ScheduleNeedsTotal", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: Cosine(0.1)), minimize: loss}
)T",
     R"T(net.mir:5:38: error: 'Cosine' needs 'total'
    5 | train {optimizer: SGD(learning_rate: Cosine(0.1)), minimize: loss}
      |                                      ^~~~~~
)T"},
    {"WarmupBeyondTotal", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: Cosine(0.1, total: 100, warmup: 200)), minimize: loss}
)T",
     R"T(net.mir:5:70: error: a warm-up of 200 updates leaves none for 'Cosine': its total is 100
    5 | train {optimizer: SGD(learning_rate: Cosine(0.1, total: 100, warmup: 200)), minimize: loss}
      |                                                                      ^~~
)T"},
    {"PiecewiseCounts", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: Piecewise(rates: (0.1, 0.01), milestones: (10, 20))), minimize: loss}
)T",
     R"T(net.mir:5:38: error: 'Piecewise' has 2 milestones and 2 rates: expected one rate more than milestones
    5 | train {optimizer: SGD(learning_rate: Piecewise(rates: (0.1, 0.01), milestones: (10, 20))), minimize: loss}
      |                                      ^~~~~~~~~
)T"},
    {"PiecewiseDescends", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: Piecewise(rates: (1, 2, 3), milestones: (20, 10))), minimize: loss}
)T",
     R"T(net.mir:5:78: error: 'milestones' expects ascending numbers of steps from 1 up, found '(20, 10)'
    5 | train {optimizer: SGD(learning_rate: Piecewise(rates: (1, 2, 3), milestones: (20, 10))), minimize: loss}
      |                                                                              ^
)T"},
    {"BetaIsOne", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Adam(beta1: 1.0), minimize: loss}
)T",
     R"T(net.mir:5:31: error: 'beta1' has to be from 0 to below 1, found 1.0
    5 | train {optimizer: Adam(beta1: 1.0), minimize: loss}
      |                               ^~~
)T"},
    {"NoDecayIsNoPattern", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: AdamW(no_decay: 3), minimize: loss}
)T",
     R"T(net.mir:5:35: error: 'no_decay' expects patterns of parameter names, such as ["*.bias", "*norm*"], found '3'
    5 | train {optimizer: AdamW(no_decay: 3), minimize: loss}
      |                                   ^
)T"},
    {"NoDecayIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Adam(no_decay: "*.bias"), minimize: loss}
)T",
     R"T(net.mir:5:24: warning: 'no_decay' has nothing to do: 'weight_decay' is 0
    5 | train {optimizer: Adam(no_decay: "*.bias"), minimize: loss}
      |                        ^~~~~~~~
)T"},
    {"ClipValueDescends", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1), minimize: loss, clip_value: (1, -1)}
)T",
     R"T(net.mir:5:57: error: 'clip_value' expects a bound above 0, or the least and the largest value, found '(1, -1)'
    5 | train {optimizer: SGD(0.1), minimize: loss, clip_value: (1, -1)}
      |                                                         ^
)T"},
    {"ClipNormZero", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1), minimize: loss, clip_global_norm: 0}
)T",
     R"T(net.mir:5:63: error: 'clip_global_norm' has to be greater than 0
    5 | train {optimizer: SGD(0.1), minimize: loss, clip_global_norm: 0}
      |                                                               ^
)T"},
    {"AccumulateZero", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1), minimize: loss, accumulate_steps: 0}
)T",
     R"T(net.mir:5:63: error: 'accumulate_steps' expects a whole number from 1 up, found '0'
    5 | train {optimizer: SGD(0.1), minimize: loss, accumulate_steps: 0}
      |                                                               ^
)T"},
    {"LossScaleNumber", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1), minimize: loss, loss_scale: 1024}
)T",
     R"T(net.mir:5:57: error: 'loss_scale' expects FixedLossScale(1024) or DynamicLossScale(), found '1024'
    5 | train {optimizer: SGD(0.1), minimize: loss, loss_scale: 1024}
      |                                                         ^~~~
)T"},
    {"LossScaleFactor", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1), minimize: loss, loss_scale: DynamicLossScale(scale_factor: 1.0)}
)T",
     R"T(net.mir:5:88: error: 'scale_factor' has to be greater than 1
    5 | train {optimizer: SGD(0.1), minimize: loss, loss_scale: DynamicLossScale(scale_factor: 1.0)}
      |                                                                                        ^~~
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
     R"T(net.mir:5:68: error: 'epochs' expects a whole number from 1 to 2147483647, found '0'
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss, epochs: 0}
      |                                                                    ^
)T"},
    {"MetricsNotYet", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss, metrics: [Accuracy(logits, label)]}
)T",
     R"T(net.mir:5:60: error: 'metrics' is not in this version: metrics are not computed yet
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss, metrics: [Accuracy(logits, label)]}
      |                                                            ^~~~~~~
)T"},
    {"OptimizerKeyOfAnotherSystem", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(lr: 0.1), minimize: loss}
)T",
     R"T(net.mir:5:23: error: unknown key 'lr' in the arguments of 'SGD'
    5 | train {optimizer: SGD(lr: 0.1), minimize: loss}
      |                       ^~
help: did you mean 'learning_rate'?
)T"},
    {"OptimizerWithoutArguments", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Momentum, minimize: loss}
)T",
     R"T(net.mir:5:19: error: 'Momentum' needs its arguments
    5 | train {optimizer: Momentum, minimize: loss}
      |                   ^~~~~~~~
help: write Momentum(learning_rate: 0.1, momentum: 0.9)
)T"},
    {"MinimizeValue", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1), minimize: %loss}
)T",
     R"T(net.mir:5:39: error: 'minimize' expects a word, found '%loss'
    5 | train {optimizer: SGD(0.1), minimize: %loss}
      |                                       ^~~~~
help: write 'loss'
)T"},
    {"NesterovTwice", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: Momentum(0.1, 0.9, nesterov: true, use_nesterov: false), minimize: loss}
)T",
     R"T(net.mir:5:54: error: 'use_nesterov' and 'nesterov' are the same
    5 | train {optimizer: Momentum(0.1, 0.9, nesterov: true, use_nesterov: false), minimize: loss}
      |                                                      ^~~~~~~~~~~~
net.mir:5:38: note: the other one is here
    5 | train {optimizer: Momentum(0.1, 0.9, nesterov: true, use_nesterov: false), minimize: loss}
      |                                      ^~~~~~~~
)T"},
    {"DampeningIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1, dampening: 0.5), minimize: loss}
)T",
     R"T(net.mir:5:28: warning: 'dampening' has nothing to do: there is no momentum
    5 | train {optimizer: SGD(0.1, dampening: 0.5), minimize: loss}
      |                            ^~~~~~~~~
)T"},
    {"SinkModeIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(0.1), minimize: loss, log_every: 2, dataset_sink_mode: true}
)T",
     R"T(net.mir:5:59: warning: 'dataset_sink_mode' has nothing to do: 'log_every' says what is printed
    5 | train {optimizer: SGD(0.1), minimize: loss, log_every: 2, dataset_sink_mode: true}
      |                                                           ^~~~~~~~~~~~~~~~~
)T"},
    {"EpochsAndSteps", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss, epochs: 2, steps: 3}
)T",
     R"T(net.mir:5:60: error: 'epochs' has no effect: 'steps' says where training ends
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss, epochs: 2, steps: 3}
      |                                                            ^~~~~~
)T"},
    {"KeyNearOneThatIsRefused", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss, metric: 1}
)T",
     R"T(net.mir:5:60: error: unknown key 'metric' in the train block
    5 | train {optimizer: SGD(learning_rate: 0.1), minimize: loss, metric: 1}
      |                                                            ^~~~~~
help: it takes accumulate_steps, amp_dtype, amp_level, clip_global_norm, clip_value, dataset_sink_mode, epochs, log_every, loss_scale, minimize, optimizer, seed, steps
)T"},
    {"FolderInPrefix", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
train {optimizer: SGD(learning_rate: 0.1), minimize: loss}
checkpoint {prefix: "a/b"}
)T",
     R"T(net.mir:6:21: error: 'prefix' is the beginning of a file name and holds no '/', found 'a/b'
    6 | checkpoint {prefix: "a/b"}
      |                     ^~~~~
help: folders belong to 'directory'
)T"},
    {"CheckpointIdle", R"T(network n(%x: f32[4, 2]) {
  %l = ReduceSum(%x)
  return loss: %l, out: %x
}
checkpoint {keep: 2}
)T",
     R"T(net.mir:5:1: warning: the checkpoint block has nothing to do: the network is not trained
    5 | checkpoint {keep: 2}
      | ^~~~~~~~~~
)T"},
};

INSTANTIATE_TEST_SUITE_P(TrainErrorText, ErrorText, testing::ValuesIn(mistakes), mistakeName);

} // namespace
