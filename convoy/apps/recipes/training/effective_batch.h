// SPDX-License-Identifier: Apache-2.0
//
// Describes the steps of a run: the rows per step over all ranks, and the resulting learning rate.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batches/epoch_order.h"
#include "convoy/train/optim/schedule.h"

namespace convoy::recipes {

// The peak learning rate for steps of `global_batch` rows, by lr_scaling.
double scaled_learning_rate(const settings::TrainingSettings& train, int64_t global_batch);

// Logs, before the run starts, the rows per step over ranks and accumulation, the number of steps,
// the scaling of the learning rate, and warnings. `unit`: "row".
void report_batch(const Log& log, const settings::TrainingSettings& train,
                  const data::EpochOrder& order, const std::string& unit);

// A part of report_batch(): "learning rate: 0.0002 x 64 / 16 (lr_scaling linear) = 0.0008"; empty
// when nothing is scaled.
std::string scaling_sentence(const settings::TrainingSettings& train, int64_t global_batch);
// A warning about the scaling; empty: none. `schedule`: the run's schedule.
std::string scaling_warning(const settings::TrainingSettings& train, int64_t global_batch,
                            const optim::LearningRateSchedule& schedule);

}  // namespace convoy::recipes
