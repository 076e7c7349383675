// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>

#include "convoy/apps/recipes/posttraining/rollout_training.h"
#include "convoy/apps/recipes/training/effective_batch.h"
#include "convoy/apps/recipes/training/export_result.h"
#include "convoy/apps/recipes/training/fine_tune_rank.h"
#include "convoy/apps/recipes/training/generating_objective.h"
#include "convoy/apps/recipes/training/language_start.h"
#include "convoy/apps/recipes/training/optimizer_settings.h"
#include "convoy/apps/recipes/training/reference_scores.h"
#include "convoy/apps/recipes/training/step_flops.h"
#include "convoy/apps/recipes/training/train_stamp.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/masks/answer_ends.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/tensor_memory.h"
#include "convoy/machine/device/threads.h"
#include "convoy/model/models/export.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/loop/unpaired_objective.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::recipes {
namespace {

// Restores the checkpoint's values. Values in memory are read only by rank 0; deferred values are
// read by every rank.
void restore_values(const LanguageInput& input) {
  const FoundCheckpoint& checkpoint = input.checkpoint;
  if (checkpoint.folder.empty()) return;
  nn::DeferredValues* const values = input.base.values.get();
  std::vector<nn::NamedTensor> in_memory = input.trained.parameters;
  if (values != nullptr) {
    defer_to_saved(
        *values, in_memory,
        std::make_shared<const checkpoint::GroupReader>(checkpoint.folder, input.trained.group));
    std::erase_if(in_memory, [values](const nn::NamedTensor& parameter) {
      return values->contains(parameter.value);
    });
  }
  if (checkpoint.loaded)
    restore_parameters(in_memory, checkpoint.loaded->group(input.trained.group));
}

PreparedState prepare_state(const TrainingRun& run, const LanguageInput& input,
                            const settings::TrainSettings& settings, comm::Group& group) {
  restore_values(input);
  LoadedModel& base = input.base;
  std::unique_ptr<parallel::Strategy> strategy =
      parallel::make_strategy(settings.parallel, group, run.environment.local_world);
  std::vector<optim::OptimizedParameter> optimized = parallel::prepare_parameters(
      *strategy, *base.model, input.trained.parameters, base.values.get());
  if (base.lora) {
    std::vector<int64_t> dims;
    for (const parallel::ParameterShard& shard : strategy->shards())
      dims.push_back(static_cast<int64_t>(shard.shape.size()));
    set_loraplus_rates(optimized, dims, settings.tuning.lora.loraplus_lr_ratio);
  }
  optim::AdamW optimizer(adamw_config(settings.train, settings.seed), std::move(optimized));
  base.values.reset();
  return {std::move(strategy), std::move(optimizer)};
}

// Collective. Returns 0 when the peak of one of the hosts was not measured.
double measured_peak(const TrainingRun& run, comm::Group& group) {
  const std::vector<double> peaks = comm::exchange(
      group, known_peak_of_rank(run.device_kind(), run.dtype, run.environment.local_world));
  const bool all_known =
      std::all_of(peaks.begin(), peaks.end(), [](double peak) { return peak > 0; });
  return all_known ? std::accumulate(peaks.begin(), peaks.end(), 0.0) : 0;
}

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

// The end tokens of the result: the ends that the training rows teach, and the EOS that the user
// names.
models::ResultEnds result_ends(const TrainingRun& run, const LanguageInput& input) {
  const text::Tokenizer& tokenizer = input.base.tokenizer;
  models::ResultEnds ends{
      .ids = data::learnt_ends(input.splits.train, tokenizer, run.settings.model.max_seq_len),
      .eos_token = run.settings.data.eos_token};
  if (!ends.eos_token.empty()) {
    std::erase(ends.ids, *tokenizer.eos_id());
    ends.ids.insert(ends.ids.begin(), *tokenizer.eos_id());
  }
  return ends;
}

// A language model's training, for train_joined().
struct FineTune : JoinedTraining {
  const LanguageInput& input;
  const SettledBatch& batch;
  const models::ResultEnds& ends;
  const train::ReferenceScores& reference;

  void report_plan() const;
  std::map<std::string, std::string> record(telemetry::TrainingLogOptions& options) const;
  std::unique_ptr<train::TrainingObjective> make_objective(telemetry::TrainingLog* log) const;
  checkpoint::NamedFiles files_alongside() const;
  nlohmann::json conclude(const train::LoopResult& result,
                          const train::TrainingObjective& objective,
                          telemetry::TrainingLog* log) const;

 private:
  settings::TaskData task_data() const { return settings.task_facts().data; }
  bool compares() const { return settings::learns_preferences(settings.task_facts()); }
  bool makes_its_rows() const { return settings::makes_its_rows(settings.task_facts()); }
  void report_balance() const;
  std::string identity_of_rollouts() const;
  void report_speed(const nlohmann::json& figures) const;
  void use_best(const checkpoint::Progress& progress) const;
  nlohmann::json memory_figures(bool has_trained) const;
  nlohmann::json figures_of(const train::LoopResult& result) const;
};

// Logs model, data, masks, batch and steps, one line each.
void FineTune::report_plan() const {
  const int64_t total = nn::count_parameters(*input.base.model);
  const std::string held = coding_text(*input.base.model);
  int64_t trained = 0;
  for (const nn::NamedTensor& parameter : parameters) trained += parameter.value.numel();
  run.log.info(fmt::format(
      "model: {} ({}), {} parameters, {}{}; training {} ({}, {})", settings.model.name,
      input.base.model->family(), telemetry::count_text(static_cast<double>(total)), run.dtype,
      held == "none" ? "" : " over " + held, telemetry::count_text(static_cast<double>(trained)),
      settings.tuning.mode, share_text(trained, total)));
  if (!input.splits.policy.empty()) run.log.info(input.splits.policy);
  for (size_t part = 0; part < input.splits.mix.size(); ++part)
    run.log.info(mix_text(input.splits, *batch.plan.mix_schedule(), part));
  report_batch(run.log, settings.train, order,
               settings.train.packing                     ? "block"
               : task_data() == settings::TaskData::Pairs ? "pair"
               : makes_its_rows()                         ? "problem"
                                                          : "row");
  if (task_data() == settings::TaskData::Judged) report_balance();
}

// Logs how the weights balance unequal numbers of good and bad answers. The KTO paper recommends a
// ratio of the weighted numbers in [1, 4/3] (equation 8).
void FineTune::report_balance() const {
  const data::TokenDataset& rows = input.splits.train;
  int64_t num_good = 0;
  for (int64_t row = 0; row < rows.num_rows(); ++row) num_good += rows.is_desirable(row) ? 1 : 0;
  const auto good = static_cast<double>(num_good);
  const double bad = static_cast<double>(rows.num_rows()) - good;
  const settings::PreferenceSettings& preference = settings.preference;
  const double weighed_good = preference.desirable_weight * good;
  const double weighed_bad = preference.undesirable_weight * bad;
  if (weighed_good == 0 || weighed_bad == 0)
    return run.log.warning(
        fmt::format("labels: {} good, {} bad; one kind of answers is not learnt", good, bad));
  const double ratio = weighed_good / weighed_bad;
  const std::string text =
      fmt::format("labels: {} good, {} bad; weighed {:.2f} to 1", good, bad, ratio);
  constexpr double kRounding = 0.01;
  if (ratio >= 1 - kRounding && ratio <= 4.0 / 3 + kRounding) return run.log.info(text);
  run.log.warning(fmt::format(
      "{}, where KTO's authors advise 1 to 1.33: preference.desirable_weight={:.2f}, or "
      "undesirable_weight={:.2f}",
      text, weighed_bad / good, weighed_good / bad));
}

std::map<std::string, std::string> FineTune::record(telemetry::TrainingLogOptions& options) const {
  const settings::GeneratingEvaluationSettings& evaluation = settings.train.generating_evaluation;
  options.tensorboard_folder = run.folder.tensorboard_folder();
  options.model_config_json = input.base.folder.text("config.json").value();
  options.best_name = settings.train.best_metric_name();
  options.has_perplexity = !compares() && !makes_its_rows();
  if (task_data() == settings::TaskData::Pairs)
    options.printed_metrics = {"accuracy", "rewards/margins"};
  else if (makes_its_rows())
    options.printed_metrics = {"reward", "accuracy", "completions/mean_length"};
  else if (settings.estimates_divergence())
    options.printed_metrics = {"rewards/margins", "kl"};
  else if (compares())
    options.printed_metrics = {"rewards/margins"};
  else
    options.printed_metrics = {"perplexity"};
  if (evaluation.predict_with_generate)
    for (const std::string& name : evaluation.measured_metrics(options.best_name))
      options.printed_metrics.push_back(name);
  options.peak_flops = measured_peak(run, group);
  std::map<std::string, std::string> hashes;
  for (const data::SplitReport& report : input.splits.reports)
    hashes[report.name] = report.content_hash;
  return hashes;
}

// The weights, the texts and their rewards of a step are decided by this and by the trained values.
std::string FineTune::identity_of_rollouts() const {
  std::string words = "format 1";
  for (const char* const field :
       {"seed", "dtype", "quantisation", "data", "model", "tokenizer", "shuffle", "global_batch",
        "objective", "rollout", "start_adapter"})
    if (const checkpoint::StampField* const found = stamp.find(field))
      words += fmt::format("\n{}: {}", field, found->value);
  return words;
}

std::unique_ptr<train::TrainingObjective> FineTune::make_objective(
    telemetry::TrainingLog* log) const {
  if (task_data() == settings::TaskData::Rollouts) {
    auto of_rollouts = make_rollout_objective({.run = run,
                                               .settings = settings,
                                               .base = input.base,
                                               .problems = input.problems,
                                               .strategy = *state.strategy,
                                               .group = group,
                                               .log = log,
                                               .identity = identity_of_rollouts()},
                                              batch.plan);
    of_rollouts->count_flops(input.trained.step_flops);
    return of_rollouts;
  }
  if (task_data() == settings::TaskData::Judged) {
    auto unpaired = std::make_unique<train::UnpairedObjective>(
        *input.base.model, batch.plan, input.splits.val,
        train::UnpairedOptions{.preference = settings.preference,
                               .estimates_divergence = settings.estimates_divergence(),
                               .most_tokens = settings.model.max_seq_len,
                               .eval_batch_size = settings.train.rows_of_evaluation_batch()},
        reference, group);
    unpaired->count_flops(input.trained.step_flops);
    return unpaired;
  }
  if (compares()) {
    auto preferences = std::make_unique<train::PreferenceObjective>(
        *input.base.model, batch.plan, input.splits.val, settings.train.rows_of_evaluation_batch(),
        objectives::PairObjective(settings), reference);
    preferences->count_flops(input.trained.step_flops);
    return preferences;
  }
  std::unique_ptr<train::LanguageObjective> objective;
  if (settings.train.generating_evaluation.predict_with_generate)
    objective = std::make_unique<GeneratingObjective>(
        input.base, batch.plan, input.splits.val, input.questions, settings,
        GeneratingOptions{.samples_folder = run.folder.samples_folder(),
                          .engines_on_host = run.environment.local_world},
        run.log);
  else
    objective = std::make_unique<train::LanguageObjective>(
        *input.base.model, batch.plan, input.splits.val, settings.train.rows_of_evaluation_batch());
  objective->count_flops(input.trained.step_flops);
  return objective;
}

// Files that make the checkpoint folder of a LoRA run a PEFT adapter, and that of a full run a
// Hugging Face model. The checkpoint writes the file with the parameters beside them.
checkpoint::NamedFiles FineTune::files_alongside() const {
  const LoadedModel& base = input.base;
  if (base.lora) {
    checkpoint::NamedFiles files{
        {"adapter_config.json", base.lora->config_text(settings.model.name)}};
    if (const auto text = models::generation_config_text(base.folder, ends))
      files.emplace("generation_config.json", *text);
    if (!base.given_template.empty()) files.emplace("chat_template.jinja", base.given_template);
    return files;
  }
  if (!state.strategy->values_are_whole()) return {};  // pieces make no model folder
  // The group's file has the text model alone.
  if (models::holds_more_than_text(base.folder) && !settings.train.export_text_only)
    run.log.info(fmt::format("checkpoints hold the text model alone, without the rest of {}{}",
                             base.folder.path().string(),
                             settings.train.export_model ? "; the result is whole" : ""));
  return models::model_files(base.folder, models::Extent::TextAlone, device::parse_dtype(run.dtype),
                             ends, base.given_template);
}

void FineTune::report_speed(const nlohmann::json& figures) const {
  if (!figures.contains("train_mfu")) return;  // convoy bench peak has not measured this machine
  const double per_second = figures["train_flops_per_second"];
  run.log.info(fmt::format(
      "speed: {:.1f} GFLOP/s of the model, {}", per_second / 1e9,
      peak_share_text(figures["train_mfu"], figures["peak_flops_per_second"], run.dtype)));
}

// Loads the best checkpoint's values: on rank 0 only when values are whole, else collective.
void FineTune::use_best(const checkpoint::Progress& progress) const {
  if (!takes_best(settings.train, progress)) return;
  std::optional<checkpoint::LoadedCheckpoint> best;
  if (group.rank() == 0) best = run.checkpoints.load_best();
  if (state.strategy->values_are_whole()) {
    if (!best) return;
    restore_parameters(parameters, best->group(parameter_group));
  } else {
    const std::string folder = folder_of_best(group, best);
    if (folder.empty()) return;
    restore_shards(state.strategy->shards(), {folder, parameter_group});
    state.strategy->finish_step();
  }
  input.base.model->head().weight_changed();
  for (nn::Linear* linear : input.base.model->block_linears()) linear->weight_changed();
  run.log.info(fmt::format("taking the best checkpoint: step {}, eval {} {:.4f}",
                           progress.best_step, settings.train.best_metric_name(),
                           *progress.best_metric));
}

// Collective. Planned and measured memory; empty when no steps were left, so that the earlier run's
// values stay.
nlohmann::json FineTune::memory_figures(bool has_trained) const {
  const std::vector<int64_t> peaks =
      comm::exchange(group, device::rank_memory(run.rank_device.device).peak_bytes);
  if (!has_trained) return nlohmann::json::object();
  const std::optional<BatchChoice>& choice = batch.choice;
  run.log.info(fmt::format(
      "memory of a rank: {} at the peak, {} planned{}",
      telemetry::bytes_text(*std::max_element(peaks.begin(), peaks.end())),
      telemetry::bytes_text(batch.memory.total_bytes()),
      choice ? fmt::format(", {} predicted", telemetry::bytes_text(choice->predicted_bytes)) : ""));
  nlohmann::json figures = {{"planned_memory_bytes", batch.memory.total_bytes()},
                            {"rank_peak_memory_bytes", peaks}};
  if (choice) figures["auto_batch"] = choice->to_json();
  return figures;
}

// Includes the final status, which SFT-Play's scripts read.
nlohmann::json FineTune::figures_of(const train::LoopResult& result) const {
  const checkpoint::Progress& progress = result.progress;
  const data::BatchPlanConfig& steps = batch.plan.config();
  nlohmann::json figures = {{"status", telemetry::end_word(run_end(result.end))}};
  figures["run_name"] = settings.run_name;
  figures["step"] = progress.step;
  figures["tokens_seen"] = progress.tokens_seen;
  figures["supervised_tokens_seen"] = progress.supervised_tokens_seen;
  figures["per_device_train_batch_size"] = steps.batch_size;
  figures["gradient_accumulation_steps"] = steps.grad_accum;
  figures["global_batch_size"] = steps.global_batch;
  figures["eval_gen_new_tokens"] = settings.train.generating_evaluation.generation_max_new_tokens;
  figures["eval_num_beams"] = 1;
  figures["lr_scaling"] = settings.train.lr_scaling;
  figures["peak_learning_rate"] = scaled_learning_rate(settings.train, steps.global_batch);
  if (progress.best_metric) {
    figures["best_" + settings.train.metric_for_best_model] = *progress.best_metric;
    figures["best_step"] = progress.best_step;
  }
  return figures;
}

nlohmann::json FineTune::conclude(const train::LoopResult& result,
                                  const train::TrainingObjective& /*objective*/,
                                  telemetry::TrainingLog* log) const {
  if (log != nullptr) log->close_progress();
  const bool has_trained = result.progress.step > checkpoint.progress.step;
  nlohmann::json figures = figures_of(result);
  figures.update(memory_figures(has_trained));
  run.trace.finish();
  const bool stopped = result.end == train::LoopEnd::Stopped;
  report_early_stop(result);
  const bool exports = settings.train.export_model && !stopped;
  if (exports && (group.rank() == 0 || !state.strategy->values_are_whole())) {
    run.flight().set_phase("export");
    use_best(result.progress);
    export_result({.loaded = input.base,
                   .name = settings.model.name,
                   .folder = run.folder,
                   .dtype = device::parse_dtype(run.dtype),
                   .extent = models::extent_of(settings.train.export_text_only),
                   .ends = ends,
                   .writes = group.rank() == 0},
                  run.log);
  }
  if (log != nullptr && !stopped) run.checkpoints.settle();
  if (log != nullptr && has_trained) report_speed(log->final_figures());
  return figures;
}

// When the reference scores the rows. The scores need the model's loaded values, so they come
// before the checkpoint's values and the strategy. Task kto scores pairs too, of each prompt with
// another row's answer of its step: the pairs are known only when the step's size is, and a
// measured size needs the prepared state. A run that measures has no checkpoint, and the
// measurement changes no values, so the model then still has its loaded values.
enum class ScoringTime { BeforeState, AfterBatch };

ScoringTime scoring_time(const TrainingRun& run, const LanguageInput& input,
                         const SettledBatch& batch) {
  return must_measure(run, input) && batch.settings.estimates_divergence()
             ? ScoringTime::AfterBatch
             : ScoringTime::BeforeState;
}

ExitCode train_from(TrainingRun& run, LoadedModel& base, FoundCheckpoint checkpoint) {
  const LanguageInput input = find_language_input(run, base, std::move(checkpoint));
  SettledBatch batch = settled_batch(run, input);
  const Agreed agreed =
      agree(run, input.checkpoint, batch.stamp, [&] { return shared_inputs(run, input); });
  const std::unique_ptr<comm::Group> group = join(run, agreed);
  Underway underway{.settings = batch.settings, .model = base.model.get(), .group = group.get()};

  const ScoringTime scoring = scoring_time(run, input, batch);
  std::optional<train::ReferenceScores> reference;  // empty: the run was stopped
  or_give_up(run, underway, [&] {
    if (scoring == ScoringTime::BeforeState)
      reference = reference_scores(run, input, batch, *group);
    else  // a wrong reference ends the run now, not after the measurement
      require_tokenizer_of(batch.settings.preference.reference, input.base.tokenizer,
                           batch.settings.data.eos_token, batch.settings.model.name);
  });
  if (scoring == ScoringTime::BeforeState && !reference) return ExitCode::Stopped;

  PreparedState prepared =
      or_give_up(run, underway, [&] { return prepare_state(run, input, batch.settings, *group); });
  underway.optimizer = &prepared.optimizer;
  const models::ResultEnds ends = result_ends(run, input);
  return or_give_up(run, underway, [&] {
    if (must_measure(run, input)) {
      std::optional<SettledBatch> measured = measured_batch(run, input, batch, prepared, *group);
      if (!measured) return ExitCode::Stopped;
      batch = std::move(*measured);
    }
    if (scoring == ScoringTime::AfterBatch) {
      prepared.strategy->settle();
      device::forget_kept_tensor_memory();  // the measurement took as much as there was
      reference = reference_scores(run, input, batch, *group);
      if (!reference) return ExitCode::Stopped;
    }
    return train_joined(FineTune{{.run = run,
                                  .settings = batch.settings,
                                  .checkpoint = input.checkpoint,
                                  .agreed = agreed,
                                  .stamp = batch.stamp,
                                  .order = batch.plan.order(),
                                  .parameters = input.trained.parameters,
                                  .parameter_group = input.trained.group,
                                  .group = *group,
                                  .state = prepared,
                                  .model = base.model.get()},
                                 input,
                                 batch,
                                 ends,
                                 *reference});
  });
}

}  // namespace

ExitCode fine_tune_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                        const std::shared_ptr<comm::StoreBarrier>& store_barrier,
                        const std::atomic<bool>& stop_requested, const Log& log) {
  const Log own_log = store_barrier->rank() == 0 ? log : Log(LogLevel::Quiet);
  TrainingRun run(request, with_adapter_start(settings, own_log), store_barrier, stop_requested,
                  log);
  return or_give_up(run, {.settings = run.settings}, [&] {
    prepare_rank(run);
    std::optional<OtherWork> others;
    if (request.tell_busy_cores && run.environment.replicas == 1) others.emplace();
    FoundCheckpoint checkpoint = find_checkpoint(run);
    LoadedModel base = load_base(run);
    if (const std::string told = others ? device::too_many_threads(*others) : ""; !told.empty())
      run.log.info(told);
    return or_give_up(run, {.settings = run.settings, .model = base.model.get()},
                      [&] { return train_from(run, base, std::move(checkpoint)); });
  });
}

}  // namespace convoy::recipes
