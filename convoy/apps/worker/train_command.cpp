// SPDX-License-Identifier: Apache-2.0
//
// `convoy-worker train`: one rank of a training, which `convoy train` starts.
#include "convoy/apps/recipes/training/fine_tune.h"
#include "convoy/apps/worker/stop_signals.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {
namespace {

struct TrainFlags {
  std::string run_folder;
  std::string config;
  std::string devices = "cpu";
  config::NameList force_stamp;
  bool dry_run = false;
  bool tell_busy_cores = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("run_folder", run_folder, "run folder");
    visit("config", config, "the configuration; when it is missing, rank 0's is written here");
    visit("devices", devices, "cpu or cuda");
    visit("force_stamp", force_stamp, "checkpoint stamp field that may differ");
    visit("dry_run", dry_run, "print the plan and stop");
    visit("tell_busy_cores", tell_busy_cores, "nobody has chosen the number of threads");
  }
};

}  // namespace

int train_command(const Arguments& arguments) {
  CommonFlags worker;
  TrainFlags flags;
  const std::vector<std::string> overrides =
      config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  if (flags.run_folder.empty() || flags.config.empty())
    throw ConfigError("wanted --run-folder FOLDER and --config FILE",
                      {.hint = "run `convoy train`, which starts this program"});
  const std::atomic<bool>& stop_requested = handle_stop_signals();
  const recipes::FineTuneRequest request{.run_folder = flags.run_folder,
                                         .settings = {flags.config, overrides},
                                         .devices = flags.devices,
                                         .forced_fields = flags.force_stamp.names,
                                         .plan_only = flags.dry_run,
                                         .tell_busy_cores = flags.tell_busy_cores,
                                         .color = telemetry::color_choice(worker.color)};
  return static_cast<int>(recipes::fine_tune(request, stop_requested, worker.log()));
}

}  // namespace convoy::apps
