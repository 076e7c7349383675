// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/resolve_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/settings/check_distill.h"
#include "convoy/core/settings/check_policy.h"
#include "convoy/core/settings/check_preference.h"
#include "convoy/core/settings/check_rejection.h"
#include "convoy/core/settings/fallbacks.h"
#include "convoy/core/settings/step_range.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/core/settings/template_kwargs.h"

namespace convoy::settings {
namespace {

bool all_readable(const config::Resolved& resolved, std::initializer_list<const char*> paths) {
  return std::all_of(paths.begin(), paths.end(),
                     [&](const char* path) { return resolved.value(path).readable; });
}

void check_network(const ClassifySettings& classify, const config::Resolved& resolved,
                   config::ErrorList& errors) {
  if (classify.widths.empty() || classify.widths.size() != classify.kernel_sizes.size())
    errors.add(
        ConfigError(fmt::format("classify.kernel_sizes: wanted one for each of {} widths, found {}",
                                classify.widths.size(), classify.kernel_sizes.size()),
                    resolved.location("classify.kernel_sizes",
                                      "such as widths [64, 128, 256] and kernel_sizes [5, 5, 3]")));
  for (size_t index = 0; index < classify.kernel_sizes.size(); ++index)
    if (const int64_t size = classify.kernel_sizes[index]; size % 2 == 0)
      errors.add(ConfigError(fmt::format("classify.kernel_sizes: wanted odd sizes, found {}", size),
                             resolved.location(fmt::format("classify.kernel_sizes[{}]", index),
                                               fmt::format("take {} or {}", size - 1, size + 1))));
  if (classify.freeze_encoder == "true" && classify.encoder_path.empty())
    errors.add(ConfigError(
        "classify.freeze_encoder is true, but there is no encoder to start from: it would never "
        "learn",
        resolved.location("classify.freeze_encoder", "give classify.encoder_path")));
}

// The configuration of a run of 0.2.0 spells out this default, whatever its task is.
bool is_default_of_0_2(std::string_view path, std::string_view value) {
  return path == "preference.loss" && value == "sigmoid";
}

// A setting of another task would have no effect. Detected by value, because a run's own
// configuration includes the defaults.
void refuse_section(const TrainSettings& settings, std::string_view section,
                    const std::string& tasks, const config::Resolved& resolved,
                    config::ErrorList& errors) {
  TrainSettings given = settings;
  TrainSettings usual;
  for (const auto& [path, value] :
       config::changed_values(config::list_fields(given), config::list_fields(usual)))
    if (path.starts_with(section) && !is_default_of_0_2(path, value))
      errors.add(ConfigError(
          fmt::format("{} applies only to task {}, found task {}", path, tasks, settings.task),
          resolved.location(path, fmt::format("add task: {}, or remove it", tasks))));
}

void check_schema_of_task(const TrainSettings& settings, const config::Resolved& resolved,
                          config::ErrorList& errors) {
  const DataSettings& rows = settings.data;
  const auto refuse = [&](const char* key, const std::string& value, const std::string& tasks) {
    errors.add(ConfigError(fmt::format("{} {} applies only to task {}, found task {}", key, value,
                                       tasks, settings.task),
                           resolved.location(key, "remove it")));
  };
  const bool learns = learns_preferences(settings.task_facts());
  if (!learns && (rows.schema == "preference" || rows.schema == "unpaired_preference"))
    refuse("data.schema", rows.schema, tasks_of_preferences());
  if (settings.task_facts().data == TaskData::Pairs) return;
  const std::string pairs = tasks_that_read(TaskData::Pairs);
  if (!learns && rows.schema == "ranked") refuse("data.schema", rows.schema, pairs);
  if (rows.ranked_pairs != DataSettings().ranked_pairs)
    refuse("data.ranked_pairs", rows.ranked_pairs, pairs);
}

void check_sections_of_tasks(const TrainSettings& settings, const config::Resolved& resolved,
                             config::ErrorList& errors) {
  if (!resolved.whole()) return;
  const TaskData data = settings.task_facts().data;
  if (data == TaskData::Windows)
    check_network(settings.classify, resolved, errors);
  else
    refuse_section(settings, "classify.", tasks_that_read(TaskData::Windows), resolved, errors);
  if (learns_preferences(settings.task_facts()))
    check_preference(settings, resolved, errors);
  else
    refuse_section(settings, "preference.", tasks_of_preferences(), resolved, errors);
  if (data == TaskData::Problems)
    check_rejection(settings, resolved, errors);
  else
    refuse_section(settings, "rejection.", tasks_that_read(TaskData::Problems), resolved, errors);
  if (learns_rewards(settings.task_facts()))
    check_policy(settings, resolved, errors);
  else
    refuse_section(settings, "policy.", tasks_of_rewards(), resolved, errors);
  if (settings.task_facts().has_teacher)
    check_distill(settings, resolved, errors);
  else
    refuse_section(settings, "distill.", tasks_of_teachers(), resolved, errors);
  if (data != TaskData::Rollouts)
    for (const char* const section : {"rollout.", "reward"})
      refuse_section(settings, section, tasks_that_read(TaskData::Rollouts), resolved, errors);
  check_schema_of_task(settings, resolved, errors);
}

void check_schedule(const ScheduleSettings& schedule, const config::Resolved& resolved,
                    config::ErrorList& errors) {
  constexpr std::array<std::string_view, 4> kWithFloor = {
      "cosine", "cosine_with_min_lr", "warmup_stable_decay", "warmup_cosine_lr"};
  if (all_readable(resolved, {"train.min_lr_ratio", "train.lr_scheduler_type"}) &&
      schedule.min_lr_ratio > 0 &&
      std::find(kWithFloor.begin(), kWithFloor.end(), schedule.lr_scheduler_type) ==
          kWithFloor.end())
    errors.add(ConfigError(
        fmt::format("train.min_lr_ratio is {}, but schedule {} has no such floor",
                    schedule.min_lr_ratio, schedule.lr_scheduler_type),
        resolved.location("train.min_lr_ratio",
                          "remove it, or take cosine, cosine_with_min_lr or warmup_stable_decay")));
}

void check_optimizer(const TrainingSettings& train, const config::Resolved& resolved,
                     config::ErrorList& errors) {
  const std::string& states = train.optimizer.optimizer_state_dtype;
  const bool names_bits = train.optim.ends_with("bit");
  const std::string by_name = train.optim.ends_with("8bit") ? "int8" : "fp32";
  if (all_readable(resolved, {"train.optim", "train.optimizer_state_dtype"}) && names_bits &&
      states != "auto" && states != by_name)
    errors.add(ConfigError(
        fmt::format("train.optim {} keeps {} states, but train.optimizer_state_dtype is {}",
                    train.optim, by_name, states),
        resolved.location("train.optimizer_state_dtype", "remove one of them")));
  if (all_readable(resolved, {"train.activation_offload", "train.gradient_checkpointing"}) &&
      train.activation_offload != "none" && train.gradient_checkpointing != "true")
    errors.add(ConfigError(
        fmt::format("train.activation_offload is {}, but only block inputs are "
                    "offloaded, and train.gradient_checkpointing is {}",
                    train.activation_offload, train.gradient_checkpointing),
        resolved.location("train.activation_offload", "train.gradient_checkpointing: true")));
}

void check_best_metric(const TrainSettings& settings, const config::Resolved& resolved,
                       config::ErrorList& errors) {
  const TrainingSettings& train = settings.train;
  if (all_readable(resolved, {"train.metric_for_best_model", "train.greater_is_better"}) &&
      train.greater_is_better != "auto" &&
      (train.greater_is_better == "true") != train.larger_is_better())
    errors.add(ConfigError(
        fmt::format("train.greater_is_better is {}, but a {} {} is better", train.greater_is_better,
                    train.larger_is_better() ? "larger" : "smaller", train.metric_for_best_model),
        resolved.location("train.greater_is_better", "remove it")));
  if (!all_readable(resolved, {"train.metric_for_best_model"}) ||
      !is_text_metric(train.best_metric_name()) ||
      !train.generating_evaluation.predict_with_generate)
    return;
  const auto refuse = [&](const std::string& reason, const std::string& hint) {
    errors.add(ConfigError(
        fmt::format("train.metric_for_best_model is {}, {}", train.metric_for_best_model, reason),
        resolved.location("train.metric_for_best_model", hint)));
  };
  if (train.eval_strategy == "no" && !train.final_eval)
    refuse("but there are no evaluations", "train.eval_strategy=steps");
  if (train.best_metric_name() == "schema_compliance" &&
      train.generating_evaluation.eval_json_schema.empty())
    refuse("but there is no schema to check answers against", "train.eval_json_schema=FILE");
}

void check_generating_evaluation(const TrainSettings& settings, const config::Resolved& resolved,
                                 config::ErrorList& errors) {
  if (!resolved.whole() || !settings.train.generating_evaluation.predict_with_generate ||
      settings.task_facts().has_answers)
    return;
  errors.add(ConfigError(
      fmt::format("train.predict_with_generate is true, but rows of task {} have no answers",
                  settings.task),
      resolved.location("train.predict_with_generate", "remove it")));
}

// Settings of `eval` that nothing would read.
void check_harness(const TrainSettings& settings, const config::Resolved& resolved,
                   config::ErrorList& errors) {
  if (!resolved.whole()) return;
  const auto refuse = [&](const std::string& key, const std::string& reason, const char* hint) {
    errors.add(ConfigError(fmt::format("{}: {}", key, reason), resolved.location(key, hint)));
  };
  HarnessSettings given = settings.eval;
  HarnessSettings usual;
  if (given.tasks.names.empty()) {
    for (const auto& [path, value] :
         config::changed_values(config::list_fields(given), config::list_fields(usual)))
      refuse("eval." + path, "no tasks are measured", "name them: eval.tasks=[arc_easy]");
    return;
  }
  const TaskData data = settings.task_facts().data;
  if (data == TaskData::Windows || data == TaskData::Problems)
    refuse("eval.tasks", fmt::format("task {} does not measure them", settings.task),
           data == TaskData::Windows
               ? "remove it: the harness measures language models"
               : "remove it, and measure the result with `convoy eval --tasks`");
  if (!settings.train.export_model)
    refuse("eval.tasks", "train.export_model is false, so there is no model to measure",
           "remove one of them");
}

void add_at_its_key(const ConfigError& error, const config::Resolved& resolved,
                    config::ErrorList& errors) {
  errors.add(
      ConfigError(error.what(), resolved.location(error.location().key, error.location().hint)));
}

// Does not check strategy `auto`: the run checks the strategy that it chooses.
void check_strategy(const ParallelSettings& parallel, const config::Resolved& resolved,
                    config::ErrorList& errors) {
  if (!all_readable(resolved, {"parallel.strategy", "parallel.offload", "parallel.shard_over",
                               "parallel.prefetch_blocks", "parallel.replicas",
                               "parallel.reshard_after_forward"}) ||
      parallel.strategy == "auto")
    return;
  try {
    check_parallel(strategy_named(parallel.strategy), parallel);
  } catch (const ConfigError& error) {
    add_at_its_key(error, resolved, errors);
  }
}

void check_of_adapters_and_text(const TrainSettings& settings, const config::Resolved& resolved,
                                config::ErrorList& errors) {
  if (all_readable(resolved, {"tuning.mode", "tuning.lora.loraplus_lr_ratio"}) &&
      settings.tuning.mode == "full" && settings.tuning.lora.loraplus_lr_ratio > 0)
    errors.add(ConfigError(
        "tuning.lora.loraplus_lr_ratio applies only to adapters, found tuning.mode full",
        resolved.location("tuning.lora.loraplus_lr_ratio", "remove it")));
  if (all_readable(resolved, {"tuning.mode", "tuning.lora.adapter"}) &&
      settings.tuning.mode == "full" && !settings.tuning.lora.adapter.empty())
    errors.add(ConfigError(
        "tuning.lora.adapter goes on with an adapter, found tuning.mode full",
        resolved.location("tuning.lora.adapter",
                          "merge it into its base first (convoy models merge), or remove it")));
  if (all_readable(resolved, {"tuning.mode", "train.export_text_only"}) &&
      settings.tuning.mode != "full" && settings.train.export_text_only)
    errors.add(ConfigError(
        fmt::format("train.export_text_only applies to a model that is trained whole, found "
                    "tuning.mode {}",
                    settings.tuning.mode),
        resolved.location("train.export_text_only",
                          "remove it; `convoy models merge --text-only` writes the text model with "
                          "the adapter in it")));
  if (all_readable(resolved, {"task", "train.neftune_noise_alpha"}) &&
      settings.task_facts().data == TaskData::Windows && settings.train.neftune_noise_alpha > 0)
    errors.add(ConfigError(
        "train.neftune_noise_alpha applies to embeddings, which task classify does not have",
        resolved.location("train.neftune_noise_alpha", "remove it")));
}

void check_mix(const TrainSettings& settings, const config::Resolved& resolved,
               config::ErrorList& errors) {
  if (!all_readable(resolved, {"task", "datasets"})) return;
  const bool learns_preferences = settings::learns_preferences(settings.task_facts());
  if (settings.task_facts().data != TaskData::Mix && !settings.datasets.empty())
    errors.add(ConfigError(
        fmt::format("datasets apply only to task mixed, found task {}", settings.task),
        resolved.location(
            "datasets", learns_preferences
                            ? "write the file as data.train_path, without a type: rows are "
                              "recognised by their columns; `convoy data mix` makes one of several"
                            : "add task: mixed")));
  if (learns_preferences) return;  // its types are another program's
  try {
    mixed_datasets(settings.datasets);
  } catch (const ConfigError& error) {
    add_at_its_key(error, resolved, errors);
  }
}

void check_batch(const TrainSettings& settings, const config::Resolved& resolved,
                 config::ErrorList& errors) {
  const TrainingSettings& train = settings.train;
  if (!resolved.whole() || !train.chooses_batch()) return;
  const char* const key = train.batch_size.is_auto()   ? "train.batch_size"
                          : train.grad_accum.is_auto() ? "train.grad_accum"
                                                       : "train.auto_find_batch_size";
  if (settings.task_facts().data == TaskData::Windows)
    errors.add(
        ConfigError(fmt::format("{} is chosen for language models, found task classify", key),
                    resolved.location(key, "write a number")));
  if (train.batch_size.is_auto() && train.global_batch_size > 0 &&
      train.grad_accum.value.value_or(0) > 0)
    errors.add(ConfigError(
        fmt::format("train.batch_size is auto, but train.global_batch_size {} and train.grad_accum "
                    "{} leave one number for it",
                    train.global_batch_size, train.accumulation()),
        resolved.location("train.batch_size", "leave out train.grad_accum, or write that number")));
}

// A share that is not given takes the rest.
void check_split(const SplitSettings& split, const config::Resolved& resolved,
                 config::ErrorList& errors) {
  if (!all_readable(resolved,
                    {"data.split.train_ratio", "data.split.val_ratio", "data.split.test_ratio"}))
    return;
  constexpr double kRounding = 1e-6;
  const double sum =
      split.train_ratio.value.value_or(0) + split.val_ratio.value.value_or(0) + split.test_ratio;
  const bool all_given = !split.train_ratio.is_auto() && !split.val_ratio.is_auto();
  if (sum <= 1 + kRounding && (!all_given || sum >= 1 - kRounding)) return;
  const std::string key =
      split.train_ratio.is_auto() ? "data.split.val_ratio" : "data.split.train_ratio";
  errors.add(ConfigError(fmt::format("data.split: the shares must sum to 1, found {:.7g}", sum),
                         resolved.location(key, "train_ratio + val_ratio + test_ratio")));
}

// Rows are held out only for evaluations. Decided when the record is made, so that a later
// evaluation of the run uses no training rows.
void decide_split(TrainSettings& settings, config::Resolved& resolved) {
  SplitSettings& split = settings.data.split;
  const bool evaluates = settings.train.eval_strategy != "no" || settings.train.final_eval;
  if (evaluates || !split.val_ratio.is_auto() || !split.train_ratio.is_auto()) return;
  split.val_ratio = 0.0;
  resolved.decided("data.split.val_ratio", "nothing is evaluated");
}

bool measures_accuracy(const TrainSettings& settings) {
  const TaskData data = settings.task_facts().data;
  return data == TaskData::Windows || data == TaskData::Pairs || data == TaskData::Rollouts;
}

void check_metric_of_task(const TrainSettings& settings, const config::Resolved& resolved,
                          config::ErrorList& errors) {
  if (!all_readable(resolved, {"task", "train.metric_for_best_model"})) return;
  const std::string& best = settings.train.metric_for_best_model;
  const bool has_pairs = settings.task_facts().data == TaskData::Pairs;
  const bool compares = learns_preferences(settings.task_facts());
  if (best == "eval_accuracy" && !measures_accuracy(settings))
    errors.add(ConfigError(fmt::format("train.metric_for_best_model eval_accuracy applies only to "
                                       "task classify, {}, {}, found task {}",
                                       tasks_that_read(TaskData::Pairs),
                                       tasks_that_read(TaskData::Rollouts), settings.task),
                           resolved.location("train.metric_for_best_model", "eval_loss")));
  const bool is_of_pairs = best == kMarginMetric;
  const bool is_of_texts = is_text_metric(settings.train.best_metric_name());
  if ((is_of_pairs && !compares) || (is_of_texts && compares))
    errors.add(ConfigError(fmt::format("train.metric_for_best_model is {}, which evaluations of "
                                       "task {} do not measure",
                                       best, settings.task),
                           resolved.location("train.metric_for_best_model",
                                             has_pairs ? "eval_accuracy" : "eval_loss")));
}

void check_combinations(const TrainSettings& settings, const config::Resolved& resolved,
                        config::ErrorList& errors) {
  check_split(settings.data.split, resolved, errors);
  if (all_readable(resolved, {"data.template_kwargs"}))
    if (const auto problem = template_kwargs_problem(
            nlohmann::ordered_json::parse(settings.data.template_kwargs.json)))
      errors.add(ConfigError(
          "data.template_kwargs: " + *problem,
          resolved.location(
              "data.template_kwargs",
              "give a map of the template's variables, such as {enable_thinking: false}")));
  if (all_readable(resolved, {"train.lr_scaling", "train.lr_reference_batch"}) &&
      settings.train.lr_scaling != "none" && settings.train.lr_reference_batch == 0)
    errors.add(ConfigError(
        fmt::format("train.lr_scaling is {}, but train.lr_reference_batch is not set: it needs the "
                    "global batch that train.learning_rate was chosen for",
                    settings.train.lr_scaling),
        resolved.location("train.lr_scaling", "train.lr_reference_batch=ROWS")));
  check_metric_of_task(settings, resolved, errors);
  if (all_readable(resolved, {"logging.profile_steps"}))
    if (const auto problem = step_range_problem(settings.logging.profile_steps))
      errors.add(ConfigError("logging.profile_steps: " + *problem,
                             resolved.location("logging.profile_steps", "such as 10:15")));
  check_batch(settings, resolved, errors);
  check_schedule(settings.train.schedule, resolved, errors);
  check_optimizer(settings.train, resolved, errors);
  check_best_metric(settings, resolved, errors);
  check_reports(settings.logging, resolved, errors);
  check_generating_evaluation(settings, resolved, errors);
  check_harness(settings, resolved, errors);
  check_strategy(settings.parallel, resolved, errors);
  check_of_adapters_and_text(settings, resolved, errors);
  check_mix(settings, resolved, errors);
  if (resolved.whole())
    if (const auto problem = settings.tuning.quantization.problem(settings.tuning.mode)) {
      const std::string key = "tuning.quantization." + problem->key;
      errors.add(
          ConfigError(key + ": " + problem->sentence, resolved.location(key, problem->hint)));
    }
  check_sections_of_tasks(settings, resolved, errors);
}

// `train.loss` is another name of policy.loss. Other tasks do not read it, whatever its value: the
// default is refused too, which a run's record writes only as policy.loss.
void check_spelled_loss(const TrainSettings& settings, const std::vector<config::Layer>& layers,
                        const config::Resolved& resolved, config::ErrorList& errors) {
  if (!resolved.whole() || learns_rewards(settings.task_facts()) ||
      settings.policy.loss != PolicySettings().loss)
    return;
  const bool is_written = std::any_of(layers.begin(), layers.end(), [](const config::Layer& layer) {
    const auto found = layer.find("policy.loss");
    return found != layer.end() && found->second.spelling == "train.loss";
  });
  if (!is_written) return;
  const std::string hint = settings.task_facts().has_teacher ? "write distill.divergence"
                           : learns_preferences(settings.task_facts())
                               ? "write preference.loss"
                               : "remove it: the loss of this task is cross-entropy";
  errors.add(ConfigError(fmt::format("train.loss applies only to task {}, found task {}",
                                     tasks_of_rewards(), settings.task),
                         resolved.location("policy.loss", hint)));
}

// No file is used unless it is named, but the files that SFT-Play writes are looked for and
// suggested.
ErrorLocation where_rows_may_be() {
  constexpr std::array<std::array<const char*, 2>, 3> kPlaces = {
      {{"train_path", "data/processed/train.jsonl"},
       {"val_path", "data/processed/val.jsonl"},
       {"test_path", "data/processed/test.jsonl"}}};
  std::string found;
  std::string missing;
  for (const auto& [key, path] : kPlaces) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored))
      found += fmt::format("{}data.{}={}", found.empty() ? "" : " ", key, path);
    else
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", path);
  }
  ErrorLocation location{.key = "data.train_path"};
  location.hint =
      found.find("train_path") != std::string::npos
          ? "rows were found at SFT-Play's default path: " + found
          : "data.train_path=rows.jsonl; SFT-Play's default paths have no rows: " + missing;
  return location;
}

void check_inputs(const TrainSettings& settings, const config::Resolved& resolved,
                  config::ErrorList& errors) {
  const TaskData data = settings.task_facts().data;
  if (data == TaskData::Windows) {
    if (settings.classify.data_dir.empty())
      errors.add(ConfigError(
          "classify.data_dir is not set: a folder of windows is needed",
          {.key = "classify.data_dir", .hint = "classify.data_dir=PATH, or --data-dir PATH"}));
    return;
  }
  if (settings.model.name.empty() && all_readable(resolved, {"model.name"}))
    errors.add(ConfigError("model.name is not set: a model folder or a hub id is needed",
                           {.key = "model.name", .hint = "model.name=PATH"}));
  if (data == TaskData::Mix && settings.datasets.empty() && all_readable(resolved, {"datasets"}))
    errors.add(
        ConfigError("task mixed needs data sets to mix",
                    resolved.location("task", "datasets: [{path: .., type: cpt, weight: 1}]")));
  if (data != TaskData::Mix && settings.data.train_path.empty() &&
      all_readable(resolved, {"data.train_path"}))
    errors.add(ConfigError("data.train_path is not set: a file of training rows is needed",
                           where_rows_may_be()));
  if (data == TaskData::Problems && settings.data.val_path.empty() &&
      all_readable(resolved, {"data.val_path"}))
    errors.add(ConfigError(
        "data.val_path is not set: problems are needed on which each round is measured",
        {.key = "data.val_path", .hint = "data.val_path=FILE with problems that no round learns"}));
}

}  // namespace

TrainDocuments read_train_documents(config::Sources sources) {
  TrainSettings settings;
  TrainDocuments documents;
  sources.rules = train_key_rules();
  sources.imports = train_imports(documents);
  sources.environment_names = {{"DEEPSPEED_CONFIG", "train.deepspeed"},
                               {"NUM_GPUS", "num_gpus"},
                               {"NCCL_TIMEOUT", "parallel.timeout_s"}};
  documents.sources = config::read_documents(config::list_fields(settings), sources);
  config::peek(config::list_fields(settings), documents.sources);
  if (settings.parallel.strategy == "dp" && settings.parallel.replicas >= 0)
    documents.launch_request.devices_of_rank = static_cast<int>(settings.parallel.replicas);
  return documents;
}

config::Resolved resolve_documents(TrainSettings& settings, TrainDocuments documents, Wanted wanted,
                                   int64_t ranks) {
  for (DeepSpeedFacts& facts : documents.deepspeed)
    decide_batch(facts, ranks, documents.sources.imported, documents.sources.errors);
  config::Resolved resolved = config::resolve_documents(
      config::list_fields(settings), documents.sources,
      [&](const config::Resolved& found, config::ErrorList& errors) {
        check_imports(documents.deepspeed, ranks, settings, found, errors);
        check_combinations(settings, found, errors);
        check_spelled_loss(settings, documents.sources.layers, found, errors);
        if (wanted == Wanted::TrainInputs && found.whole()) check_inputs(settings, found, errors);
      });
  fall_back_to_the_loss(settings.train, resolved);
  fall_back_to_tensorboard(settings.logging, resolved);
  warn_of_idle_early_stop(settings, resolved);
  warn_of_unread_preferences(settings, resolved);
  decide_split(settings, resolved);
  return resolved;
}

config::Resolved resolve_train(TrainSettings& settings, config::Sources sources, Wanted wanted,
                               int64_t ranks) {
  return resolve_documents(settings, read_train_documents(std::move(sources)), wanted, ranks);
}

}  // namespace convoy::settings
