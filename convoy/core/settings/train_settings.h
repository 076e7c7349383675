// SPDX-License-Identifier: Apache-2.0
//
// The settings tree of `convoy train`, `eval` and everything that reads the same file. Names and
// defaults follow SFT-Play's configuration surface where it has one, and TRL's and PEFT's names
// elsewhere. Plain data: no LibTorch.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/classify_settings.h"
#include "convoy/core/settings/data_settings.h"
#include "convoy/core/settings/distill_settings.h"
#include "convoy/core/settings/harness_settings.h"
#include "convoy/core/settings/mix_settings.h"
#include "convoy/core/settings/policy_settings.h"
#include "convoy/core/settings/preference_settings.h"
#include "convoy/core/settings/rejection_settings.h"
#include "convoy/core/settings/reward_settings.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/core/settings/tasks.h"
#include "convoy/core/settings/training_settings.h"
#include "convoy/core/settings/tuning_settings.h"

namespace convoy::settings {

struct LoggingSettings {
  NameList backend{{"tensorboard"}};
  std::string project;
  int64_t log_interval = 1;
  std::string profile_steps;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("backend", backend,
          "programs that get the figures: tensorboard, trackio, wandb (an offline run), none, or "
          "all: these three, whether they are installed or not")
        .alias("report_to")
        .alias_at_root("train.report_to");
    visit("project", project,
          "project of trackio and wandb, kept when the run is resumed; empty = TRACKIO_PROJECT, "
          "WANDB_PROJECT, else convoy")
        .alias_at_root("train.project");
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
  int64_t prefetch_blocks = 0;
  std::string offload = "none";
  int64_t timeout_s = 1800;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("strategy", strategy, strategy_help()).one_of(strategy_words());
    visit("bucket_mb", bucket_mb, "gradient megabytes per all-reduce")
        .at_least(1)
        .alias_at_root("train.ddp_bucket_cap_mb");
    visit("gradient_dtype", gradient_dtype,
          "type in which ranks send gradients; bf16 halves the bytes and rounds them")
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
    visit("prefetch_blocks", prefetch_blocks,
          "blocks that zero3 gathers while one computes; 0 = 1 on CPUs, 2 on GPUs")
        .at_least(0);
    visit(
        "offload", offload,
        "state that zero1 to zero3 on GPUs keep on the host: optimizer states, or also parameters")
        .one_of({"none", "optimizer", "parameters"});
    visit("timeout_s", timeout_s, "time limit of a collective, in seconds").at_least(1);
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
  config::JsonList datasets;  // read by mixed_datasets()
  MixSettings mix;
  LoggingSettings logging;
  GenerationSettings generation;
  HarnessSettings eval;
  ClassifySettings classify;
  PreferenceSettings preference;
  RejectionSettings rejection;
  RolloutSettings rollout;
  config::JsonList reward;  // read by rewards_of()
  PolicySettings policy;
  DistillSettings distill;
  ParallelSettings parallel;

  // The requested type of matrix products: bf16, fp32, or auto (sizing/compute_dtype.h then
  // chooses).
  std::string wished_dtype() const {
    return model.dtype != "auto" ? model.dtype : train.wished_dtype();
  }

  const TaskFacts& task_facts() const { return task_named(task); }
  // True when the loss compares the model with a reference. Task dpo has losses with and without a
  // reference; task kto always has a reference.
  bool has_reference() const {
    return task_facts().data == TaskData::Judged ||
           (task_facts().chooses_loss && pair_loss_named(preference.loss).has_reference);
  }
  // True when each row of a step is also scored with the answer of another row, as in KTO.
  bool estimates_divergence() const {
    return task_facts().data == TaskData::Judged &&
           unpaired_loss_named(preference.loss).estimates_divergence;
  }

  // Optimizer steps that learn from the same items of the data.
  int64_t steps_per_batch() const { return learns_rewards(task_facts()) ? policy.inner_steps : 1; }
  // Whether rollouts are measured from another model in memory, beside the one that trains. An
  // adapter's base is in memory already.
  bool keeps_reference() const {
    return learns_rewards(task_facts()) && policy.kl_beta > 0 &&
           (policy.reference != "base" || tuning.mode == "full");
  }

  bool has_served_teacher() const { return task_facts().has_teacher && distill.is_served(); }
  bool has_teacher_in_memory() const { return task_facts().has_teacher && !distill.is_served(); }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("seed", seed, "seed of shuffle, dropout, adapter initialisation and sampling")
        .at_least(0);
    visit("run_name", run_name, "name of the run; empty = name of the config file")
        .alias_at_root("train.run_name");
    visit("task", task, task_help()).one_of(task_words()).alias("mode").alias("task_mode");
    visit("model", model, "the base model");
    visit("tuning", tuning, "what is trained");
    visit("train", train, "optimisation, cadence, output");
    visit("data", data, "rows");
    visit("datasets", datasets, kDatasetsHelp);
    visit("mix", mix, "how the data sets of task mixed share an epoch");
    visit("logging", logging, "where figures go");
    visit("generation", generation, "sampling for eval --generate and generate").alias("gen");
    visit("eval", eval, "measure by lm-evaluation-harness before and after the training");
    visit("classify", classify, "classes of sensor windows: data, network, loss");
    visit("preference", preference, "learning from preferences: loss, reference");
    visit("rejection", rejection, "learning from own right solutions: rounds, samples, prompts");
    visit("rollout", rollout,
          "tasks grpo and distill: the texts of the model that a step learns from");
    visit("reward", reward, kRewardHelp);
    visit("policy", policy, "task grpo: loss, advantages, reference");
    visit("distill", distill, "task distill: teacher, divergence");
    visit("parallel", parallel, "how ranks share the work");
  }
};

}  // namespace convoy::settings
