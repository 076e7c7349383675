// SPDX-License-Identifier: Apache-2.0
//
// The tasks of lm-evaluation-harness that a training measures before and after it (`eval.tasks`).
// RUN/tasks.json keeps the figures: {"settings": {...}, "before": FIGURES, "before_of": MODEL,
// "after": FIGURES, "after_of": MODEL}; the harness' own files are in RUN/tasks/before and after.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/front/harness/harness_run.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {

class RunTasks {
 public:
  // Without tasks every method does nothing. Reads RUN/tasks.json. The first three arguments must
  // outlive this object. `on_gpus`: the training computes on GPUs. While the object lives,
  // `stop_signals` (of the launcher that starts the ranks) and SIGUSR1 wait for the SignalStream
  // that reads them next: none of them ends the program between a measurement and the ranks.
  RunTasks(const Context& context, const settings::TrainSettings& train,
           const telemetry::RunFolder& folder, bool on_gpus, const std::vector<int>& stop_signals);

  // Measures the model that the training starts from, unless a former start has measured it for the
  // same settings of `eval`. Throws the errors of measure_tasks(), StopRequest among them.
  void measure_before();
  // Measures what the training has written, and prints both to stderr. The same holds; weights that
  // a longer training has written since are measured again.
  void measure_after();

 private:
  // `of`: what tells the model from other ones.
  void measure(const std::string& when, const MeasuredModel& model, nlohmann::ordered_json of);

  const Context& context_;
  const settings::TrainSettings& train_;
  const telemetry::RunFolder& folder_;
  bool on_gpus_;
  nlohmann::ordered_json record_;
  std::optional<processes::SignalStream> signals_;
};

// The record of a run; null without one. Throws DataError for a file that cannot be read.
nlohmann::ordered_json read_run_tasks(const std::filesystem::path& run);
// The figures of a record as a table for people: before and after, or before alone.
std::string run_tasks_table(const nlohmann::ordered_json& record);

// Throws ConfigError when tasks are wanted and the machine has no harness.
void require_harness(const settings::TrainSettings& train);

}  // namespace convoy::apps
