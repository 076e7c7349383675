// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/launcher.h"

#include "convoy/core/base/error.h"
#include "convoy/launch/supervisor/attempt.h"

namespace convoy::launch {

LaunchReport run_ranks(const LaunchPlan& plan, processes::SignalStream& signals, Peers* peers) {
  const int num_ranks = plan.job.num_local_ranks;
  CONVOY_CHECK(num_ranks >= 1, ConfigError, "at least one rank is needed, found {}", num_ranks);
  CONVOY_INVARIANT(plan.ranks.empty() || static_cast<int>(plan.ranks.size()) == num_ranks,
                   "{} set-ups for {} ranks", plan.ranks.size(), num_ranks);
  return Attempt(plan, signals, peers).run();
}

LaunchReport run_ranks(const LaunchPlan& plan) {
  processes::SignalStream signals(plan.stop_signals);
  return run_ranks(plan, signals, nullptr);
}

}  // namespace convoy::launch
