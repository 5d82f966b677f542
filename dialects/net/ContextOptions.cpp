#include "dialects/net/ContextOptions.h"

#include "dialects/net/Config.h"

namespace msc::net {

using Effect = ContextOption::Effect;

static constexpr llvm::StringRef kMachineModel = "costs come from the machine model file";
static constexpr llvm::StringRef kNoPipeline = "pipeline stages are not built yet";
static constexpr llvm::StringRef kNoOptimizerSharding = "optimizer states are split like their parameters";
static constexpr llvm::StringRef kNoStrategyFiles = "strategies are read back from dumps (step_parallel_begin)";
static constexpr llvm::StringRef kNoFusion = "its options are those of comm_fusion";
static constexpr llvm::StringRef kNoNorms = "local norms are not computed";
static constexpr llvm::StringRef kSearchSwitch = "each search mode has one behaviour, without such switches";

std::string contextOptionHelp(llvm::StringRef name) {
  for (const ContextOption &option : contextOptions())
    if (option.name == name && option.effect == Effect::Works)
      return (option.reason + (option.value.empty() ? "" : " (default: " + option.value + ")")).str();
  return "";
}

std::string contextOptionValues(llvm::StringRef name) {
  if (name == "save_graphs")
    return "0..3";
  for (const ContextOption &option : contextOptions())
    if (option.name == name && (option.value == "true" || option.value == "false"))
      return "BOOL";
  return "";
}

llvm::ArrayRef<ContextOption> contextOptions() {
  static const ContextOption options[] = {
      {"mode", Effect::Works, "GRAPH_MODE", "networks are compiled as a whole"},
      {"device_target", Effect::Works, "auto", "what kernels are made for: auto (both), cpu or cuda; msrun --device chooses"},
      {"device_num", Effect::Works, "", "the same as --devices"},
      {"save_graphs", Effect::Works, "0",
       "dumps: 1 step_parallel_begin and 18_execute, 2 all stages, 3 Graphviz (.dot) beside them"},
      {"save_graphs_path", Effect::Works, ".", "folder of the dumps: PATH/rank_<r>/<stage>_<NNNN>.ir"},
      {"parallel_mode", Effect::Works, "", "stand_alone, data_parallel, semi_auto_parallel, auto_parallel or hybrid_parallel"},
      {"search_mode", Effect::Works, "", "how auto_parallel chooses strategies: sharding_propagation, optimal, dynamic_programming, recursive_programming"},
      {"auto_parallel_search_mode", Effect::Works, "", "MindSpore's older name of search_mode"},
      {"dataset_strategy", Effect::Works, "data_parallel",
       "how inputs arrive: data_parallel, full_batch, or pieces such as ((8, 1), (8, 1))"},
      {"full_batch", Effect::Works, "false", "true: the same as dataset_strategy full_batch"},
      {"dataset_repeat_dim_right", Effect::Works, "false",
       "devices that a dataset_strategy leaves over repeat on the right of the device matrix"},
      {"gradients_mean", Effect::Works, "true", "gradients are exact either way; false says how to get MindSpore's sum"},
      {"parameter_broadcast", Effect::NoEffect, "false",
       "every rank draws the same initial values, so there is nothing to broadcast"},
      {"loss_repeated_mean", Effect::NoEffect, "true",
       "losses are global means and gradients exact, so a repeated loss counts once"},
      {"gradient_fp32_sync", Effect::NoEffect, "true", "bf16 and f16 gradients are summed in f32 in any case"},
      {"enable_alltoall", Effect::NoEffect, "true", "redistributions use the cheapest collectives, AlltoAll among them"},
      {"force_fp32_communication", Effect::NoEffect, "false", "sums over devices are made in f32 in any case"},
      {"communi_parallel_mode", Effect::OnlyDefault, "all_group_parallel",
       "collectives of different groups are never serialised"},
      {"pipeline_stages", Effect::OnlyDefault, "1", kNoPipeline},
      {"pipeline_segments", Effect::OnlyDefault, "1", kNoPipeline},
      {"auto_pipeline", Effect::OnlyDefault, "false", kNoPipeline},
      {"pipeline_result_broadcast", Effect::OnlyDefault, "false", kNoPipeline},
      {"pipeline_config", Effect::Unsupported, "", kNoPipeline},
      {"grad_accumulation_step", Effect::OnlyDefault, "1", "write 'accumulate_steps' in the train block"},
      {"enable_parallel_optimizer", Effect::OnlyDefault, "false", kNoOptimizerSharding},
      {"parallel_optimizer_config", Effect::Unsupported, "", kNoOptimizerSharding},
      {"optimizer_weight_shard_size", Effect::Unsupported, "", kNoOptimizerSharding},
      {"optimizer_weight_shard_aggregated_save", Effect::Unsupported, "", kNoOptimizerSharding},
      {"zero3", Effect::OnlyDefault, "false", kNoOptimizerSharding},
      {"strategy_ckpt_load_file", Effect::Unsupported, "", kNoStrategyFiles},
      {"strategy_ckpt_save_file", Effect::Unsupported, "", kNoStrategyFiles},
      {"strategy_ckpt_config", Effect::Unsupported, "", kNoStrategyFiles},
      {"group_ckpt_save_file", Effect::Unsupported, "", "checkpoints hold their own index of slices"},
      {"all_reduce_fusion_config", Effect::Unsupported, "", kNoFusion},
      {"comm_fusion", Effect::Works, "",
       "buckets of gradient collectives: {allreduce: {mode: size, config: 32}, allgather: ..., reducescatter: ...}; modes auto "
       "(64 MB), size, index; {openstate: false}: none"},
      {"dump_local_norm", Effect::OnlyDefault, "false", kNoNorms},
      {"dump_local_norm_path", Effect::Unsupported, "", kNoNorms},
      {"dump_device_local_norm", Effect::OnlyDefault, "false", kNoNorms},
      {"auto_parallel_new_interface", Effect::Unsupported, "", "there is one interface"},
      {"global_rank", Effect::Unsupported, "",
       "one plan serves all ranks, and each process learns its rank when the run starts"},
      {"device_id", Effect::Unsupported, "", "msrun gives each rank its device"},
      {"max_device_memory", Effect::Unsupported, "", kMachineModel},
      {"device_memory_capacity", Effect::Unsupported, "", kMachineModel},
      {"costmodel_alpha", Effect::Unsupported, "", kMachineModel},
      {"costmodel_beta", Effect::Unsupported, "", kMachineModel},
      {"costmodel_gamma", Effect::Unsupported, "", kMachineModel},
      {"communi_threshold", Effect::Unsupported, "", kMachineModel},
      {"communi_const", Effect::Unsupported, "", kMachineModel},
      {"communi_bias", Effect::Unsupported, "", kMachineModel},
      {"run_phase", Effect::Unsupported, "", "a network with a train block is trained, one without is evaluated"},
      {"tensor_slice_align_enable", Effect::OnlyDefault, "false", "uneven pieces are legal"},
      {"tensor_slice_align_size", Effect::Unsupported, "", "uneven pieces are legal"},
      {"fully_use_devices", Effect::Unsupported, "", kSearchSwitch},
      {"elementwise_op_strategy_follow", Effect::Unsupported, "", kSearchSwitch},
      {"enable_algo_approxi", Effect::Unsupported, "", kSearchSwitch},
      {"algo_approxi_epsilon", Effect::Unsupported, "", kSearchSwitch},
  };
  return options;
}

} // namespace msc::net
