// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/workers/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "convoy/machine/processes/process_name.h"

namespace convoy::workers {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kIdle{50};

std::string time_text(std::chrono::seconds time) {
  const auto minutes = std::chrono::floor<std::chrono::minutes>(time);
  const std::chrono::seconds rest = time - minutes;
  if (minutes.count() == 0) return fmt::format("{} s", rest.count());
  if (rest.count() == 0) return fmt::format("{} min", minutes.count());
  return fmt::format("{} min {} s", minutes.count(), rest.count());
}

}  // namespace

std::string server_wait_text(std::chrono::milliseconds left) {
  return fmt::format("waiting for it, {} at most, {} more", time_text(kServerLimit),
                     time_text(std::chrono::round<std::chrono::seconds>(left)));
}

bool any_open(jobs::JobStore& store, std::span<const int64_t> groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [&](int64_t group) { return store.count_open(group, 1) > 0; });
}

void run_loop(const LoopOptions& options, WorkSource& work, jobs::JobStore& store) {
  Clock::time_point next_renewal;
  while (!options.stop_wanted || !options.stop_wanted()) {
    // Leases are renewed before the claim, so that the worker does not claim its own lease that is
    // about to expire.
    std::vector<jobs::Lease> leases;
    if (Clock::now() >= next_renewal) leases = work.held();
    if (!leases.empty()) {
      next_renewal = Clock::now() + options.lease / 4;
      const std::vector<bool> renewed = store.renew(leases, options.lease);
      for (size_t at = 0; at < leases.size(); ++at)
        if (!renewed[at]) work.lose(leases[at]);
    }
    if (work.claim()) {
      work.compute();
      work.complete(false);
      continue;
    }
    work.idle();
    if (!any_open(store, options.groups)) break;
    std::this_thread::sleep_for(kIdle);
  }
  work.complete(true);
  store.release(options.name);
  store.sync();
}

WorkerProcess::WorkerProcess()
    : signals_({SIGTERM, SIGINT, SIGHUP}), name_(processes::process_name(::getpid())) {}

std::function<bool()> WorkerProcess::stop_wanted() {
  return [this] { return signals_.asked_to_stop(); };
}

std::unique_ptr<jobs::JobStore> WorkerProcess::open_store(const std::string& url) {
  return jobs::open_store(url, {.server_limit = kServerLimit, .keep_waiting = [this](auto) {
                                  return !signals_.asked_to_stop();
                                }});
}

void send_to_supervisor(const std::string& line) {
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, line.data() + sent, line.size() - sent);
    // If the supervisor is gone, this process is about to be killed.
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) sent += static_cast<size_t>(wrote);
  }
}

}  // namespace convoy::workers
