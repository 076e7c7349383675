// SPDX-License-Identifier: Apache-2.0
//
// The settings tree of `convoy train`, `eval` and everything that reads the same file. Names and
// defaults follow SFT-Play's configuration surface where it has one, and TRL's and PEFT's names
// elsewhere. Plain data: no LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/metric_settings.h"
#include "convoy/core/settings/mix_settings.h"
#include "convoy/core/settings/quantization_settings.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/core/settings/warmup_settings.h"

namespace convoy::settings {

using config::AutoOr;
using config::NameList;

struct ModelSettings {
  std::string name;  // folder in Hugging Face layout, or hub id in the local hub cache
  std::string revision = "main";
  int64_t max_seq_len = 512;
  std::string dtype = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("name", name,
          "model folder in Hugging Face layout, or a hub id found in the local hub cache")
        .winning_alias("local_dir");
    visit("revision", revision, "hub revision looked up in the cache");
    visit("max_seq_len", max_seq_len, "longest row in tokens; longer rows follow data.truncation")
        .at_least(2);
    visit("dtype", dtype, "compute type of the weights; auto = bf16 when train.bf16, else fp32")
        .one_of({"auto", "fp32", "bf16"})
        .alias("bnb_4bit_compute_dtype")
        .alias_at_root("tuning.bnb_4bit_compute_dtype")
        .alias_at_root("tuning.quantization.bnb_4bit_compute_dtype");
  }
};

struct LoraSettings {
  int64_t r = 32;
  double alpha = 64;
  double dropout = 0.05;
  NameList target_modules{{"auto"}};
  NameList exclude_modules;
  std::map<std::string, int64_t> rank_pattern;
  std::map<std::string, double> alpha_pattern;
  std::vector<int64_t> layers_to_transform;
  NameList modules_to_save;
  bool use_rslora = false;
  bool use_dora = false;
  double loraplus_lr_ratio = 0;
  std::string adapter;  // start from this PEFT adapter folder

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("r", r, "rank").at_least(1);
    visit("alpha", alpha, "scaling numerator: alpha/r, or alpha/sqrt(r) with use_rslora")
        .above(0)
        .alias("lora_alpha");
    visit("dropout", dropout, "dropout before A").at_least(0).at_most(0.99).alias("lora_dropout");
    visit("target_modules", target_modules,
          "auto or all-linear (q,k,v,o,gate,up,down projections), a list of name endings, or one "
          "regular expression");
    visit("exclude_modules", exclude_modules,
          "never adapted: a list of name endings, or one regular expression");
    visit("rank_pattern", rank_pattern, "rank by module-name pattern, as in PEFT");
    visit("alpha_pattern", alpha_pattern, "alpha by module-name pattern, as in PEFT");
    visit("layers_to_transform", layers_to_transform,
          "adapt only these layers, counted from 0, as in PEFT; empty = all");
    visit("modules_to_save", modules_to_save, "modules trained whole and stored with the adapter");
    visit("use_rslora", use_rslora, "rank-stabilised scaling (arXiv 2312.03732)");
    visit("use_dora", use_dora, "weight-decomposed adapters (arXiv 2402.09353)");
    visit("loraplus_lr_ratio", loraplus_lr_ratio,
          "LoRA+ (arXiv 2402.12354): B and vectors learn this many times as fast as A; 0 = off")
        .at_least(0)
        .alias_at_root("train.loraplus_lr_ratio")
        .alias_at_root("loraplus_lr_ratio");
    visit("adapter", adapter, "existing PEFT adapter folder to continue from");
  }
};

struct TuningSettings {
  std::string mode = "lora";
  std::string backend = "native";
  LoraSettings lora;
  QuantizationSettings quantization;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("mode", mode, "which parameters train; qlora: adapters over weights in 4 bits")
        .one_of({"lora", "qlora", "full"});
    visit("backend", backend, "recorded in checkpoints; one native engine computes for all of them")
        .one_of({"native", "bnb", "unsloth"});
    visit("lora", lora, "low-rank adapters");
    visit("quantization", quantization, "quantisation of frozen weights");
  }
};

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
  bool bf16 = true;
  bool fp16 = false;
  bool deterministic = false;
  bool gradient_checkpointing = false;
  std::string activation_offload = "none";
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
  GeneratingEvaluationSettings generating_evaluation;

  // The resolved numbers. recipes/auto_batch replaces `auto` before these are called; they throw
  // otherwise.
  int64_t batch_rows() const { return batch_size.value.value(); }
  int64_t accumulation() const { return grad_accum.value.value(); }
  bool computes_in_bf16() const { return bf16 || fp16; }
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
          "measured, and that leave an epoch 32 steps")
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
    visit("bf16", bf16, "compute in bf16; trained weights keep an fp32 master");
    visit("fp16", fp16, "for other trainers' files: computes in bf16, which needs no loss scaling");
    visit("deterministic", deterministic,
          "on GPUs, use LibTorch's deterministic algorithms, at a cost in speed; CPUs are always "
          "deterministic")
        .alias("full_determinism");
    visit("gradient_checkpointing", gradient_checkpointing, "recompute each block in backward");
    visit("activation_offload", activation_offload,
          "where gradient_checkpointing keeps block inputs until backward: on the device, or in "
          "the host's memory")
        .one_of({"none", "cpu"});
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
    visit("async_save", async_save,
          "copy the state and go on training while it is written; takes the copy's memory");
    visit("save_total_limit", save_total_limit, "checkpoints kept beside best and last")
        .at_least(1);
    visit("load_best_model_at_end", load_best_model_at_end,
          "export the best checkpoint instead of the last");
    visit("metric_for_best_model", metric_for_best_model,
          "evaluation metric that decides the best checkpoint; eval_accuracy needs task classify, "
          "text metrics need predict_with_generate")
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
    visit("generating_evaluation", generating_evaluation, "answers of evaluations").flat();
  }
};

struct SplitSettings {
  AutoOr<double> train_ratio;
  AutoOr<double> val_ratio;
  double test_ratio = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("train_ratio", train_ratio, "share of rows for training; auto = all that is left")
        .at_least(0)
        .at_most(1);
    visit("val_ratio", val_ratio,
          "share for evaluation during training; auto = a tenth, at most 500 rows, none where "
          "nothing is evaluated; all that is left where train_ratio is given")
        .at_least(0)
        .at_most(1);
    visit("test_ratio", test_ratio,
          "share kept for `convoy eval --split test`, which training never reads")
        .at_least(0)
        .at_most(1);
  }
};

struct DataSettings {
  std::string train_path;
  std::string val_path;
  std::string test_path;
  SplitSettings split;
  std::string schema = "auto";
  std::string supervise = "auto";
  NameList roles_to_train{{"assistant"}};
  std::string train_on_eos = "turn";
  std::string empty_answers = "skip";
  std::string truncation = "auto";
  std::string template_path;
  config::JsonMap template_kwargs;
  std::string system_prompt;
  int64_t max_field_chars = 0;
  std::string bad_rows = "error";
  std::string cache_dir;
  std::string text_field = "text";
  std::string text_rows = "document";
  bool shuffle = true;
  bool balance_tokens = true;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("train_path", train_path,
          "training rows: a file such as .jsonl, .csv or .parquet, a folder or pattern of them, a "
          "data set of the local hub cache")
        .alias("path");
    visit("val_path", val_path, "evaluation rows; empty and no val share: none");
    visit("test_path", test_path, "test rows for `convoy eval`");
    visit("split", split,
          "used when only train_path is given and val_path and test_path are not; shares that are "
          "given sum to 1");
    visit("schema", schema, "row schema; auto = by the row's keys")
        .one_of({"auto", "messages", "sharegpt", "alpaca", "prompt_completion", "triple",
                 "rendered", "text", "loose"})
        .alias("format");
    visit("supervise", supervise,
          "which tokens carry loss; auto = assistant turns, completions, whole texts")
        .one_of({"auto", "assistant", "last", "all"})
        .alias_at_root("train_on_inputs")
        .alias_at_root("train_on_prompt")
        .alias_at_root("mask_history");
    visit("roles_to_train", roles_to_train, "chat rows: roles whose turns carry loss")
        .alias_at_root("roles_to_train");
    visit("train_on_eos", train_on_eos,
          "chat rows: which tokens that close turns carry loss: those of learnt turns, of all "
          "turns, the row's last, or none")
        .one_of({"turn", "all", "last", "none"})
        .alias_at_root("train_on_eos");
    visit("empty_answers", empty_answers,
          "answers and completions without text: skip = no loss, with a warning; learn = loss on "
          "the token that ends them; error = a bad row")
        .one_of({"skip", "learn", "error"});
    visit(
        "truncation", truncation,
        "rows longer than max_seq_len; split = cut into rows of that length, every token is kept; "
        "keep_end keeps the answer; auto = split for task pretrain, keep_start for others")
        .one_of({"auto", "split", "keep_start", "keep_end", "drop", "error"})
        .alias("truncation_side")
        .alias_at_root("truncation_side");
    visit("template_path", template_path,
          "chat template file (Jinja) that replaces the model's own");
    visit("template_kwargs", template_kwargs,
          "variables for the chat template; a row's chat_template_kwargs override them")
        .alias("chat_template_kwargs");
    visit("system_prompt", system_prompt,
          "system turn added to chat rows that have none; empty = none");
    visit("max_field_chars", max_field_chars,
          "cut fields longer than this, with a warning; 0 = off")
        .at_least(0);
    visit("bad_rows", bad_rows, "unreadable rows: stop, or count and list them")
        .one_of({"error", "skip"});
    visit("cache_dir", cache_dir, "token cache; empty = ~/.cache/convoy/tokens; none = off");
    visit("text_field", text_field, "column of plain-text rows");
    visit("text_rows", text_rows, "rows of a .txt file: the whole of it, or each line")
        .one_of({"document", "line"});
    visit("shuffle", shuffle, "seeded shuffle of rows, new in each epoch");
    visit("balance_tokens", balance_tokens,
          "deal the rows of a step so that micro-batches have equal numbers of tokens");
  }
};

struct LoggingSettings {
  NameList backend{{"tensorboard"}};
  int64_t log_interval = 1;
  std::string profile_steps;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("backend", backend, "tensorboard, none")
        .alias("report_to")
        .alias_at_root("train.report_to");
    visit("log_interval", log_interval, "steps between events in events.jsonl").at_least(1);
    visit("profile_steps", profile_steps,
          "steps that each rank traces for `convoy profile report`: 10:15 (both included), or a "
          "number of steps after the first two; empty = none")
        .alias("trace_steps");
  }
};

struct GenerationSettings {
  int64_t max_new_tokens = 200;
  double temperature = 0.2;
  double top_p = 0.9;
  int64_t top_k = 0;
  int64_t batch_size = 16;
  NameList stop;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("max_new_tokens", max_new_tokens, "longest answer in tokens").at_least(1);
    visit("temperature", temperature, "0 = greedy").at_least(0);
    visit("top_p", top_p, "nucleus share").above(0).at_most(1);
    visit("top_k", top_k, "most likely tokens kept; 0 = all").at_least(0);
    visit("batch_size", batch_size, "prompts generated together").at_least(1);
    visit("stop", stop, "strings that end an answer");
  }
};

struct ParallelSettings {
  std::string strategy = "auto";
  int64_t bucket_mb = 25;
  std::string gradient_dtype = "fp32";
  int64_t replicas = 0;
  int64_t check_weights_every = 100;
  int64_t keep_whole_below = 100'000;
  std::string shard_over = "all";
  bool reshard_after_forward = true;
  std::string offload = "none";
  int64_t timeout_s = 1800;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("strategy", strategy, strategy_help()).one_of(strategy_words());
    visit("bucket_mb", bucket_mb, "gradient megabytes per all-reduce")
        .at_least(1)
        .alias_at_root("train.ddp_bucket_cap_mb");
    visit("gradient_dtype", gradient_dtype,
          "type in which ddp sends gradients; bf16 halves the bytes and rounds them")
        .one_of({"fp32", "bf16"});
    visit("replicas", replicas, "dp: replicas of the model; 0 = one for each GPU, one on CPUs")
        .at_least(0);
    visit("check_weights_every", check_weights_every,
          "steps between comparisons of the ranks' trained weights; 0 = never")
        .at_least(0);
    visit("keep_whole_below", keep_whole_below,
          "zero3 does not shard a block with fewer parameters than this")
        .at_least(0);
    visit("shard_over", shard_over,
          "zero1 to zero3: shard the training state over all ranks, or within each node (hybrid "
          "shard)")
        .one_of({"all", "node"});
    visit("reshard_after_forward", reshard_after_forward,
          "zero3 frees a block between forward and backward, and gathers it twice");
    visit(
        "offload", offload,
        "state that zero1 to zero3 on GPUs keep on the host: optimizer states, or also parameters")
        .one_of({"none", "optimizer", "parameters"});
    visit("timeout_s", timeout_s, "time limit of a collective, in seconds").at_least(1);
  }
};

struct ClassifySettings {
  std::string data_dir;
  double val_ratio = 0.1;
  std::string pooling = "flatten";
  std::vector<int64_t> widths = {64, 128, 256};
  std::vector<int64_t> kernel_sizes = {5, 5, 3};
  std::string encoder_path;
  std::string freeze_encoder = "auto";
  std::vector<int64_t> hidden_dims = {512};
  double dropout = 0.1;
  double label_smoothing = 0.1;
  int64_t num_workers = 4;

  bool freezes_encoder() const {
    return freeze_encoder == "true" || (freeze_encoder == "auto" && !encoder_path.empty());
  }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("data_dir", data_dir, "folder that holds train and test, in the layout of UCI HAR");
    visit("val_ratio", val_ratio,
          "share of the training windows held out for validation, by subject where they are known; "
          "0 = none; a folder val overrides it")
        .at_least(0)
        .at_most(0.9);
    visit("pooling", pooling,
          "how channels are combined: one encoder processes each, and their features are "
          "concatenated (flatten), averaged, or the first's; joint: it processes all together")
        .one_of({"flatten", "average", "first", "joint"})
        .alias("mode");
    visit("widths", widths, "channels out of each stage of the encoder").at_least(1);
    visit("kernel_sizes", kernel_sizes, "kernel size of each stage in rows, odd").at_least(1);
    visit("encoder_path", encoder_path,
          "encoder to start from: a run's model folder, one of its checkpoints, or a .safetensors "
          "file");
    visit("freeze_encoder", freeze_encoder,
          "do not train the encoder; auto = when encoder_path is given")
        .one_of({"auto", "true", "false"});
    visit("hidden_dims", hidden_dims, "widths of the head's layers before the last").at_least(1);
    visit("dropout", dropout, "dropout behind each of them").at_least(0).at_most(0.99);
    visit("label_smoothing", label_smoothing, "share of each target spread over all classes")
        .at_least(0)
        .at_most(0.99);
    visit("num_workers", num_workers, "files that each rank reads at a time; 0 = 1").at_least(0);
  }
};

struct TrainSettings {
  int64_t seed = 42;
  std::string run_name;
  std::string task = "sft";
  ModelSettings model;
  TuningSettings tuning;
  TrainingSettings train;
  DataSettings data;
  config::JsonList datasets;  // mixed_datasets()
  MixSettings mix;
  LoggingSettings logging;
  GenerationSettings generation;
  ClassifySettings classify;
  ParallelSettings parallel;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("seed", seed, "seed of shuffle, dropout, adapter initialisation and sampling")
        .at_least(0);
    visit("run_name", run_name, "name of the run; empty = name of the config file")
        .alias_at_root("train.run_name");
    visit("task", task,
          "sft: conversations and completions; pretrain: plain text; mixed: the weighted "
          "data sets of `datasets`; classify: sensor windows")
        .one_of({"sft", "pretrain", "mixed", "classify"})
        .alias("mode")
        .alias("task_mode");
    visit("model", model, "the base model");
    visit("tuning", tuning, "what is trained");
    visit("train", train, "optimisation, cadence, output");
    visit("data", data, "rows");
    visit("datasets", datasets, kDatasetsHelp);
    visit("mix", mix, "how the data sets of task mixed share an epoch");
    visit("logging", logging, "where figures go");
    visit("generation", generation, "sampling for eval --generate and generate").alias("gen");
    visit("classify", classify, "classes of sensor windows: data, network, loss");
    visit("parallel", parallel, "how ranks share the work");
  }
};

}  // namespace convoy::settings
