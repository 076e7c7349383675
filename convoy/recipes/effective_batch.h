// SPDX-License-Identifier: Apache-2.0
//
// How many rows one step takes over all ranks, and what that does to the learning rate.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/base/log.h"
#include "convoy/data/epoch_deal.h"
#include "convoy/optim/schedule.h"
#include "convoy/settings/train_settings.h"

namespace convoy::recipes {

// Rows, or blocks, of one step on `ranks` ranks: global_batch_size where it is given, else
// batch_size x ranks x grad_accum. Throws ConfigError when all of these are given and disagree.
int64_t wanted_global_batch(const settings::TrainingSettings& train, int64_t ranks);

// The peak learning rate for steps of `global_batch` rows, by lr_scaling.
double scaled_learning_rate(const settings::TrainingSettings& train, int64_t global_batch);

// What a run says of its steps before it starts: their rows over ranks and accumulation, how many
// there are, how the learning rate is scaled, and what is risky about it. `unit`: "rows".
void report_batch(const Log& log, const settings::TrainingSettings& train,
                  const data::EpochDeal& deal, const std::string& unit);

// Its parts. "effective batch: 8 rows per rank x 2 ranks x 4 accumulation = 64 a step"; where the
// ranks do not divide the step, how it is spread over them: "..., spread as 12 or 13 rows per rank".
std::string batch_sentence(const data::DealConfig& deal, const std::string& unit);
// "learning rate: 0.0002 x 64 / 16 (lr_scaling linear) = 0.0008"; empty when nothing is scaled.
std::string scaling_sentence(const settings::TrainingSettings& train, int64_t global_batch);
// What is risky about it; empty: nothing. `schedule`: of the run.
std::string scaling_warning(const settings::TrainingSettings& train, int64_t global_batch,
                            const optim::LearningRateSchedule& schedule);

}  // namespace convoy::recipes
