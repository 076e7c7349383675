// SPDX-License-Identifier: Apache-2.0
//
// The optimizer, its schedule, and when a run evaluates, saves and logs.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/metric_settings.h"
#include "convoy/core/settings/warmup_settings.h"

namespace convoy::settings {

using config::AutoOr;

struct OptimizerSettings {
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  std::string optimizer_state_dtype = "auto";
  std::string master_weights = "fp32";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("adam_beta1", adam_beta1, "first moment decay").at_least(0).at_most(0.999999);
    visit("adam_beta2", adam_beta2, "second moment decay").at_least(0).at_most(0.9999999);
    visit("adam_epsilon", adam_epsilon, "added to the root of the second moment").above(0);
    visit(
        "optimizer_state_dtype", optimizer_state_dtype,
        "moments: fp32; bf16 with stochastic rounding; int8 as in bitsandbytes; auto = as in optim")
        .one_of({"auto", "fp32", "bf16", "int8"});
    visit("master_weights", master_weights,
          "master copies of trained bf16 weights: fp32, or none with stochastic rounding")
        .one_of({"fp32", "none"});
  }
};

struct ScheduleSettings {
  std::string lr_scheduler_type = "cosine";
  double warmup_ratio = 0.06;
  double warmup_steps = 0;  // below 1: a ratio (transformers 5)
  double num_cycles = -1;   // below 0: the schedule's own default
  double lr_end = 1e-7;
  double power = 1.0;
  double min_lr_ratio = 0.0;
  double decay_ratio = 0.1;
  double warmup_epochs = 0;
  double min_lr = 1e-6;
  WarmupSettings warmup;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("lr_scheduler_type", lr_scheduler_type, "learning-rate schedule")
        .one_of({"linear", "cosine", "cosine_with_restarts", "polynomial", "constant",
                 "constant_with_warmup", "inverse_sqrt", "cosine_with_min_lr",
                 "warmup_stable_decay", "cosine_by_epoch", "warmup_lr", "warmup_decay_lr",
                 "warmup_cosine_lr"})
        .alias("scheduler");
    visit("warmup_ratio", warmup_ratio, "warm-up as a share of all steps, rounded up")
        .at_least(0)
        .at_most(1);
    visit("warmup_steps", warmup_steps,
          "warm-up in steps; overrides warmup_ratio; below 1 it is a ratio")
        .at_least(0)
        .alias("num_warmup_steps");
    visit("num_cycles", num_cycles,
          "cosine cycles; -1 = the schedule's default (0.5, or 1 with restarts)")
        .at_least(-1)
        .alias_at_root("train.lr_scheduler_kwargs.num_cycles");
    visit("lr_end", lr_end, "end of the polynomial schedule")
        .at_least(0)
        .alias_at_root("train.lr_scheduler_kwargs.lr_end");
    visit("power", power, "power of the polynomial schedule")
        .above(0)
        .alias_at_root("train.lr_scheduler_kwargs.power");
    visit("min_lr_ratio", min_lr_ratio,
          "floor of cosine, cosine_with_min_lr, warmup_stable_decay and warmup_cosine_lr, as a "
          "share of "
          "the peak")
        .at_least(0)
        .at_most(1)
        .alias("cosine_min_lr_ratio")
        .alias_at_root("train.lr_scheduler_kwargs.min_lr_rate");
    visit("decay_ratio", decay_ratio, "share of all steps that warmup_stable_decay spends decaying")
        .at_least(0)
        .at_most(1);
    visit("warmup_epochs", warmup_epochs,
          "cosine_by_epoch: epochs of warm-up, the first at learning_rate / warmup_epochs")
        .at_least(0);
    visit("min_lr", min_lr, "cosine_by_epoch: where the cosine ends").at_least(0);
    visit("warmup", warmup, "the warm-up of DeepSpeed's schedules").flat();
  }
};

struct TrainingSettings {
  double epochs = 3;
  int64_t steps = 0;  // above 0: beats epochs
  double learning_rate = 2e-4;
  double weight_decay = 0.01;
  double max_grad_norm = 1.0;
  std::string optim = "adamw_torch";
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  AutoOr<int64_t> batch_size = 4;
  AutoOr<int64_t> grad_accum = 0;  // 0: 1, or what global_batch_size asks for
  bool auto_find_batch_size = false;
  int64_t target_tokens_per_device_step = 16384;
  int64_t global_batch_size = 0;  // 0: batch_size x ranks x grad_accum
  std::string lr_scaling = "none";
  int64_t lr_reference_batch = 0;
  bool packing = false;
  AutoOr<bool> bf16;
  bool fp16 = false;
  bool deterministic = false;
  std::string gradient_checkpointing = "false";
  std::string activation_offload = "none";
  std::string attention = "auto";
  double neftune_noise_alpha = 0;
  int64_t logging_steps = 1;
  std::string eval_strategy = "steps";
  int64_t eval_steps = 0;       // 0: at the end of each epoch
  int64_t eval_batch_size = 0;  // 0: batch_size
  std::string save_strategy = "steps";
  int64_t save_steps = 0;  // 0: at the end of each epoch
  bool async_save = false;
  int64_t save_total_limit = 3;
  bool load_best_model_at_end = true;
  std::string metric_for_best_model = "eval_loss";
  std::string greater_is_better = "auto";
  int64_t early_stopping_patience = 0;
  double early_stopping_threshold = 0;
  std::string output_dir;
  std::string resume_from_checkpoint = "auto";
  bool final_eval = true;
  bool export_model = true;
  bool export_text_only = false;
  GeneratingEvaluationSettings generating_evaluation;

  // Call the next two functions only after recipes/memory/auto_batch has replaced `auto`. Otherwise
  // they throw.
  int64_t batch_rows() const { return batch_size.value.value(); }
  int64_t accumulation() const { return grad_accum.value.value(); }
  // The type that bf16 and fp16 ask for: bf16, fp32, or auto.
  std::string wished_dtype() const {
    if (!fp16 && bf16.is_auto()) return "auto";
    return fp16 || *bf16.value ? "bf16" : "fp32";
  }
  int64_t rows_of_evaluation_batch() const {
    return eval_batch_size > 0 ? eval_batch_size : batch_rows();
  }
  bool chooses_batch() const {
    return batch_size.is_auto() || grad_accum.is_auto() || auto_find_batch_size;
  }
  // optimizer_state_dtype with `auto` resolved.
  std::string moment_type() const {
    if (optimizer.optimizer_state_dtype != "auto") return optimizer.optimizer_state_dtype;
    return optim.ends_with("8bit") ? "int8" : "fp32";
  }
  // True for metrics that grow when better: all but losses.
  bool larger_is_better() const {
    return metric_for_best_model != "eval_loss" && metric_for_best_model != "eval_perplexity";
  }
  // metric_for_best_model as evaluations name it: "loss", "rougeL".
  std::string best_metric_name() const { return metric_for_best_model.substr(5); }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("epochs", epochs, "passes over the training rows").above(0).alias("num_train_epochs");
    visit("steps", steps, "optimizer steps; above 0 it overrides epochs")
        .at_least(0)
        .alias("max_steps");
    visit("learning_rate", learning_rate, "peak learning rate").at_least(0).alias("lr");
    visit("weight_decay", weight_decay, "decoupled weight decay; not on biases and norms")
        .at_least(0);
    visit("max_grad_norm", max_grad_norm, "clip the global gradient norm; 0 = off").at_least(0);
    visit("optim", optim,
          "AdamW: _8bit keeps moments in 8 bits; paged_ keeps those of large parameters on the "
          "host, when a GPU trains")
        .one_of({"adamw_torch", "adamw_torch_fused", "adamw", "adamw_8bit", "adamw_bnb_8bit",
                 "paged_adamw_8bit", "paged_adamw_32bit"});
    visit("optimizer", optimizer, "optimizer constants").flat();
    visit("schedule", schedule, "learning-rate schedule").flat();
    visit("batch_size", batch_size,
          "rows (packed: blocks) per micro-batch and rank; auto = the most that fit into memory, "
          "measured, and that leave an epoch 32 steps; on CPUs the fewest that are fast")
        .at_least(1)
        .alias("per_device_train_batch_size");
    visit("grad_accum", grad_accum,
          "micro-batches per optimizer step; 0 = 1, or as global_batch_size requires; auto = that, "
          "or as target_tokens_per_device_step requires")
        .at_least(0)
        .alias("gradient_accumulation_steps");
    visit("auto_find_batch_size", auto_find_batch_size,
          "treat batch_size as the maximum: use fewer rows when memory is short");
    visit("target_tokens_per_device_step", target_tokens_per_device_step,
          "target of grad_accum: auto, in tokens per step and device")
        .at_least(1);
    visit("global_batch_size", global_batch_size,
          "rows (packed: blocks) of a step over all ranks; 0 = batch_size x ranks x grad_accum")
        .at_least(0);
    visit("lr_scaling", lr_scaling,
          "scale learning_rate by global batch / lr_reference_batch: linear, or by its square root")
        .one_of({"none", "linear", "sqrt"});
    visit("lr_reference_batch", lr_reference_batch,
          "global batch that learning_rate was chosen for; lr_scaling needs it")
        .at_least(0);
    visit("packing", packing,
          "fill blocks of max_seq_len with whole rows; attention never crosses rows")
        .alias_at_root("sample_packing")
        .alias_at_root("neat_packing")
        .alias_at_root("packing");
    visit("bf16", bf16,
          "compute in bf16, where trained weights keep an fp32 master; auto = bf16 where it is as "
          "fast "
          "as fp32 on the device: GPUs from compute capability 8.0, CPUs with AVX2");
    visit("fp16", fp16, "for other trainers' files: computes in bf16, which needs no loss scaling");
    visit("deterministic", deterministic,
          "on GPUs, use LibTorch's deterministic algorithms, at a cost in speed; CPUs are always "
          "deterministic")
        .alias("full_determinism");
    visit("gradient_checkpointing", gradient_checkpointing,
          "computed again in backward: nothing (false), norms and activations (selective), each "
          "block from its input (true), the least that fits (auto)")
        .one_of({"false", "selective", "true", "auto"});
    visit("activation_offload", activation_offload,
          "where gradient_checkpointing: true keeps block inputs until backward: on the device, or "
          "in the host's memory")
        .one_of({"none", "cpu"});
    visit("attention", attention,
          "on GPUs, the kernel of attention: LibTorch's FlashAttention-2, or cuDNN's for bf16 and "
          "heads of up to 128 features; auto = flash")
        .one_of({"auto", "flash", "cudnn"});
    visit("neftune_noise_alpha", neftune_noise_alpha,
          "NEFTune (arXiv 2310.05914): uniform noise of alpha / sqrt(tokens of the row x width) on "
          "embeddings while training; 0 = off")
        .at_least(0)
        .alias("neftune_alpha");
    visit("logging_steps", logging_steps, "optimizer steps between log lines").at_least(1);
    visit("eval_strategy", eval_strategy, "when to evaluate")
        .one_of({"no", "steps", "epoch"})
        .alias("evaluation_strategy");
    visit("eval_steps", eval_steps,
          "optimizer steps between evaluations; 0 = at the end of each epoch")
        .at_least(0);
    visit("eval_batch_size", eval_batch_size, "rows per evaluation batch; 0 = batch_size")
        .at_least(0)
        .alias("per_device_eval_batch_size");
    visit("save_strategy", save_strategy, "when to save a checkpoint")
        .one_of({"no", "steps", "epoch"});
    visit("save_steps", save_steps,
          "optimizer steps between checkpoints; 0 = at the end of each epoch")
        .at_least(0);
    visit(
        "async_save", async_save,
        "write the state while the next gradients are computed; the update waits until it is read");
    visit("save_total_limit", save_total_limit, "checkpoints kept beside best and last")
        .at_least(1);
    visit("load_best_model_at_end", load_best_model_at_end,
          "export the best checkpoint instead of the last");
    visit(
        "metric_for_best_model", metric_for_best_model,
        "evaluation metric that decides the best checkpoint; eval_accuracy needs task classify or "
        "pairs, text metrics need predict_with_generate")
        .one_of(best_metric_names());
    visit("greater_is_better", greater_is_better,
          "direction of metric_for_best_model; must match the metric")
        .one_of({"auto", "true", "false"});
    visit("early_stopping_patience", early_stopping_patience,
          "evaluations without improvement before the run ends; 0 = off")
        .at_least(0);
    visit("early_stopping_threshold", early_stopping_threshold,
          "smallest change that counts as better")
        .at_least(0);
    visit("output_dir", output_dir, "run folder; empty = runs/<run_name>-<time>");
    visit("resume_from_checkpoint", resume_from_checkpoint, "auto, never, or a checkpoint folder");
    visit("final_eval", final_eval, "evaluate once more at the end").alias_at_root("final_eval");
    visit("export_model", export_model,
          "write the adapter or the model at the end; false also skips a classifier's test");
    visit("export_text_only", export_text_only,
          "of a checkpoint that also sees: write the text model alone, as a model of its own");
    visit("generating_evaluation", generating_evaluation, "answers of evaluations").flat();
  }
};

}  // namespace convoy::settings
