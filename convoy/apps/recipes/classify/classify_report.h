// SPDX-License-Identifier: Apache-2.0
//
// The plan that a run of task classify logs before it starts, and the results that it writes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "convoy/apps/recipes/classify/signal_data.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batches/epoch_order.h"
#include "convoy/model/nn/signal_classifier.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/loop/classify_objective.h"

namespace convoy::recipes {

// Logs data, network, precision, batch and steps, one line each.
void report_classify_plan(const Log& log, const settings::TrainSettings& settings,
                          const SignalData& data, const nn::SignalClassifier& model,
                          const data::EpochOrder& order, const std::string& dtype);

struct ClassifyResults {
  const train::EpochHistory& history;
  const checkpoint::Progress& progress;
  int64_t steps_per_epoch = 1;
  std::optional<train::WindowFigures> test = {};  // best model's figures; empty: no test windows
  double seconds = 0;                             // this process's run time
};

// Writes training_results.json, and with test windows confusion_matrix.svg and .png; logs the
// table. Throws IoError.
void write_classify_results(const std::filesystem::path& folder, const ClassifyResults& results,
                            const settings::TrainSettings& settings, const SignalData& data,
                            const Log& log);

}  // namespace convoy::recipes
