// SPDX-License-Identifier: Apache-2.0
//
// A training whose ranks have joined, of any kind: from the prepared state to the final results.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/training/training_start.h"
#include "convoy/data/datasets/batches/epoch_order.h"
#include "convoy/train/loop/train_loop.h"
#include "convoy/train/optim/schedule.h"

namespace convoy::recipes {

// The values are restored; the optimizer's states are empty.
struct PreparedState {
  std::unique_ptr<parallel::Strategy> strategy;
  optim::AdamW optimizer;
};

// The parts that every kind of training has. For train_joined() a kind is a struct derived from
// this one that adds:
//   void report_plan() const;
//   // Collective. Sets the log options that differ by kind; returns the data hashes by split.
//   std::map<std::string, std::string> record(telemetry::TrainingLogOptions& options) const;
//   std::unique_ptr<SomeObjective> make_objective(telemetry::TrainingLog* log) const;
//   checkpoint::NamedFiles files_alongside() const;  // on rank 0
//   // Collective. Exports; returns the values of metrics.json that the log does not write.
//   nlohmann::json conclude(const train::LoopResult& result, const SomeObjective& objective,
//                           telemetry::TrainingLog* log) const;
// `log` is null on all ranks but 0.
struct JoinedTraining {
  TrainingRun& run;
  const settings::TrainSettings& settings;  // with a number in place of each auto
  const FoundCheckpoint& checkpoint;
  const Agreed& agreed;
  const checkpoint::Stamp& stamp;
  const data::EpochOrder& order;
  const std::vector<nn::NamedTensor>& parameters;
  std::string parameter_group;  // as in train::LoopParts
  std::vector<nn::NamedTensor> buffers = {};
  comm::Group& group;
  PreparedState& state;
  nn::CausalLm* model = nullptr;  // null in a classifier's training

  int64_t steps_per_epoch() const { return order.steps_per_epoch() * settings.steps_per_batch(); }
  // True when the checkpoint is at or past the last step.
  bool is_complete() const;
  // Logs for a complete run which setting to raise to continue the training.
  void report_complete() const;
  // Collective. Restores the optimizer from the checkpoint.
  optim::LearningRateSchedule restore_steps() const;
  // Writes run.json and opens the log on rank 0; empty on other ranks.
  std::optional<telemetry::TrainingLog> open_log(
      telemetry::TrainingLogOptions options, std::map<std::string, std::string> data_hashes) const;
  // Logs why a run ended before its last step, when early stopping ended it.
  void report_early_stop(const train::LoopResult& result) const;
  // Collective. Ends the log, writes metrics.json.
  ExitCode end(const train::LoopResult& result, const nlohmann::json& figures,
               telemetry::TrainingLog* log) const;
};

telemetry::RunEnd run_end(train::LoopEnd end);  // the log's value for the end of the loop

// Collective. Blocks until the training ends. A dry run ends before the first file is written.
template <class Kind>
ExitCode train_joined(const Kind& kind) {
  const JoinedTraining& joined = kind;
  const optim::LearningRateSchedule schedule = joined.restore_steps();
  kind.report_plan();
  joined.report_complete();
  if (joined.run.request.plan_only) return ExitCode::Done;
  telemetry::TrainingLogOptions options;
  std::map<std::string, std::string> data_hashes = kind.record(options);
  std::optional<telemetry::TrainingLog> opened =
      joined.open_log(std::move(options), std::move(data_hashes));
  telemetry::TrainingLog* const log = opened ? &*opened : nullptr;
  const Underway underway{.settings = joined.settings,
                          .model = joined.model,
                          .optimizer = &joined.state.optimizer,
                          .group = &joined.group,
                          .log = log};
  return or_give_up(joined.run, underway, [&] {
    const auto objective = kind.make_objective(log);
    checkpoint::NamedFiles files;
    if (log != nullptr) files = kind.files_alongside();
    const train::LoopParts parts{.objective = *objective,
                                 .parameters = joined.parameters,
                                 .parameter_group = joined.parameter_group,
                                 .strategy = *joined.state.strategy,
                                 .optimizer = joined.state.optimizer,
                                 .schedule = schedule,
                                 .stamp = joined.stamp,
                                 .checkpoints = joined.run.checkpoints,
                                 .log = log,
                                 .flight = joined.run.flight(),
                                 .files_alongside = std::move(files),
                                 .buffers = joined.buffers,
                                 .stop_requested = joined.run.stop_requested};
    const train::LoopResult result =
        train::run_training_loop(parts, joined.settings, joined.checkpoint.progress);
    return joined.end(result, kind.conclude(result, *objective, log), log);
  });
}

}  // namespace convoy::recipes
