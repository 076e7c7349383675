// SPDX-License-Identifier: Apache-2.0
//
// `convoy-worker process --run-folder D`: one worker of `convoy process`; its task is in its
// environment.
#include "convoy/apps/recipes/generate/process_rows.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {
namespace {

struct ProcessFlags {
  std::string run_folder;
  std::string devices = "cpu";
  int64_t workers_on_host = 1;
  bool tell_busy_cores = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("run_folder", run_folder, "run folder");
    visit("devices", devices, "cpu or cuda");
    visit("workers_on_host", workers_on_host, "workers that share this host's CPUs").at_least(1);
    visit("tell_busy_cores", tell_busy_cores, "tell the supervisor where other work takes cores");
  }
};

}  // namespace

int process_command(const Arguments& arguments) {
  CommonFlags worker;
  ProcessFlags flags;
  config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  if (flags.run_folder.empty())
    throw ConfigError("wanted --run-folder FOLDER",
                      {.hint = "run `convoy process`, which starts this program"});
  recipes::process_rows({.run_folder = flags.run_folder,
                         .devices = flags.devices,
                         .workers_on_host = flags.workers_on_host,
                         .tell_busy_cores = flags.tell_busy_cores},
                        worker.log());
  return 0;
}

}  // namespace convoy::apps
