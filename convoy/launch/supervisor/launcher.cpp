// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/launcher.h"

#include "convoy/core/base/error.h"
#include "convoy/launch/supervisor/attempt.h"

namespace convoy::launch {

LaunchReport run_ranks(const LaunchSpec& spec, processes::SignalStream& signals, Peers* peers) {
  const int num_ranks = spec.job.num_local_ranks;
  if (num_ranks < 1)
    throw ConfigError(fmt::format("at least one rank is needed, found {}", num_ranks),
                      {.hint = "give --ranks 1 or more"});
  CONVOY_INVARIANT(spec.ranks.empty() || static_cast<int>(spec.ranks.size()) == num_ranks,
                   "{} set-ups for {} ranks", spec.ranks.size(), num_ranks);
  return Attempt(spec, signals, peers).run();
}

LaunchReport run_ranks(const LaunchSpec& spec) {
  processes::SignalStream signals(spec.stop_signals);
  return run_ranks(spec, signals, nullptr);
}

}  // namespace convoy::launch
