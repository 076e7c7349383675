// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/worker_process.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "convoy/base/error.h"
#include "convoy/base/milliseconds.h"
#include "convoy/launch/process_name.h"
#include "convoy/launch/signals.h"
#include "convoy/sweep/runner/cell_outcome.h"
#include "convoy/sweep/runner/server_wait.h"
#include "convoy/sweep/runner/worker.h"

namespace convoy::sweep {

void tell_runner(const WorkerMessage& message) {
  const std::string line = message.line();
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, line.data() + sent, line.size() - sent);
    // Without its runner this process is about to be killed.
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) sent += static_cast<size_t>(wrote);
  }
}

void run_worker_process(const WorkerFlags& flags, const std::function<WorkerEquipment()>& make) {
  CONVOY_CHECK(!flags.groups.empty() && flags.groups.size() == flags.cells_per_claim.size(),
               ConfigError, "--groups and --cells-per-claim want one number per group");
  const char* const store_name = std::getenv(kWorkerStoreVariable);
  CONVOY_CHECK(store_name != nullptr, ConfigError, "a worker wants its store in {}",
               kWorkerStoreVariable);
  const std::string store_url = store_name;
  ::unsetenv(kWorkerStoreVariable);
  launch::SignalStream signals({SIGTERM, SIGINT, SIGHUP});
  const WorkerEquipment equipment = make();
  const auto stop_wanted = [&] { return signals.asked_to_stop(); };
  const auto store = jobs::open_store(
      store_url, {.server_limit = kServerLimit,
                  .keep_waiting = [&](std::chrono::milliseconds) { return !stop_wanted(); }});
  WorkerOptions options;
  options.name = launch::process_name(::getpid());
  for (size_t at = 0; at < flags.groups.size(); ++at)
    options.groups.push_back({flags.groups[at], flags.cells_per_claim[at]});
  options.first_range_guesses = flags.first_range;
  options.max_attempts = static_cast<int>(flags.max_attempts);
  options.lease = milliseconds_of(flags.lease);
  options.device = device_name();
  options.gpu = equipment.gpu;
  options.notes = flags.notes;
  options.tell = tell_runner;
  options.stop_wanted = stop_wanted;
  run_worker(options, *equipment.workload, *store);
}

}  // namespace convoy::sweep
