// SPDX-License-Identifier: Apache-2.0
//
// One rank of fine_tune(), as a process or a thread: for a language model, or for task classify.
#pragma once

#include <memory>

#include "convoy/apps/recipes/training/fine_tune.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/train/comm/store_barrier.h"

namespace convoy::recipes {

// Collective over the ranks of the barrier, with the settings that they have agreed on. Otherwise
// as fine_tune(). An error aborts the rank's group; the caller must report it to the barrier.
ExitCode fine_tune_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                        const std::shared_ptr<comm::StoreBarrier>& store_barrier,
                        const std::atomic<bool>& stop_requested, const Log& log);
ExitCode classify_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                       const std::shared_ptr<comm::StoreBarrier>& store_barrier,
                       const std::atomic<bool>& stop_requested, const Log& log);

}  // namespace convoy::recipes
