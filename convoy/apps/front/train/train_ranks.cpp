// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include "convoy/apps/front/job_end.h"
#include "convoy/apps/front/standard_streams.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/error_readers.h"

namespace convoy::apps {
namespace {

// True when one rank computes on all cores of the host and the user did not ask for that.
bool takes_all_cores(const TrainFlags& flags, const launch::JobSetup& setup) {
  return !setup.on_gpus && !setup.adopted() && setup.num_local_ranks == 1 && flags.threads == 0 &&
         setup.placement.ranks.at(0).threads > 1;
}

}  // namespace

std::vector<std::string> train_worker_command(const TrainStart& start, const TrainFiles& files) {
  const Context& context = start.context;
  std::vector<std::string> words = {worker_program(context).string(),
                                    "train",
                                    "--run-folder",
                                    files.folder.string(),
                                    "--config",
                                    files.config.string(),
                                    "--devices",
                                    devices_of(start.setup)};
  for (const std::string& field : start.flags().force_stamp.names) {
    words.push_back("--force-stamp");
    words.push_back(field);
  }
  if (start.flags().dry_run) words.push_back("--dry-run");
  if (takes_all_cores(start.flags(), start.setup)) words.push_back("--tell-busy-cores");
  if (context.common.quiet) words.push_back("--quiet");
  if (context.common.verbose) words.push_back("--verbose");
  if (context.common.json) words.push_back("--json");
  words.push_back("--color");
  words.push_back(context.use_color(STDERR_FILENO) ? "always" : "never");
  words.insert(words.end(), files.overrides.begin(), files.overrides.end());
  return words;
}

int conclude_stop(const Context& context, const std::string& to_go_on) {
  const ErrorReaders readers = error_readers(context.common.json);
  const std::string words = "resume with: " + to_go_on;
  if (readers.people) context.log().info("stopped on request; " + words);
  if (readers.programs)
    write_to_stderr(StopRequest("stopped on request", {.hint = words}).json_line() + "\n");
  return static_cast<int>(ExitCode::Stopped);
}

int conclude_training(const Context& context, const launch::LaunchReport& report,
                      const std::string& to_go_on) {
  const bool stopped = !report.failed() && report.exit_code == static_cast<int>(ExitCode::Stopped);
  const ErrorReaders readers = error_readers(context.common.json);
  if (stopped && readers.people) context.log().info("stopped on request; resume with: " + to_go_on);
  const int code = say_how_it_ended(context, report);
  // The job was ended by a second signal, or because a rank did not end in time.
  if (!report.failed() && report.stop_signal != 0 && code > 128 && readers.people &&
      !to_go_on.empty())
    context.log().info(fmt::format(
        "the steps since its last checkpoint or its start are not saved; go on with: {}",
        to_go_on));
  if (stopped && readers.programs)
    write_to_stderr(
        StopRequest("stopped on request", {.hint = "resume with: " + to_go_on}).json_line() + "\n");
  return code;
}

}  // namespace convoy::apps
