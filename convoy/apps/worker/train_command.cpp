// SPDX-License-Identifier: Apache-2.0
//
// `convoy-worker train --run-folder D --config F [key=value ...]`: one rank of a training run whose folder and
// configuration the front has written.
#include <signal.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "convoy/apps/worker/worker_command.h"
#include "convoy/base/error.h"
#include "convoy/recipes/fine_tune.h"

namespace convoy::apps {
namespace {

struct TrainFlags {
  std::string run_folder;
  std::string config;
  std::string devices = "cpu";
  config::NameList force_stamp;
  bool dry_run = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("run_folder", run_folder, "run folder");
    visit("config", config,
          "the configuration; written here as rank 0 has it when it is not there");
    visit("devices", devices, "cpu or cuda");
    visit("force_stamp", force_stamp, "checkpoint stamp field that may differ");
    visit("dry_run", dry_run, "print the plan and stop");
  }
};

// Written by a signal handler, so they cannot be objects that are passed.
std::atomic<bool> stop_requested{false};
std::atomic<pid_t> first_sender{0};
std::atomic<int64_t> first_request_ms{0};
std::atomic<int64_t> repeats_within_ms{0};

int64_t clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// The first request ends the run at the next step boundary; a second one ends the process at once. A job system that
// signals every process makes one request, though the launcher passes its own copy on: so the second must come from the
// sender of the first. SLURM sends each of its own requests twice, within seconds.
void request_stop(int signal, siginfo_t* info, void*) {
  if (!stop_requested.exchange(true)) {
    first_sender = info->si_pid;
    first_request_ms = clock_ms();
  } else if (first_sender == info->si_pid && clock_ms() - first_request_ms >= repeats_within_ms) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

void handle_stop_signals() {
  if (std::getenv("SLURM_STEP_ID") != nullptr) repeats_within_ms = 5'000;
  struct sigaction action {};
  action.sa_sigaction = request_stop;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) ::sigaction(signal, &action, nullptr);
  // Passed on by launchers to programs that know what it is for.
  std::signal(SIGUSR2, SIG_IGN);
}

}  // namespace

int train_command(const Arguments& arguments) {
  CommonFlags worker;
  TrainFlags flags;
  const std::vector<std::string> overrides =
      config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  CONVOY_CHECK(!flags.run_folder.empty() && !flags.config.empty(), ConfigError,
               "wanted --run-folder FOLDER and --config FILE");
  handle_stop_signals();
  const recipes::FineTuneRequest request{.run_folder = flags.run_folder,
                                         .settings = {flags.config, overrides},
                                         .devices = flags.devices,
                                         .forced_fields = flags.force_stamp.names,
                                         .plan_only = flags.dry_run,
                                         .color = telemetry::color_choice(worker.color)};
  return static_cast<int>(recipes::fine_tune(request, stop_requested, worker.log()));
}

}  // namespace convoy::apps
