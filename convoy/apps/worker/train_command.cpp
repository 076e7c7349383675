// SPDX-License-Identifier: Apache-2.0
//
// `convoy-worker train --run-folder D`: one rank of a training run whose folder and config.yaml the front has written.
#include <atomic>
#include <csignal>

#include "convoy/apps/worker/worker_command.h"
#include "convoy/base/error.h"
#include "convoy/recipes/fine_tune.h"
#include "convoy/settings/resolve_train.h"

namespace convoy::apps {
namespace {

struct TrainFlags {
  std::string run_folder;
  config::NameList force_stamp;
  bool dry_run = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("run_folder", run_folder, "run folder with config.yaml");
    visit("force_stamp", force_stamp, "checkpoint stamp field that may differ");
    visit("dry_run", dry_run, "print the plan and stop");
  }
};

// Written by a signal handler, so it cannot be an object that is passed.
std::atomic<bool> stop_requested{false};

// The first request ends the run at the next step boundary; a second one ends the process at once.
void request_stop(int signal) {
  if (stop_requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

int train_command(const Arguments& arguments) {
  WorkerFlags worker;
  TrainFlags flags;
  config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  CONVOY_CHECK(!flags.run_folder.empty(), ConfigError, "wanted --run-folder FOLDER");
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) std::signal(signal, request_stop);
  recipes::FineTuneRequest request{.run_folder = flags.run_folder,
                                   .forced_fields = flags.force_stamp.names,
                                   .plan_only = flags.dry_run,
                                   .color = telemetry::color_choice(worker.color)};
  config::Sources sources;
  sources.file = request.run_folder / "config.yaml";
  settings::resolve_train(request.settings, std::move(sources));
  return static_cast<int>(recipes::fine_tune(request, stop_requested, worker.log()));
}

}  // namespace convoy::apps
