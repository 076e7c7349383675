// SPDX-License-Identifier: Apache-2.0
//
// One rank of fine_tune(), whether it is a process or a thread: of a language model, or of task
// classify.
#pragma once

#include <memory>

#include "convoy/apps/recipes/fine_tune.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/train/comm/meeting.h"

namespace convoy::recipes {

// Collective over the ranks of the meeting, with the settings that they have agreed on. Otherwise
// as fine_tune(); an error aborts the rank's group, and the meeting still has to be told.
ExitCode fine_tune_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                        const std::shared_ptr<comm::Meeting>& meeting,
                        const std::atomic<bool>& stop_requested, const Log& log);
ExitCode classify_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                       const std::shared_ptr<comm::Meeting>& meeting,
                       const std::atomic<bool>& stop_requested, const Log& log);

}  // namespace convoy::recipes
