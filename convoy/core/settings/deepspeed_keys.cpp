// SPDX-License-Identifier: Apache-2.0
//
// The keys of DeepSpeed 0.19.8: constants.py, config.py, zero/config.py, zero/offload_config.py,
// precision_config.py, activation_checkpointing/config.py, and older ones that its documentation
// still lists.
#include "convoy/core/settings/deepspeed_file.h"

namespace convoy::settings {
namespace {

constexpr auto kBuckets = "gradients and parameters travel block by block, while others compute";
constexpr auto kNoFp16 = "fp16 is computed as bf16, without loss scaling";
constexpr auto kOwnLog = "progress, times, memory and TensorBoard files are written in any case";
constexpr auto kOwnCheckpoints =
    "checkpoints are sharded, checked, and open to any number of ranks; the model is exported "
    "whole";
constexpr auto kExactSums = "gradients are summed in fp32";
constexpr auto kPinned = "buffers for transfers are Convoy's own";
constexpr auto kEngine = "it only controls DeepSpeed's engine";
constexpr auto kCompressed = "values are never sent or kept in fewer bits than training needs";
constexpr auto kAbsent = "there is no such feature; remove it";

void add(std::vector<PeerKey>& keys, const std::string& section,
         const std::vector<std::string>& names, PeerAction action, const std::string& why = {},
         const std::vector<std::string>& harmless = {}) {
  for (const std::string& name : names)
    keys.push_back({.path = section + name, .action = action, .why = why, .harmless = harmless});
}

void add_zero(std::vector<PeerKey>& keys) {
  using enum PeerAction;
  const std::string zero = "zero_optimization.";
  keys.push_back({.path = "zero_optimization"});
  add(keys, zero,
      {"stage", "cpu_offload", "cpu_offload_param", "cpu_offload_use_pin_memory",
       "stage3_param_persistence_threshold", "stage3_gather_fp16_weights_on_model_save"},
      Read);
  add(keys, zero,
      {"contiguous_gradients",
       "reduce_scatter",
       "reduce_bucket_size",
       "allgather_partitions",
       "allgather_bucket_size",
       "overlap_comm",
       "sub_group_size",
       "round_robin_gradients",
       "use_multi_rank_bucket_allreduce",
       "parameter_alignment",
       "stage3_prefetch_bucket_size",
       "stage3_max_live_parameters",
       "stage3_max_reuse_distance",
       "stage3_model_persistence_threshold",
       "stage3_module_granularity_threshold",
       "stage3_use_all_reduce_for_fetch_params",
       "stage3_allgather_sequential",
       "prefetch_bucket_size",
       "max_live_parameters",
       "max_reuse_distance"},
      NoEffect, kBuckets);
  add(keys, zero,
      {"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save",
       "load_from_fp32_weights", "elastic_checkpoint", "pipeline_loading_checkpoint"},
      NoEffect, kOwnCheckpoints);
  add(keys, zero,
      {"ignore_unused_parameters", "legacy_stage1", "memory_efficient_linear",
       "override_module_apply", "log_trace_cache_warnings", "enable_sanity_checks",
       "save_muon_momentum_buffer_in_memory", "leaf_module.*", "compute_grad_norm"},
      NoEffect, kEngine);
  add(keys, zero, {"zero_hpz_partition_size"}, NoEffect,
      "parallel.shard_over: node shares the state within each node", {"1"});
  add(keys, zero,
      {"zero_quantized_weights", "zero_quantized_nontrainable_weights", "zero_quantized_gradients"},
      Refuse, kCompressed, {"false"});
  add(keys, zero, {"zenflow.*", "mics_shard_size", "mics_hierarchical_params_gather"}, Refuse,
      kAbsent, {"-1", "false"});
  for (const std::string offload : {"offload_optimizer.", "offload_param."}) {
    add(keys, zero + offload, {"device"}, Read);
    add(keys, zero + offload, {"nvme_path"}, NoEffect, "offload to disk is not supported");
    add(keys, zero + offload,
        {"buffer_count", "buffer_size", "pin_memory", "pipeline_read", "pipeline_write", "pipeline",
         "fast_init", "max_in_cpu", "cpuadam_cores_perc"},
        NoEffect, kPinned);
    add(keys, zero + offload, {"super_offload"}, Refuse, kAbsent, {"false"});
  }
  add(keys, zero + "offload_optimizer.", {"ratio"}, Refuse,
      "optimizer states are offloaded as a whole", {"1", "1.0"});
  add(keys, zero + "aio.",
      {"block_size", "queue_depth", "thread_count", "single_submit", "overlap_events"}, NoEffect,
      "offload to disk is not supported");
}

void add_numerics(std::vector<PeerKey>& keys) {
  using enum PeerAction;
  add(keys, "fp16.", {"enabled"}, Read);
  add(keys, "fp16.",
      {"auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
       "consecutive_hysteresis", "min_loss_scale", "fp16_master_weights_and_grads"},
      NoEffect, kNoFp16);
  for (const std::string bf16 : {"bf16.", "bfloat16."}) {
    add(keys, bf16, {"enabled"}, Read);
    add(keys, bf16, {"immediate_grad_update", "check_grad_overflow", "check_overflow"}, NoEffect,
        kEngine);
    add(keys, bf16, {"bf16_master_weights_and_grads", "bf16_optimizer_states"}, Refuse,
        "trained weights keep an fp32 master, gradients are summed in fp32", {"false"});
  }
  add(keys, "amp.", {"enabled"}, Refuse, "use bf16", {"false"});
  add(keys, "amp.", {"opt_level", "pretrain"}, NoEffect, kNoFp16);
  add(keys, "torch_autocast.", {"enabled"}, Refuse, "bf16.enabled: true computes in bf16",
      {"false"});
  add(keys, "torch_autocast.", {"dtype", "lower_precision_safe_modules"}, NoEffect,
      "bf16.enabled decides");
  add(keys, "",
      {"communication_data_type", "seq_parallel_communication_data_type", "prescale_gradients",
       "gradient_predivide_factor", "sparse_gradients", "fp32_allreduce", "ddp_bf16"},
      NoEffect, kExactSums, {"fp32", "float32", "false", "1", "1.0"});
  add(keys, "data_types.", {"grad_accum_dtype"}, NoEffect, kExactSums, {"fp32", "float32"});
  add(keys, "data_types.", {"param_dtype", "buffer_dtype", "keep_in_fp32_modules"}, NoEffect,
      "model.dtype decides");
  add(keys, "", {"gradient_allreduce_op"}, Refuse,
      "gradients are averaged over all supervised tokens of a step", {"mean"});
}

void add_optimisation(std::vector<PeerKey>& keys) {
  using enum PeerAction;
  add(keys, "",
      {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
       "gradient_clipping"},
      Read);
  add(keys, "optimizer.", {"type"}, Read);
  add(keys, "optimizer.", {"legacy_fusion"}, NoEffect, kEngine);
  add(keys, "optimizer.params.", {"lr", "betas", "eps", "weight_decay", "adam_w_mode"}, Read);
  add(keys, "optimizer.params.", {"torch_adam", "fused", "foreach", "fp32_optimizer_states"},
      NoEffect, "there is one AdamW, fused, with fp32 states");
  add(keys, "optimizer.params.", {"max_grad_norm"}, NoEffect,
      "it has no effect in DeepSpeed either: gradient_clipping clips", {"0", "0.0"});
  add(keys, "optimizer.params.", {"bias_correction"}, Refuse, "AdamW corrects the bias", {"true"});
  add(keys, "optimizer.params.", {"amsgrad", "maximize"}, Refuse, kAbsent, {"false"});
  // Parameters of optimizers that are refused by name.
  add(keys, "optimizer.params.",
      {"freeze_step", "cuda_aware", "comm_backend_name", "max_coeff", "min_coeff", "coeff_beta",
       "factor_max", "factor_min", "factor_threshold", "var_freeze_step", "var_update_scaler",
       "local_step_scaler", "local_step_clipper", "momentum", "muon_lr", "adam_lr", "ns_method",
       "nesterov"},
      Read);
  add(keys, "scheduler.", {"type"}, Read);
  add(keys, "scheduler.params.",
      {"warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type", "total_num_steps",
       "warmup_min_ratio", "cos_min_ratio"},
      Read);
  add(keys, "scheduler.params.", {"last_batch_iteration"}, Refuse,
      "use --resume to continue a run; it keeps its own step count", {"-1"});
  // Parameters of schedules that are refused by name.
  add(keys, "scheduler.params.",
      {"lr_range_test_min_lr", "lr_range_test_step_size", "lr_range_test_step_rate",
       "lr_range_test_staircase", "cycle_min_lr", "cycle_max_lr", "decay_lr_rate",
       "cycle_first_step_size", "cycle_second_step_size", "cycle_first_stair_count",
       "cycle_second_stair_count", "decay_step_size", "cycle_momentum", "cycle_min_mom",
       "cycle_max_mom", "decay_mom_rate"},
      Read);
  add(keys, "activation_checkpointing.", {"cpu_checkpointing"}, Read);
  add(keys, "activation_checkpointing.",
      {"partition_activations", "contiguous_memory_optimization", "synchronize_checkpoint_boundary",
       "profile", "number_checkpoints"},
      NoEffect, "train.gradient_checkpointing decides whether blocks are recomputed");
}

void add_rest(std::vector<PeerKey>& keys) {
  using enum PeerAction;
  add(keys, "",
      {"steps_per_print", "wall_clock_breakdown", "memory_breakdown", "dump_state", "log_level",
       "tensorboard.*", "wandb.*", "comet.*", "csv_monitor.*", "comms_logger.*",
       "flops_profiler.*"},
      NoEffect, kOwnLog, {"false"});
  add(keys, "checkpoint.", {"load_universal"}, Refuse,
      "DeepSpeed's checkpoints are pickles: export the model to safetensors, and give that folder "
      "as model.name",
      {"false"});
  add(keys, "checkpoint.",
      {"tag_validation", "use_node_local_storage", "parallel_write.*", "writer.*",
       "checkpoint_serialization"},
      NoEffect, kOwnCheckpoints);
  add(keys, "nebula.", {"enabled"}, NoEffect, kOwnCheckpoints, {"false"});
  add(keys, "nebula.",
      {"persistent_storage_path", "persistent_time_interval", "num_of_version_in_retention",
       "enable_nebula_load", "load_path"},
      NoEffect, kOwnCheckpoints);
  add(keys, "",
      {"zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "disable_allgather",
       "disable_python_gc", "managed_gradient_accumulation", "dataloader_drop_last",
       "use_data_before_expert_parallelism", "data_parallel_group", "global_rank",
       "vocabulary_size", "allgather_size", "graph_harvesting", "timers.*", "pipeline.*",
       "compile.*", "zero3_init_flag", "steps_per_checkpoint"},
      NoEffect, kEngine);
  add(keys, "aio.",
      {"block_size", "queue_depth", "thread_count", "intra_op_parallelism", "single_submit",
       "overlap_events", "use_gds"},
      NoEffect, "offload to disk is not supported");
  for (const std::string section :
       {"elasticity", "autotuning", "hybrid_engine", "curriculum_learning", "data_efficiency",
        "progressive_layer_drop", "quantize_training", "eigenvalue", "weight_quantization"}) {
    add(keys, section, {".enabled"}, Refuse, kAbsent, {"false"});
    add(keys, section, {".*"}, NoEffect, section + ".enabled is not true");
  }
  add(keys, "", {"sparse_attention.*", "compression_training.*", "moe.*"}, Refuse, kAbsent);
  add(keys, "tensor_parallel.", {"autotp_size"}, Refuse, kAbsent, {"0", "1"});
  add(keys, "", {"sequence_parallel_size"}, Refuse, kAbsent, {"1"});
}

}  // namespace

const std::vector<PeerKey>& deepspeed_keys() {
  static const std::vector<PeerKey> keys = [] {
    std::vector<PeerKey> all;
    add_optimisation(all);
    add_numerics(all);
    add_zero(all);
    add_rest(all);
    return all;
  }();
  return keys;
}

}  // namespace convoy::settings
