// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/deepspeed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/hjson.h"

namespace convoy::settings {
namespace {

using config::Node;
using config::NodeKind;

const std::string kZero = "zero_optimization.";
const std::string kSchedule = "scheduler.params.";
const std::string kOptimizer = "optimizer.params.";

class DeepSpeedReader {
 public:
  DeepSpeedReader(const Node& root, config::Imported& imported, config::ErrorList& errors)
      : file_(root, "DeepSpeed", deepspeed_keys(), imported, errors),
        imported_(imported),
        errors_(errors) {}

  DeepSpeedFacts read() {
    file_.check_keys();
    read_precision();
    read_stage();
    const int64_t num_errors = errors_.count();
    read_batch();
    if (errors_.count() > num_errors) {
      facts_.train_batch_size.reset();
      facts_.open_batch.reset();
    }
    read_optimizer();
    read_schedule();
    if (const std::string key = "activation_checkpointing.cpu_checkpointing";
        file_.flag(key).value_or(false)) {
      file_.give(key, "train.activation_offload", "cpu");
      file_.give(key, "train.gradient_checkpointing", "true");
    }
    if (file_.number("gradient_clipping"))
      file_.give_as_written("gradient_clipping", "train.max_grad_norm");
    return facts_;
  }

 private:
  void give(const std::string& path, const std::string& setting) {
    file_.give_as_written(path, setting);
  }

  void give_number(const std::string& path, const std::string& setting) {
    if (file_.number(path)) give(path, setting);
  }

  // The value just given, for later checks.
  config::ImportedValue last() const { return imported_.values.back(); }

  void read_precision() {
    for (const std::string key : {"bf16.enabled", "bfloat16.enabled"})
      if (const std::optional<bool> bf16 = file_.flag(key))
        give_precision(key, "train.bf16", *bf16);
    if (!file_.flag("fp16.enabled").value_or(false)) return;
    give_precision("fp16.enabled", "train.fp16", true);
    file_.notice("fp16.enabled", fmt::format("fp16.enabled: {}", kFp16IsBf16));
  }

  void give_precision(const std::string& path, const std::string& setting, bool enabled) {
    file_.give_weakly(path, setting, enabled ? "true" : "false");
    facts_.precision = last();
  }

  void read_stage() {
    const Node* const zero = file_.find("zero_optimization");
    int64_t stage = 0;
    if (zero != nullptr && zero->kind != NodeKind::Map) {
      if (!file_.flag("zero_optimization")) return;
      stage = *file_.flag("zero_optimization") ? 1 : 0;
      file_.give("zero_optimization", "parallel.strategy", stage == 1 ? "zero1" : "ddp");
      return;
    }
    if (const Node* const open = file_.written(kZero + "stage");
        open != nullptr && file_.find(kZero + "stage") == nullptr)
      file_.refuse(kZero + "stage", "zero_optimization.stage: wanted 0 to 3, found \"auto\"");
    if (const std::optional<int64_t> given = file_.integer(kZero + "stage")) {
      stage = *given;
      if (stage < 0 || stage > 3)
        return file_.refuse(kZero + "stage",
                            fmt::format("zero_optimization.stage: wanted 0 to 3, found {}", stage));
      file_.give(kZero + "stage", "parallel.strategy",
                 stage == 0 ? "ddp" : fmt::format("zero{}", stage));
    }
    read_offload(stage);
    read_persistence(stage);
    read_deprecated();
  }

  // The key that requests offloading to the CPU; empty when none does.
  std::string asks_offload(const std::string& section, const std::string& deprecated) {
    if (const auto device = file_.word(section + ".device")) {
      if (*device == "cpu") return section + ".device";
      if (*device == "nvme")
        file_.refuse(section + ".device", section + ".device: nvme is not supported",
                     "use cpu for host memory; offload to disk is not supported");
      else if (*device != "none")
        file_.refuse(section + ".device",
                     fmt::format("{}.device: wanted none or cpu, found {}", section, *device));
    }
    return file_.flag(deprecated).value_or(false) ? deprecated : "";
  }

  void read_offload(int64_t stage) {
    const std::string optimizer = asks_offload(kZero + "offload_optimizer", kZero + "cpu_offload");
    const std::string parameters =
        asks_offload(kZero + "offload_param", kZero + "cpu_offload_param");
    for (const std::string& asked : {optimizer, parameters})
      if (!asked.empty() && stage == 0)
        return file_.refuse(asked, asked + " needs zero_optimization.stage 1, 2 or 3");
    if (!parameters.empty() && stage != 3)
      return file_.refuse(parameters, parameters + " needs zero_optimization.stage 3");
    if (!parameters.empty()) {
      file_.give(parameters, "parallel.offload", "parameters");
      if (optimizer.empty())
        file_.notice(parameters, parameters + " takes the optimizer states along");
    } else if (!optimizer.empty()) {
      file_.give(optimizer, "parallel.offload", "optimizer");
    }
  }

  void read_persistence(int64_t stage) {
    const std::string key = kZero + "stage3_param_persistence_threshold";
    if (file_.written(key) == nullptr) return;
    if (file_.find(key) == nullptr)
      file_.notice(key, key + ": auto: parallel.keep_whole_below decides");
    else if (stage == 3)
      give_number(key, "parallel.keep_whole_below");
  }

  void read_deprecated() {
    constexpr std::array<std::array<const char*, 2>, 4> kNewNames = {
        {{"cpu_offload", "offload_optimizer.device: cpu"},
         {"cpu_offload_param", "offload_param.device: cpu"},
         {"cpu_offload_use_pin_memory", "pin_memory, without effect here"},
         {"stage3_gather_fp16_weights_on_model_save",
          "stage3_gather_16bit_weights_on_model_save, without effect here: the model is exported "
          "whole"}}};
    for (const auto& [old_name, new_name] : kNewNames)
      if (file_.written(kZero + old_name) != nullptr)
        file_.notice(kZero + old_name,
                     fmt::format("{}{} is deprecated: it is now {}", kZero, old_name, new_name));
  }

  std::optional<int64_t> batch_number(const std::string& key) {
    const std::optional<int64_t> number = file_.integer(key);
    if (!number || *number > 0) return number;
    file_.refuse(key, fmt::format("{}: wanted at least 1, found {}", key, *number));
    return std::nullopt;
  }

  void read_batch() {
    const std::string kTrain = "train_batch_size";
    const std::string kMicro = "train_micro_batch_size_per_gpu";
    const std::string kAccumulation = "gradient_accumulation_steps";
    const std::optional<int64_t> train = batch_number(kTrain);
    const std::optional<int64_t> micro = batch_number(kMicro);
    const std::optional<int64_t> accumulation = batch_number(kAccumulation);
    if (micro) give(kMicro, "train.batch_size");
    if (accumulation) {
      give(kAccumulation, "train.grad_accum");
      if (!train && !micro) facts_.accumulation_alone = last();
    }
    if (!train) return;
    give(kTrain, "train.global_batch_size");
    facts_.train_batch_size = last();
    if (!micro) facts_.open_batch = {.rows = *train, .accumulation = accumulation};
  }

  void read_optimizer() {
    const std::optional<std::string> type = file_.word("optimizer.type");
    if (!type) {
      if (file_.find("optimizer") != nullptr)
        file_.refuse("optimizer", "optimizer.type is not given", "AdamW");
      return;
    }
    if (*type != "adam" && *type != "adamw")
      return file_.refuse(
          "optimizer.type",
          fmt::format("optimizer.type: {} is not supported", file_.find("optimizer.type")->text),
          "Adam and AdamW are");
    // DeepSpeed's Adam decays weights as AdamW does, unless adam_w_mode is false.
    if (*type == "adam" && !file_.flag(kOptimizer + "adam_w_mode").value_or(true))
      file_.refuse(kOptimizer + "adam_w_mode",
                   "weight decay inside the gradient (adam_w_mode: false) is not supported");
    facts_.optimizer = file_.value_of("optimizer.type", "train.optim", "adamw_torch");
    read_parameter("lr", "train.learning_rate", "0.001");
    read_parameter("eps", "train.adam_epsilon", "1e-08");
    read_parameter("weight_decay", "train.weight_decay", "0");
    read_betas();
  }

  void read_parameter(const std::string& name, const std::string& setting,
                      const std::string& default_value) {
    const std::string path = kOptimizer + name;
    if (file_.written(path) == nullptr)
      file_.give_default("optimizer", path, setting, default_value);
    else
      give_number(path, setting);
  }

  void read_betas() {
    const std::string path = kOptimizer + "betas";
    const Node* const betas = file_.find(path);
    if (betas == nullptr) return;  // 0.9 and 0.999 are the defaults here and there
    if (betas->kind != NodeKind::List || betas->items.size() != 2)
      return file_.refuse(path, path + ": wanted a list of two numbers");
    const std::array<const char*, 2> settings = {"train.adam_beta1", "train.adam_beta2"};
    for (size_t index = 0; index < 2; ++index)
      imported_.values.push_back(
          {.path = settings[index], .node = betas->items[index], .spelling = path});
  }

  void read_schedule() {
    const std::optional<std::string> type = file_.word("scheduler.type");
    if (!type) {
      if (file_.find("scheduler") != nullptr)
        file_.refuse("scheduler", "scheduler.type is not given", "WarmupLR");
      return;
    }
    if (*type == "warmuplr")
      read_warmup("warmup_lr");
    else if (*type == "warmupdecaylr")
      read_warmup("warmup_decay_lr");
    else if (*type == "warmupcosinelr")
      read_cosine();
    else
      return file_.refuse(
          "scheduler.type",
          fmt::format("scheduler.type: {} is not supported", file_.find("scheduler.type")->text),
          "WarmupLR, WarmupDecayLR and WarmupCosineLR are");
    read_steps(*type != "warmuplr");
    const std::string warmup_type = file_.word(kSchedule + "warmup_type").value_or("log");
    if (warmup_type != "log" && warmup_type != "linear")
      file_.refuse(
          kSchedule + "warmup_type",
          fmt::format("{}warmup_type: wanted log or linear, found {}", kSchedule, warmup_type));
    else if (file_.find(kSchedule + "warmup_type") != nullptr)
      give(kSchedule + "warmup_type", "train.warmup_type");
  }

  void read_warmup(const std::string& schedule) {
    file_.give("scheduler.type", "train.lr_scheduler_type", schedule);
    give_number(kSchedule + "warmup_min_lr", "train.warmup_min_lr");
    if (file_.written(kSchedule + "warmup_max_lr") != nullptr)
      give_number(kSchedule + "warmup_max_lr", "train.learning_rate");
    else if (schedule == "warmup_decay_lr")
      file_.give_default("scheduler.type", kSchedule + "warmup_max_lr", "train.learning_rate",
                         "0.001");
    for (const std::string foreign : {"warmup_min_ratio", "cos_min_ratio"})
      if (file_.written(kSchedule + foreign) != nullptr)
        file_.refuse(kSchedule + foreign, fmt::format("{} is of WarmupCosineLR", foreign),
                     "use warmup_min_lr and warmup_max_lr");
  }

  void read_cosine() {
    file_.give("scheduler.type", "train.lr_scheduler_type", "warmup_cosine_lr");
    give_number(kSchedule + "warmup_min_ratio", "train.warmup_min_ratio");
    if (file_.written(kSchedule + "cos_min_ratio") != nullptr)
      give_number(kSchedule + "cos_min_ratio", "train.min_lr_ratio");
    else
      file_.give_default("scheduler.type", kSchedule + "cos_min_ratio", "train.min_lr_ratio",
                         "0.0001");
    for (const std::string foreign : {"warmup_min_lr", "warmup_max_lr"})
      if (file_.written(kSchedule + foreign) != nullptr)
        file_.refuse(kSchedule + foreign, fmt::format("WarmupCosineLR has no {}", foreign),
                     "warmup_min_ratio and cos_min_ratio are shares of optimizer.params.lr");
  }

  void read_steps(bool has_end) {
    const std::string warmup = kSchedule + "warmup_num_steps";
    if (file_.written(warmup) == nullptr) {
      file_.notice("scheduler.type",
                   warmup +
                       " is not given: train.warmup_steps and warmup_ratio decide, where "
                       "DeepSpeed takes 1000");
    } else if (const std::optional<int64_t> steps = batch_number(warmup)) {
      give(warmup, "train.warmup_steps");
      facts_.warmup_steps = last();
    }
    const std::string total = kSchedule + "total_num_steps";
    if (const std::optional<int64_t> steps = batch_number(total); steps && has_end) {
      give(total, "train.schedule_steps");
      facts_.schedule_steps = last();
    } else if (file_.written(total) != nullptr && !has_end) {
      file_.notice(total, total + " has no effect: WarmupLR has no end");
    }
  }

  PeerFile file_;
  config::Imported& imported_;
  config::ErrorList& errors_;
  DeepSpeedFacts facts_;
};

std::string factors(int64_t ranks, std::optional<int64_t> accumulation) {
  const std::string of_ranks = counted(ranks, "rank");
  return accumulation ? fmt::format("{} x gradient_accumulation_steps {}", of_ranks, *accumulation)
                      : of_ranks;
}

}  // namespace

DeepSpeedFacts read_deepspeed(const Node& value, const std::string& key, config::Imported& imported,
                              config::ErrorList& errors) {
  if (value.kind == NodeKind::Map) return DeepSpeedReader(value, imported, errors).read();
  const std::filesystem::path path = config::find_named_file(value, key);
  const Node root = config::load_hjson(path, &errors);
  imported.notices.push_back(
      fmt::format("{}: {}: settings are read from {}", value.where(), key, path.string()));
  return DeepSpeedReader(root, imported, errors).read();
}

// DeepSpeed: train_batch_size = micro x accumulation x ranks.
void decide_batch(DeepSpeedFacts& facts, int64_t ranks, config::Imported& imported,
                  config::ErrorList& errors) {
  if (!facts.open_batch) return;
  const auto& [rows, accumulation] = *facts.open_batch;
  config::ImportedValue value = *facts.train_batch_size;
  const int64_t together = ranks * accumulation.value_or(1);
  if (together == 0) {
    imported.notices.push_back(fmt::format(
        "{}: train.batch_size follows from train_batch_size and the ranks", value.node.where()));
  } else if (rows % together != 0) {
    errors.add(value.node.error(
        fmt::format("train_batch_size {} is no multiple of {}", rows, factors(ranks, accumulation)),
        value.spelling, "give a multiple of it, or write \"auto\""));
    facts.train_batch_size.reset();  // a check of its product would only repeat the error
  } else {
    value.path = "train.batch_size";
    value.written = std::exchange(value.node.text, fmt::format("{}", rows / together));
    value.node.quoted = false;
    // Without a given accumulation the result is only a default: a given micro-batch size implies
    // its own accumulation.
    value.is_default = !accumulation;
    imported.values.push_back(std::move(value));
  }
}

}  // namespace convoy::settings
