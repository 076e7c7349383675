// SPDX-License-Identifier: Apache-2.0
//
// What a run says of its steps: how many rows each takes over all ranks, and what that does to the
// learning rate.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/epoch_deal.h"
#include "convoy/train/optim/schedule.h"

namespace convoy::recipes {

// The peak learning rate for steps of `global_batch` rows, by lr_scaling.
double scaled_learning_rate(const settings::TrainingSettings& train, int64_t global_batch);

// What a run says of its steps before it starts: their rows over ranks and accumulation, how many
// there are, how the learning rate is scaled, and what is risky about it. `unit`: "row".
void report_batch(const Log& log, const settings::TrainingSettings& train,
                  const data::EpochDeal& deal, const std::string& unit);

// Its parts.
// "learning rate: 0.0002 x 64 / 16 (lr_scaling linear) = 0.0008"; empty when nothing is scaled.
std::string scaling_sentence(const settings::TrainingSettings& train, int64_t global_batch);
// What is risky about it; empty: nothing. `schedule`: of the run.
std::string scaling_warning(const settings::TrainingSettings& train, int64_t global_batch,
                            const optim::LearningRateSchedule& schedule);

}  // namespace convoy::recipes
