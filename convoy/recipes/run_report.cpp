// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/run_report.h"

#include <algorithm>
#include <utility>

#include "convoy/base/counted.h"
#include "convoy/recipes/effective_batch.h"
#include "convoy/telemetry/environment.h"
#include "convoy/telemetry/progress.h"
#include "convoy/train/train_loop.h"

namespace convoy::recipes {
namespace {

std::string share_text(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) /
                                     static_cast<double>(std::max<int64_t>(whole, 1)));
}

// "mix: code 90.0 % of the rows (weight 9): 1800 an epoch, each of its 1200 rows 1.50 times".
std::string mix_text(const data::EncodedSplits& splits, const data::MixSchedule& schedule,
                     size_t part) {
  const data::MixPart& of = splits.mix[part];
  const int64_t rows = schedule.epoch_rows_of(part);
  return fmt::format("mix: {} {} of the rows (weight {}): {} an epoch, each of its {} {:.2f} times",
                     of.name, share_text(rows, schedule.epoch_rows()), of.weight, rows,
                     counted(of.num_rows, "row"),
                     static_cast<double>(rows) / static_cast<double>(of.num_rows));
}

// What people vary between trainings, for TensorBoard's HParams page.
telemetry::Hparams hparams_of(const settings::TrainSettings& settings) {
  const settings::TrainingSettings& train = settings.train;
  telemetry::Hparams values = {{"learning_rate", train.learning_rate},
                               {"schedule", train.schedule.lr_scheduler_type},
                               {"optimizer", train.optim},
                               {"weight_decay", train.weight_decay},
                               {"epochs", train.epochs},
                               {"seed", static_cast<double>(settings.seed)}};
  if (settings.task == "classify") return values;
  values["model"] = settings.model.name;
  values["max_seq_len"] = static_cast<double>(settings.model.max_seq_len);
  values["mode"] = settings.tuning.mode;
  if (settings.tuning.mode == "full") return values;
  values["lora_r"] = static_cast<double>(settings.tuning.lora.r);
  values["lora_alpha"] = static_cast<double>(settings.tuning.lora.alpha);
  values["lora_dropout"] = settings.tuning.lora.dropout;
  return values;
}

}  // namespace

void report_plan(const Log& log, const settings::TrainSettings& settings, const LoadedModel& base,
                 const data::EncodedSplits& splits, const data::BatchPlan& plan,
                 const std::vector<nn::NamedTensor>& trainable, const std::string& dtype) {
  const int64_t total = nn::count_parameters(*base.model);
  const std::string held = coding_text(*base.model);
  int64_t trained = 0;
  for (const nn::NamedTensor& parameter : trainable) trained += parameter.value.numel();
  log.info(fmt::format(
      "model: {} ({}), {} parameters, {}{}; training {} ({}, {})", settings.model.name,
      base.model->family(), telemetry::count_text(static_cast<double>(total)), dtype,
      held == "none" ? "" : " over " + held, telemetry::count_text(static_cast<double>(trained)),
      settings.tuning.mode, share_text(trained, total)));
  if (!splits.policy.empty()) log.info(splits.policy);
  for (size_t part = 0; part < splits.mix.size(); ++part)
    log.info(mix_text(splits, *plan.mix_schedule(), part));
  report_batch(log, settings.train, plan.deal(), plan.config().packing ? "block" : "row");
}

telemetry::TrainingLogOptions training_log_options(const settings::TrainSettings& settings,
                                                   const std::filesystem::path& tensorboard_folder,
                                                   int64_t steps_per_epoch,
                                                   const checkpoint::Progress& start,
                                                   const Log& log) {
  telemetry::TrainingLogOptions options;
  options.tensorboard_folder =
      telemetry::tensorboard_folder(settings.logging.backend.names, tensorboard_folder);
  options.hparams.values = hparams_of(settings);
  options.total_steps = train::total_steps(settings.train, steps_per_epoch);
  options.total_epochs =
      static_cast<double>(options.total_steps) / static_cast<double>(steps_per_epoch);
  options.logging_steps = settings.train.logging_steps;
  options.log_interval = settings.logging.log_interval;
  options.eval_steps = settings.train.eval_steps;
  options.save_steps = settings.train.save_steps;
  options.resume_step = start.step > 0 ? start.step : -1;
  options.progress.total = options.total_steps;
  options.progress.start = start.step;
  if (log.level() == LogLevel::Quiet) options.progress.style = telemetry::ProgressStyle::None;
  return options;
}

void report_early_stop(const Log& log, const settings::TrainingSettings& train,
                       const train::LoopResult& result) {
  if (result.end != train::LoopEnd::EarlyStopped) return;
  const checkpoint::Progress& progress = result.progress;
  log.info(fmt::format(
      "stopped early after step {}: {} evaluations without a better {} than that of step {}",
      progress.step, progress.evaluations_without_improvement, train.metric_for_best_model,
      progress.best_step));
}

telemetry::RunEnd run_end(train::LoopEnd end) {
  if (end == train::LoopEnd::Stopped) return telemetry::RunEnd::Stopped;
  return end == train::LoopEnd::EarlyStopped ? telemetry::RunEnd::EarlyStopped
                                             : telemetry::RunEnd::Finished;
}

std::map<std::string, std::string> data_hashes(const data::EncodedSplits& splits) {
  std::map<std::string, std::string> hashes;
  for (const data::SplitReport& report : splits.reports) hashes[report.name] = report.content_hash;
  return hashes;
}

telemetry::RunIdentity run_identity(const settings::TrainSettings& settings,
                                    const std::string& config_yaml,
                                    std::map<std::string, std::string> data_hashes,
                                    const checkpoint::Stamp& stamp, std::vector<std::string> hosts,
                                    int64_t world_size, const std::string& device_kind,
                                    const checkpoint::Progress& start) {
  telemetry::RunIdentity identity;
  identity.name = settings.run_name;
  identity.task = settings.task;
  identity.config_yaml = config_yaml;
  identity.hosts = std::move(hosts);
  identity.devices.assign(static_cast<size_t>(world_size), device_kind);
  identity.data_hashes = std::move(data_hashes);
  for (const checkpoint::StampField& field : stamp.fields())
    identity.stamp[field.name] = field.value;
  identity.world_size = world_size;
  identity.resume_step = start.step > 0 ? start.step : -1;
  return identity;
}

nlohmann::json final_metrics(nlohmann::json figures, const settings::TrainSettings& settings,
                             const data::BatchPlan& plan, const checkpoint::Progress& progress) {
  const data::BatchPlanConfig& batch = plan.config();
  figures["run_name"] = settings.run_name;
  figures["step"] = progress.step;
  figures["tokens_seen"] = progress.tokens_seen;
  figures["supervised_tokens_seen"] = progress.supervised_tokens_seen;
  figures["per_device_train_batch_size"] = batch.batch_size;
  figures["gradient_accumulation_steps"] = batch.grad_accum;
  figures["global_batch_size"] = batch.global_batch;
  figures["eval_gen_new_tokens"] = settings.train.generating_evaluation.generation_max_new_tokens;
  figures["eval_num_beams"] = 1;
  figures["lr_scaling"] = settings.train.lr_scaling;
  figures["peak_learning_rate"] = scaled_learning_rate(settings.train, batch.global_batch);
  if (progress.best_metric) {
    figures["best_" + settings.train.metric_for_best_model] = *progress.best_metric;
    figures["best_step"] = progress.best_step;
  }
  return figures;
}

}  // namespace convoy::recipes
