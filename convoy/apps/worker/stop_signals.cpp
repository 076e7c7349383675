// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/worker/stop_signals.h"

#include <signal.h>

#include <csignal>
#include <cstdint>
#include <ctime>

#include "convoy/core/base/environment_variable.h"

namespace convoy::apps {
namespace {

// A signal handler writes these variables, so they cannot be objects that are passed.
std::atomic<bool> stop_requested{false};
std::atomic<pid_t> first_sender{0};
std::atomic<int64_t> first_request_ms{0};
std::atomic<int64_t> repeats_within_ms{0};

int64_t clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// The first request ends the work at its next boundary; a second one ends the process at once. A
// job system that signals every process makes one request, but two signals arrive: the launcher
// passes its own copy on. So a second request must come from the sender of the first. SLURM sends
// each request twice within seconds, so a repeat within that time does not count.
void request_stop(int signal, siginfo_t* info, void*) {
  if (!stop_requested.exchange(true)) {
    first_sender = info->si_pid;
    first_request_ms = clock_ms();
  } else if (first_sender == info->si_pid && clock_ms() - first_request_ms >= repeats_within_ms) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

const std::atomic<bool>& handle_stop_signals() {
  if (environment_variable("SLURM_STEP_ID")) repeats_within_ms = 5'000;
  struct sigaction action {};
  action.sa_sigaction = request_stop;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) ::sigaction(signal, &action, nullptr);
  // Ignores SIGUSR2, which launchers pass on for programs that handle it.
  std::signal(SIGUSR2, SIG_IGN);
  return stop_requested;
}

}  // namespace convoy::apps
