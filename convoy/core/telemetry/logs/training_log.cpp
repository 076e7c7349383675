// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/training_log.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "convoy/core/base/files.h"

namespace convoy::telemetry {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

double log_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

void put_if_known(ordered_json& row, const char* key, double value) {
  if (value >= 0 || std::isnan(value)) row[key] = value;
}

void put_if_known(ordered_json& row, const char* key, int64_t value) {
  if (value >= 0) row[key] = value;
}

ProgressOptions progress_options(const TrainingLogOptions& options) {
  ProgressOptions progress = options.progress;
  if (progress.total == 0) progress.total = options.total_steps;
  if (progress.start == 0) progress.start = std::max<int64_t>(0, options.resume_step);
  return progress;
}

std::string fenced(std::string_view language, std::string_view text) {
  return fmt::format("```{}\n{}\n```", language, text);
}

std::vector<ScalarChart> charts() {
  return {{"loss", {"train/loss", "eval/loss"}},
          {"loss by rank", {R"(rank/\d+/loss)"}},
          {"memory by rank (GiB)", {R"(rank/\d+/memory_gib)"}},
          {"throughput (tokens/s)", {"train/tokens_per_second"}},
          {"share of the measured peak (MFU)", {"train/mfu"}}};
}

}  // namespace

std::string_view end_word(RunEnd how) {
  switch (how) {
    case RunEnd::Finished:
      return "finished";
    case RunEnd::Stopped:
      return "stopped";
    case RunEnd::EarlyStopped:
      return "early_stopped";
    case RunEnd::Failed:
      return "failed";
  }
  return "";
}

struct TrainingLog::Window {
  double loss_sum = 0;  // sum since the last TensorBoard point
  struct Mean {
    double sum = 0;
    int64_t steps = 0;  // number of steps that have this figure
  };
  std::map<std::string, Mean> others{};
  int64_t steps = 0;
  double run_loss_sum = 0;  // sum since this process began
  int64_t run_steps = 0;
  int64_t run_rows = 0;
  int64_t run_tokens = 0;
  int64_t run_supervised_tokens = 0;
  double run_flops = 0;
  double run_step_seconds = 0;  // steps only, without evaluations and saves
  double begin_seconds = log_clock_seconds();
  ProgressFigures shown;
  json eval_figures = json::object();  // latest value of each name
};

TrainingLog::TrainingLog(TrainingLogOptions options, const Log& log,
                         std::vector<std::unique_ptr<ReportSink>> reports)
    : options_(std::move(options)),
      log_(log),
      events_(options_.run_folder / "events.jsonl", log, options_.resume_step),
      reports_(std::move(reports)),
      progress_(std::make_unique<Progress>(progress_options(options_))),
      window_(std::make_unique<Window>()) {
  window_->shown.done = std::max<int64_t>(0, options_.resume_step);
  if (!options_.resume_state.empty()) state_ = parse_trainer_state(options_.resume_state);
  state_.max_steps = options_.total_steps;
  state_.num_train_epochs = static_cast<int64_t>(std::ceil(options_.total_epochs));
  state_.logging_steps = options_.logging_steps;
  state_.eval_steps = options_.eval_steps;
  state_.save_steps = options_.save_steps;
  events_.append(EventKind::Start, {{"version", CONVOY_VERSION},
                                    {"resume_step", options_.resume_step},
                                    {"total_steps", options_.total_steps},
                                    {"total_epochs", options_.total_epochs},
                                    {"world_size", options_.world_size},
                                    {"pid", ::getpid()}});
  if (options_.tensorboard_folder.empty()) return;
  tensorboard_ = std::make_unique<EventWriter>(options_.tensorboard_folder, log,
                                               std::max<int64_t>(0, options_.resume_step + 1));
  if (!options_.hparams.values.empty()) add_session(*tensorboard_, options_.hparams);
  if (options_.resume_step >= 0) return;
  if (!options_.config_yaml.empty())
    tensorboard_->add_text("args/text_summary", fenced("yaml", options_.config_yaml));
  if (!options_.model_config_json.empty())
    tensorboard_->add_text("model_config/text_summary", fenced("json", options_.model_config_json));
  tensorboard_->add_layout("Convoy", charts());
}

TrainingLog::~TrainingLog() = default;

void TrainingLog::scalar(const std::string& tag, int64_t step, double value) {
  if (tensorboard_) tensorboard_->add_scalar(tag, step, value);
  if (!reports_.empty()) report_row_[tag] = value;
}

void TrainingLog::report_row(int64_t step) {
  if (report_row_.empty()) return;
  for (const auto& report : reports_) report->add_row(step, report_row_);
  report_row_.clear();
}

void TrainingLog::step(const StepMetrics& metrics) {
  const int64_t amount = options_.counts_tokens ? metrics.tokens : metrics.rows;
  const double per_second = metrics.tokens_per_second >= 0
                                ? metrics.tokens_per_second
                                : rate(static_cast<double>(amount), metrics.seconds);
  Window& window = *window_;
  window.loss_sum += metrics.loss;
  for (const auto& [name, value] : metrics.others) {
    window.others[name].sum += value;
    ++window.others[name].steps;
  }
  ++window.steps;
  window.run_loss_sum += metrics.loss;
  ++window.run_steps;
  window.run_rows += metrics.rows;
  window.run_tokens += metrics.tokens;
  window.run_supervised_tokens += metrics.supervised_tokens;
  window.run_flops += std::max(0.0, metrics.flops);
  window.run_step_seconds += metrics.seconds;
  state_.global_step = metrics.step;
  state_.epoch = metrics.epoch;
  state_.num_input_tokens_seen += metrics.tokens;
  if (metrics.step % options_.log_interval == 0 || metrics.step == options_.total_steps)
    write_step_event(metrics, per_second);
  if (metrics.step % options_.logging_steps == 0) {
    const double mean_loss = window.loss_sum / static_cast<double>(window.steps);
    json entry = {{"epoch", metrics.epoch},
                  {"learning_rate", metrics.learning_rate},
                  {"loss", mean_loss},
                  {"step", metrics.step}};
    if (metrics.grad_norm >= 0 || std::isnan(metrics.grad_norm))
      entry["grad_norm"] = metrics.grad_norm;
    for (const auto& [name, figure] : window.others) {
      const double mean = figure.sum / static_cast<double>(figure.steps);
      entry[name] = mean;
      scalar("train/" + name, metrics.step, mean);
    }
    state_.log_history.push_back(std::move(entry));
    write_step_scalars(metrics, mean_loss, per_second);
    report_row(metrics.step);
    window.loss_sum = 0;
    window.others.clear();
    window.steps = 0;
  }
  window.shown.done = metrics.step;
  window.shown.loss = metrics.loss;
  window.shown.per_second = per_second;
  window.shown.per_second_unit = options_.counts_tokens ? "tokens/s" : "samples/s";
  window.shown.memory_bytes =
      metrics.peak_memory_bytes >= 0 ? metrics.peak_memory_bytes : metrics.memory_bytes;
  progress_->update(window.shown);
  const std::string slow = slow_rank_.step(metrics.seconds, metrics.rank_wait_seconds);
  if (!slow.empty()) warning(slow);
}

double TrainingLog::flops_share(const StepMetrics& metrics) const {
  if (metrics.flops < 0 || options_.peak_flops <= 0 || metrics.seconds <= 0) return -1;
  return metrics.flops / metrics.seconds / options_.peak_flops;
}

void TrainingLog::write_step_event(const StepMetrics& metrics, double per_second) {
  ordered_json row = {{"step", metrics.step},
                      {"epoch", metrics.epoch},
                      {"loss", metrics.loss},
                      {"learning_rate", metrics.learning_rate}};
  put_if_known(row, "grad_norm", metrics.grad_norm);
  for (const auto& [name, value] : metrics.others) row[name] = value;
  if (metrics.rows > 0) row["rows"] = metrics.rows;
  if (options_.counts_tokens) {
    row["tokens"] = metrics.tokens;
    row["supervised_tokens"] = metrics.supervised_tokens;
  }
  row[speed_name()] = per_second;
  row["seconds"] = metrics.seconds;
  put_if_known(row, "mfu", flops_share(metrics));
  put_if_known(row, "memory_bytes", metrics.memory_bytes);
  put_if_known(row, "peak_memory_bytes", metrics.peak_memory_bytes);
  if (!metrics.rank_losses.empty()) row["rank_losses"] = metrics.rank_losses;
  if (!metrics.rank_memory_bytes.empty()) row["rank_memory_bytes"] = metrics.rank_memory_bytes;
  if (!metrics.rank_held_bytes.empty()) row["rank_held_bytes"] = metrics.rank_held_bytes;
  if (!metrics.rank_reserved_bytes.empty())
    row["rank_reserved_bytes"] = metrics.rank_reserved_bytes;
  if (!metrics.rank_wait_seconds.empty()) row["rank_wait_seconds"] = metrics.rank_wait_seconds;
  events_.append(EventKind::Step, row);
}

void TrainingLog::write_step_scalars(const StepMetrics& metrics, double mean_loss,
                                     double per_second) {
  if (!has_points()) return;
  const int64_t step = metrics.step;
  scalar("train/loss", step, mean_loss);
  if (metrics.grad_norm >= 0 || std::isnan(metrics.grad_norm))
    scalar("train/grad_norm", step, metrics.grad_norm);
  scalar("train/learning_rate", step, metrics.learning_rate);
  scalar("train/epoch", step, metrics.epoch);
  scalar(fmt::format("train/{}", speed_name()), step, per_second);
  if (const double share = flops_share(metrics); share >= 0) scalar("train/mfu", step, share);
  if (metrics.supervised_tokens > 0)
    scalar("train/supervised_tokens", step, static_cast<double>(metrics.supervised_tokens));
  for (size_t rank = 0; rank < metrics.rank_losses.size(); ++rank)
    scalar(fmt::format("rank/{}/loss", rank), step, metrics.rank_losses[rank]);
  for (size_t rank = 0; rank < metrics.rank_memory_bytes.size(); ++rank)
    scalar(fmt::format("rank/{}/memory_gib", rank), step,
           static_cast<double>(metrics.rank_memory_bytes[rank]) / kBytesPerGib);
}

void TrainingLog::evaluation(const EvalMetrics& metrics) {
  std::map<std::string, double> figures = metrics.others;
  figures["loss"] = metrics.loss;
  figures["runtime"] = metrics.seconds;
  figures["samples_per_second"] = rate(static_cast<double>(metrics.rows), metrics.seconds);
  figures["steps_per_second"] = rate(static_cast<double>(metrics.batches), metrics.seconds);

  json entry = {{"epoch", metrics.epoch}, {"step", metrics.step}};
  for (const auto& [name, value] : figures) {
    entry[metrics.split + "_" + name] = value;
    window_->eval_figures[metrics.split + "_" + name] = value;
    scalar(metrics.split + "/" + name, metrics.step, value);
  }
  state_.log_history.push_back(std::move(entry));
  const bool has_perplexity = options_.counts_tokens && options_.has_perplexity;
  if (has_perplexity) {
    figures["perplexity"] = std::exp(metrics.loss);
    window_->eval_figures[metrics.split + "_perplexity"] = figures["perplexity"];
    scalar(metrics.split + "/perplexity", metrics.step, figures["perplexity"]);
  }
  report_row(metrics.step);

  ordered_json row = {{"step", metrics.step},
                      {"epoch", metrics.epoch},
                      {"split", metrics.split},
                      {"loss", metrics.loss}};
  if (has_perplexity) row["perplexity"] = figures["perplexity"];
  row["rows"] = metrics.rows;
  if (options_.counts_tokens) row["supervised_tokens"] = metrics.supervised_tokens;
  row["seconds"] = metrics.seconds;
  for (const auto& [name, value] : metrics.others) row[name] = value;
  events_.append(EventKind::Eval, row);

  if (metrics.split == "eval") record_best(metrics);
  window_->shown.eval_loss = metrics.loss;
  std::string text =
      fmt::format("step {}: {} loss {:.4f}", metrics.step, metrics.split, metrics.loss);
  for (const std::string& name : options_.printed_metrics) {
    const auto found = figures.find(name);
    if (found == figures.end()) continue;
    const double value = found->second;
    text += fmt::format(", {} {}", name,
                        value < 1e4 ? fmt::format("{:.4f}", value) : fmt::format("{:.3e}", value));
  }
  if (options_.progress.style != ProgressStyle::None) progress_->message(text);
}

void TrainingLog::scalars(int64_t step, const std::map<std::string, double>& values) {
  for (const auto& [tag, value] : values) scalar(tag, step, value);
  report_row(step);
}

std::string TrainingLog::speed_name() const {
  return options_.counts_tokens ? "tokens_per_second" : "samples_per_second";
}

void TrainingLog::record_best(const EvalMetrics& metrics) {
  const double figure = std::isnan(metrics.deciding) ? metrics.loss : metrics.deciding;
  const bool better =
      !state_.best_metric ||
      (options_.greater_is_better ? figure > *state_.best_metric : figure < *state_.best_metric);
  if (!better || std::isnan(figure)) return;
  state_.best_metric = figure;
  state_.best_global_step = metrics.step;
}

void TrainingLog::set_best_checkpoint(const std::filesystem::path& path) {
  state_.best_model_checkpoint = path.string();
}

void TrainingLog::checkpoint(const CheckpointEvent& event) {
  ordered_json row = {
      {"step", event.step}, {"path", event.path.string()}, {"seconds", event.seconds}};
  row["pause_seconds"] = event.pause_seconds;
  put_if_known(row, "bytes", event.bytes);
  row["best"] = event.best;
  events_.append(EventKind::Checkpoint, row);
}

void TrainingLog::warning(std::string_view message) {
  events_.append(EventKind::Warning, {{"step", state_.global_step}, {"message", message}});
  progress_->message(fmt::format("warning: {}", message));
}

void TrainingLog::failure(const Error& error) {
  events_.append(EventKind::Failure, failure_fields(error));
}

ordered_json failure_fields(const Error& error) {
  const ErrorLocation& location = error.location();
  ordered_json row = {{"code", static_cast<int>(error.code())},
                      {"kind", error.kind()},
                      {"message", error.sentence()}};
  put_if_known(row, "rank", static_cast<int64_t>(location.rank));
  put_if_known(row, "step", location.step);
  return row;
}

json TrainingLog::final_figures() const {
  const Window& window = *window_;
  const double runtime = log_clock_seconds() - window.begin_seconds;
  json figures = window.eval_figures;
  figures["epoch"] = state_.epoch;
  figures["global_step"] = state_.global_step;
  // A resumed run without steps left to do keeps the results of the earlier run.
  if (window.run_steps > 0) {
    figures["train_runtime"] = runtime;
    figures["train_samples_per_second"] = rate(static_cast<double>(window.run_rows), runtime);
    figures["train_steps_per_second"] = rate(static_cast<double>(window.run_steps), runtime);
    if (options_.counts_tokens) {
      figures["train_tokens_per_second"] = rate(static_cast<double>(window.run_tokens), runtime);
      figures["train_tokens"] = window.run_tokens;
      figures["train_supervised_tokens"] = window.run_supervised_tokens;
    }
    if (window.run_flops > 0) {
      const double per_second = rate(window.run_flops, window.run_step_seconds);
      figures["train_flops"] = window.run_flops;
      figures["train_flops_per_second"] = per_second;
      if (options_.peak_flops > 0) {
        figures["peak_flops_per_second"] = options_.peak_flops;
        figures["train_mfu"] = per_second / options_.peak_flops;
      }
    }
    figures["train_loss"] = window.run_loss_sum / static_cast<double>(window.run_steps);
  }
  if (state_.best_metric) {
    figures["best_eval_" + options_.best_name] = *state_.best_metric;
    figures["best_step"] = *state_.best_global_step;
  }
  return figures;
}

void TrainingLog::end(RunEnd how) {
  if (std::exchange(ended_, true)) return;
  const json figures = final_figures();
  const bool trained = window_->run_steps > 0;
  if (trained && (how == RunEnd::Finished || how == RunEnd::EarlyStopped)) {
    json entry = {
        {"epoch", state_.epoch}, {"step", state_.global_step}, {"total_flos", state_.total_flos}};
    for (const char* name :
         {"train_loss", "train_runtime", "train_samples_per_second", "train_steps_per_second"}) {
      if (!figures.contains(name)) continue;
      entry[name] = figures[name];
      scalar(fmt::format("train/{}", name), state_.global_step, figures[name].get<double>());
    }
    state_.log_history.push_back(std::move(entry));
    write_file_atomic(options_.run_folder / "trainer_state.json", trainer_state_text());
  }
  if (tensorboard_ && !options_.hparams.values.empty())
    add_session_end(*tensorboard_, how != RunEnd::Failed);
  report_row(state_.global_step);
  for (const auto& report : reports_) report->end(how == RunEnd::Failed ? 1 : 0);
  ordered_json row = {{"status", end_word(how)}, {"step", state_.global_step}};
  row["figures"] = figures;
  events_.append(EventKind::End, row);
  close_progress();
}

// The closing line shows the last evaluation, which came after the last step's line, and the speed
// over all steps instead of the speed of the last step.
void TrainingLog::close_progress() {
  if (std::exchange(progress_is_closed_, true)) return;
  if (window_->run_step_seconds > 0)
    window_->shown.per_second =
        rate(static_cast<double>(options_.counts_tokens ? window_->run_tokens : window_->run_rows),
             window_->run_step_seconds);
  progress_->update(window_->shown);
  progress_->finish();
}

}  // namespace convoy::telemetry
