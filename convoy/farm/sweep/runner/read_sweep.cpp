// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/read_sweep.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/machine/processes/process_name.h"

namespace convoy::sweep {

SweepResults read_sweep(jobs::JobStore& store, const SweepName& name, const WorkloadMaker& make) {
  if (!name.problem.empty())
    throw DataError(name.problem, {.file = store.name(),
                                   .hint = "`convoy sweep show --list` names the other sweeps"});
  return read_results(store, stored_sweep(store, name), *make(name.workload, name.version));
}

bool has_live_worker(jobs::JobStore& store, const StoredSweep& sweep) {
  const int64_t now_ms = wall_clock_ns() / 1'000'000;
  const std::vector<jobs::Lease> leases = all_leases(store, sweep);
  return std::any_of(leases.begin(), leases.end(), [&](const jobs::Lease& lease) {
    return lease.expires_ms > now_ms && !processes::is_gone(lease.owner);
  });
}

}  // namespace convoy::sweep
