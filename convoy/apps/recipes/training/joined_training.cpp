// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/joined_training.h"

#include <ATen/Parallel.h>

#include <utility>

#include "convoy/apps/recipes/training/effective_batch.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/files.h"
#include "convoy/core/reports/open_reports.h"
#include "convoy/core/settings/report_projects.h"
#include "convoy/core/telemetry/environment.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::recipes {
namespace {

// Hyperparameters that are usually varied between trainings, for TensorBoard's HParams page.
telemetry::Hparams hparams_of(const settings::TrainSettings& settings) {
  const settings::TrainingSettings& train = settings.train;
  telemetry::Hparams values = {{"learning_rate", train.learning_rate},
                               {"schedule", train.schedule.lr_scheduler_type},
                               {"optimizer", train.optim},
                               {"weight_decay", train.weight_decay},
                               {"epochs", train.epochs},
                               {"seed", static_cast<double>(settings.seed)}};
  const settings::TaskData data = settings.task_facts().data;
  if (data == settings::TaskData::Windows) return values;
  values["model"] = settings.model.name;
  if (settings::learns_preferences(settings.task_facts())) {
    values["beta"] = settings.preference.beta;
    if (settings.task_facts().chooses_loss)
      values["loss"] = std::string(settings::pair_loss_named(settings.preference.loss).name);
    if (data == settings::TaskData::Judged)
      values["loss"] = std::string(settings::unpaired_loss_named(settings.preference.loss).name);
  }
  if (data == settings::TaskData::Rollouts)
    values["samples"] = static_cast<double>(settings.rollout.samples);
  if (settings.task_facts().has_teacher) {
    values["loss"] = settings.distill.divergence;
    values["teacher"] = settings.distill.teacher;
    values["top_k"] = static_cast<double>(settings.distill.top_k);
  }
  if (settings::learns_rewards(settings.task_facts())) {
    values["loss"] = settings.policy.loss;
    values["kl_beta"] = settings.policy.kl_beta;
    values["inner_steps"] = static_cast<double>(settings.policy.inner_steps);
  }
  values["max_seq_len"] = static_cast<double>(settings.model.max_seq_len);
  values["mode"] = settings.tuning.mode;
  if (settings.tuning.mode == "full") return values;
  values["lora_r"] = static_cast<double>(settings.tuning.lora.r);
  values["lora_alpha"] = static_cast<double>(settings.tuning.lora.alpha);
  values["lora_dropout"] = settings.tuning.lora.dropout;
  return values;
}

telemetry::RunIdentity identity_of(const JoinedTraining& joined,
                                   const telemetry::TrainingLogOptions& options) {
  telemetry::RunIdentity identity;
  identity.name = joined.settings.run_name;
  identity.task = joined.settings.task;
  identity.config_yaml = options.config_yaml;
  identity.hosts = joined.agreed.hosts;
  identity.devices.assign(static_cast<size_t>(options.world_size), joined.run.device_kind());
  for (const checkpoint::StampField& field : joined.stamp.fields())
    identity.stamp[field.name] = field.value;
  identity.world_size = options.world_size;
  identity.threads = at::get_num_threads();
  identity.resume_step = options.resume_step;
  return identity;
}

// Call it when the run's record is written.
std::vector<std::unique_ptr<telemetry::ReportSink>> open_reports(const JoinedTraining& joined,
                                                                 int64_t resume_step) {
  const telemetry::RunFolder& folder = joined.run.folder;
  const nlohmann::json record = telemetry::read_run_record(folder.identity_path());
  const settings::LoggingSettings& logging = joined.settings.logging;
  std::vector<reports::ReportRequest> wanted;
  for (const std::string& program : logging.backend.names)
    wanted.push_back({program, settings::report_project(logging, program)});
  return reports::open_reports(
      wanted,
      {.folder = folder.path(),
       .name = std::filesystem::canonical(folder.path()).filename().string(),
       .config = nlohmann::ordered_json(record.value("config", nlohmann::json::object())),
       .resume_step = resume_step},
      joined.run.log);
}

}  // namespace

bool JoinedTraining::is_complete() const {
  return checkpoint.progress.step >= train::total_steps(settings.train, steps_per_epoch());
}

void JoinedTraining::report_complete() const {
  if (!is_complete()) return;
  const int64_t total = train::total_steps(settings.train, steps_per_epoch());
  const bool counts_steps = settings.train.steps > 0;
  run.log.info(fmt::format(
      "the run is complete at step {}: {} asks for {}; raise {} to train on",
      checkpoint.progress.step,
      counts_steps ? "train.steps" : fmt::format("train.epochs={:g}", settings.train.epochs),
      counted(total, "step"), counts_steps ? "it" : "it, or give train.steps,"));
}

optim::LearningRateSchedule JoinedTraining::restore_steps() const {
  const settings::TrainingSettings& train = settings.train;
  optim::LearningRateSchedule schedule(
      train.schedule, scaled_learning_rate(train, order.config().global_batch),
      train::total_steps(train, steps_per_epoch()), steps_per_epoch());
  restore_optimizer(checkpoint, state.optimizer, *state.strategy);
  return schedule;
}

std::optional<telemetry::TrainingLog> JoinedTraining::open_log(
    telemetry::TrainingLogOptions options, std::map<std::string, std::string> data_hashes) const {
  if (group.rank() != 0) return std::nullopt;
  const int64_t step = checkpoint.progress.step;
  options.run_folder = run.folder.path();
  options.tensorboard_folder =
      telemetry::tensorboard_folder(settings.logging.backend.names, options.tensorboard_folder);
  options.hparams.values = hparams_of(settings);
  options.total_steps = train::total_steps(settings.train, steps_per_epoch());
  options.total_epochs =
      static_cast<double>(options.total_steps) / static_cast<double>(steps_per_epoch());
  options.logging_steps = settings.train.logging_steps;
  options.log_interval = settings.logging.log_interval;
  options.eval_steps = settings.train.eval_steps;
  options.save_steps = settings.train.save_steps;
  options.world_size = group.size();
  options.resume_step = step > 0 ? step : -1;
  options.resume_state = checkpoint.trainer_state();
  options.config_yaml = read_file(run.request.settings.file);
  options.greater_is_better = settings.train.larger_is_better();
  options.progress.total = options.total_steps;
  options.progress.start = step;
  options.progress.color = run.request.color;
  if (run.log.level() == LogLevel::Quiet || is_complete())
    options.progress.style = telemetry::ProgressStyle::None;
  telemetry::RunIdentity identity = identity_of(*this, options);
  identity.data_hashes = std::move(data_hashes);
  run.folder.write_identity(identity);
  auto reports = open_reports(*this, options.resume_step);
  return std::optional<telemetry::TrainingLog>(std::in_place, std::move(options), run.log,
                                               std::move(reports));
}

void JoinedTraining::report_early_stop(const train::LoopResult& result) const {
  if (result.end != train::LoopEnd::EarlyStopped) return;
  const checkpoint::Progress& progress = result.progress;
  run.log.info(fmt::format(
      "stopped early after step {}: {} evaluations without a better {} than that of step {}",
      progress.step, progress.evaluations_without_improvement, settings.train.metric_for_best_model,
      progress.best_step));
}

telemetry::RunEnd run_end(train::LoopEnd end) {
  if (end == train::LoopEnd::Stopped) return telemetry::RunEnd::Stopped;
  return end == train::LoopEnd::EarlyStopped ? telemetry::RunEnd::EarlyStopped
                                             : telemetry::RunEnd::Finished;
}

ExitCode JoinedTraining::end(const train::LoopResult& result, const nlohmann::json& figures,
                             telemetry::TrainingLog* log) const {
  if (log != nullptr) {
    log->end(run_end(result.end));
    nlohmann::json all = log->final_figures();
    all.update(figures);
    run.folder.write_metrics(all);
  }
  group.wait_for_all();
  return result.end == train::LoopEnd::Stopped ? ExitCode::Stopped : ExitCode::Done;
}

}  // namespace convoy::recipes
