// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/worker_failure.h"

#include <fmt/format.h>
#include <signal.h>

#include "convoy/launch/signals.h"

namespace convoy::sweep {
namespace {

constexpr int kMostLosses = 20;  // of one range to kills from outside

}  // namespace

bool BlameForDeaths::is_its_fault(const WorkerDeath& death, bool memory, const jobs::Lease& lease) {
  if (death.signal == SIGTERM || death.signal == SIGINT || death.signal == SIGHUP) return false;
  if (death.signal != SIGKILL || death.timed_out || memory) return true;
  return ++losses_[{lease.task, lease.first}] >= kMostLosses;
}

jobs::Failure failure_of(const WorkerDeath& death, bool memory, double timeout_seconds) {
  jobs::Failure failure;
  failure.stderr_tail = death.stderr_tail;
  failure.signal = death.signal;
  failure.exit_code = death.signal == 0 ? death.exit_code : -1;
  if (death.timed_out) {
    failure.kind = "timeout";
    failure.message = fmt::format("no sign of life for {} s", timeout_seconds);
  } else if (death.signal == SIGKILL) {
    failure.kind = memory ? "memory" : "lost";
    failure.message = memory ? "the kernel killed the worker for its memory"
                             : "the worker was killed again and again";
  } else if (death.signal != 0) {
    failure.kind = "crash";
    failure.message = fmt::format("the worker was ended by {}", launch::signal_name(death.signal));
  } else {
    failure.kind = "exit";
    failure.message = fmt::format("the worker ended with {}", death.exit_code);
  }
  return failure;
}

}  // namespace convoy::sweep
