// SPDX-License-Identifier: Apache-2.0
//
// The log of the training loop on rank 0. Writes to events.jsonl, TensorBoard, reports, the console
// and trainer_state.json. Never stops a run: a full disk costs rows and causes one warning. One
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/logs/hparams.h"
#include "convoy/core/telemetry/logs/report_sink.h"
#include "convoy/core/telemetry/logs/tensorboard.h"
#include "convoy/core/telemetry/logs/trainer_state.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/core/telemetry/ranks/slow_rank.h"

namespace convoy::telemetry {

// One optimizer step, over all ranks. Negative values are unknown and are left out of the logs.
struct StepMetrics {
  int64_t step = 0;  // number of steps done, this step included
  double epoch = 0;  // passes over the data, fractional
  double loss = 0;   // nats per supervised token of the whole global batch
  double learning_rate = 0;
  double grad_norm = -1;  // before clipping
  int64_t rows = 0;       // rows of the global batch
  int64_t tokens = 0;     // input tokens of the global batch, padding excluded
  int64_t supervised_tokens = 0;
  double seconds = 0;             // wall time of the step
  double tokens_per_second = -1;  // below 0: tokens / seconds
  double flops = -1;              // FLOPs of the model's products in this step, over all ranks
  int64_t memory_bytes = -1;      // current memory of rank 0
  int64_t peak_memory_bytes = -1;
  std::vector<double> rank_losses{};         // one per rank, or empty
  std::vector<int64_t> rank_memory_bytes{};  // peak of each rank, or empty
  std::vector<int64_t> rank_held_bytes{};    // held now by each rank, or empty
  // Device memory reserved by each rank's allocator, or empty.
  std::vector<int64_t> rank_reserved_bytes{};
  // Seconds for which each rank was blocked in collectives since the previous step, or empty. The
  // rank that waits least is the one that delays the others.
  std::vector<double> rank_wait_seconds{};
  std::map<std::string, double> others{};  // rewards/margins, ...: a step may lack some
};

struct EvalMetrics {
  int64_t step = 0;
  double epoch = 0;
  std::string split = "eval";  // prefix of the names: eval_loss, test_loss
  double loss = 0;             // nats per supervised token
  int64_t rows = 0;
  int64_t batches = 0;
  int64_t supervised_tokens = 0;
  double seconds = 0;
  std::map<std::string, double> others{};                      // exact_match, ...
  double deciding = std::numeric_limits<double>::quiet_NaN();  // decides the best model; NaN: loss
};

struct CheckpointEvent {
  int64_t step = 0;
  std::filesystem::path path{};
  double seconds = 0;
  double pause_seconds = 0;  // time for which the training stood still
  int64_t bytes = -1;
  bool best = false;
};

enum class RunEnd { Finished, Stopped, EarlyStopped, Failed };
std::string_view end_word(RunEnd how);  // "finished", "stopped", "early_stopped", "failed"

struct TrainingLogOptions {
  std::filesystem::path run_folder{};
  std::filesystem::path tensorboard_folder{};  // empty: no TensorBoard files
  int64_t total_steps = 0;
  double total_epochs = 0;
  int64_t logging_steps =
      1;  // steps between TensorBoard points and log_history entries (loss: mean over them)
  int64_t log_interval = 1;  // steps between rows of events.jsonl
  int64_t eval_steps = 0;
  int64_t save_steps = 0;
  int64_t world_size = 1;
  int64_t resume_step = -1;    // -1 = from the beginning
  std::string resume_state{};  // text of the checkpoint's trainer_state.json, or empty
  std::string config_yaml{};   // shown as text in TensorBoard
  std::string model_config_json{};
  // Metrics that an evaluation's line shows beside the loss.
  std::vector<std::string> printed_metrics = {"perplexity", "accuracy"};
  // Name of the evaluation metric that decides the best model.
  std::string best_name = "loss";
  bool greater_is_better = false;  // how values of best_name are compared
  bool counts_tokens = true;       // false: rows are other samples, speed is in samples/s
  bool has_perplexity = true;      // true: an evaluation's loss is a mean over tokens
  double peak_flops = 0;           // peak FLOPs per second of the devices of all ranks; 0 = unknown
  // Parameters of this run for TensorBoard; not written when it has no values.
  HparamsSession hparams = {};
  ProgressOptions progress{};
};

// The fields of a failure row, for an error that rank 0 could not report: the launcher writes it.
nlohmann::ordered_json failure_fields(const Error& error);

class TrainingLog {
 public:
  // `reports` receive the values of the TensorBoard points as well.
  TrainingLog(TrainingLogOptions options, const Log& log,
              std::vector<std::unique_ptr<ReportSink>> reports = {});
  ~TrainingLog();

  void step(const StepMetrics& metrics);
  void evaluation(const EvalMetrics& metrics);
  // Call it before the best model is saved to `path`, so that the trainer_state.json there names
  // it.
  void set_best_checkpoint(const std::filesystem::path& path);
  void checkpoint(const CheckpointEvent& event);
  void warning(std::string_view message);
  void failure(const Error& error);
  // Adds one TensorBoard point for each value, besides the points of steps and evaluations.
  void scalars(int64_t step, const std::map<std::string, double>& values);
  // Call it after the last step. Ends the progress line, so that other lines may be printed.
  void close_progress();
  // Writes the last metrics, trainer_state.json of the whole run, and the end row; further calls do
  // nothing. Without this call the run has no end row.
  void end(RunEnd how);

  // The state after the last step, for checkpoints.
  const TrainerState& trainer_state() const { return state_; }
  std::string trainer_state_text() const { return trainer_state_json(state_); }
  // The final values of metrics.json: train_loss, train_runtime, eval_loss, ...
  nlohmann::json final_figures() const;
  Progress& progress() { return *progress_; }

 private:
  struct Window;  // sums since the last logged step

  double flops_share(const StepMetrics& metrics) const;  // share of the peak; below 0 = unknown
  void write_step_event(const StepMetrics& metrics, double per_second);
  void write_step_scalars(const StepMetrics& metrics, double mean_loss, double per_second);
  void record_best(const EvalMetrics& metrics);
  bool has_points() const { return tensorboard_ || !reports_.empty(); }
  void scalar(const std::string& tag, int64_t step, double value);
  // Hands the values since the last call to the reports.
  void report_row(int64_t step);
  std::string speed_name() const;

  TrainingLogOptions options_;
  Log log_;
  EventLog events_;
  std::unique_ptr<EventWriter> tensorboard_;
  std::vector<std::unique_ptr<ReportSink>> reports_;
  std::map<std::string, double> report_row_;  // by tag
  std::unique_ptr<Progress> progress_;
  TrainerState state_;
  std::unique_ptr<Window> window_;
  SlowRankWatch slow_rank_;
  bool progress_is_closed_ = false;
  bool ended_ = false;
};

}  // namespace convoy::telemetry
