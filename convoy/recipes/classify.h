// SPDX-License-Identifier: Apache-2.0
//
// `convoy train` with task: classify, as one rank sees it: windows, network, strategy, optimizer,
// loop, test, results.
#pragma once

#include <atomic>
#include <memory>

#include "convoy/comm/meeting.h"
#include "convoy/recipes/fine_tune.h"
#include "convoy/settings/train_settings.h"

namespace convoy::recipes {

// Collective over the ranks of `meeting`, which have agreed on `settings`. As fine_tune().
ExitCode classify(const FineTuneRequest& request, const settings::TrainSettings& settings,
                  std::shared_ptr<comm::Meeting> meeting, const std::atomic<bool>& stop_requested,
                  const Log& log);

}  // namespace convoy::recipes
