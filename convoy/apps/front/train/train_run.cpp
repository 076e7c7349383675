// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "convoy/apps/front/harness/run_tasks.h"
#include "convoy/apps/front/train/failed_run.h"
#include "convoy/apps/front/train/run_devices.h"
#include "convoy/apps/front/train/tensorboard_beside.h"
#include "convoy/apps/front/train/train_inputs.h"
#include "convoy/apps/front/train/train_job.h"
#include "convoy/apps/front/train/train_ranks.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/environment.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/machine/processes/scratch_folder.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

// True when this launcher makes the run folder and holds its lock. That is the launcher of rank 0;
// the other launchers take part. Without node ranks, it is the launcher that holds the port where
// the nodes meet.
bool owns_run_folder(const launch::JobSetup& setup, const launch::JobSpec& job) {
  if (setup.adopted()) return setup.place.rank == 0;
  if (setup.wanted_node_rank >= 0) return setup.wanted_node_rank == 0;
  return !setup.several_nodes() || job.coordinator != nullptr;
}

// True when this launcher starts all ranks of the job. Only then may it refuse the run itself:
// other launchers would wait in vain for its ranks.
bool starts_every_rank(const launch::JobSetup& setup) {
  return !setup.adopted() && !setup.several_nodes();
}

// Throws ConfigError when this launcher cannot measure the tasks of `eval`: the model is measured
// before and after the ranks of all nodes run.
void require_tasks_can_be_measured(const TrainStart& start, const settings::TrainSettings& train) {
  if (train.eval.tasks.names.empty()) return;
  if (!starts_every_rank(start.setup))
    throw ConfigError("eval.tasks: a run on several nodes does not measure them",
                      {.key = "eval.tasks",
                       .hint = "remove it, and measure the result with `convoy eval --tasks`"});
  require_harness(train);
}

// The run's folder, and what this launcher may do there.
struct RunPlace {
  telemetry::RunFolder folder;
  bool own = true;                  // has rank 0, which writes the run's configuration and record
  bool removes_if_refused = false;  // new folder, and all ranks are this launcher's
};

// Opens the run folder. Rank 0's node writes checkpoints, events and results there; other nodes
// write only the logs of their ranks. On a shared file system all nodes have the same folder.
RunPlace open_run_place(const TrainStart& start, const settings::TrainSettings& train, bool own) {
  const std::string& wanted = train.train.output_dir;
  const bool is_new = wanted.empty() || !fs::exists(wanted);
  RunPlace place{.folder = own ? telemetry::RunFolder::create(wanted, train.run_name)
                               : telemetry::RunFolder::take_part(wanted, train.run_name),
                 .own = own,
                 .removes_if_refused = is_new && starts_every_rank(start.setup)};
  const Log log = start.context.log();
  const std::string path = place.folder.path().string();
  if (own && !place.folder.is_locked())
    log.warning(fmt::format(
        "{} is on a file system without locks: a second run in it is not prevented", path));
  log.info(fmt::format("run folder {}", path));
  // Traces of an earlier start would be mistaken for traces of this start.
  if (!train.logging.profile_steps.empty()) fs::remove_all(place.folder.path() / "traces");
  return place;
}

// Writes the configuration that the ranks read and returns its path. An existing run keeps its
// previous configuration until the ranks have accepted the new one.
fs::path store_config(const telemetry::RunFolder& folder, const config::Resolved& resolved,
                      processes::ScratchFolder& scratch) {
  std::map<std::string, std::string> origins;
  for (const config::ResolvedValue& value : resolved.values()) origins[value.path] = value.origin;
  if (!fs::exists(folder.config_path())) {
    folder.write_config(resolved.yaml(), resolved.json(), origins);
    return folder.config_path();
  }
  folder.propose_config(resolved.json(), origins);
  scratch.make();
  const fs::path proposed = scratch.path() / "config.yaml";
  write_file_atomic(proposed, resolved.yaml());
  return proposed;
}

// The files of a node without rank 0. They are written to a scratch folder: the run folder may be
// shared with rank 0's node, whose files must not change.
TrainFiles files_beside(const TrainStart& start, const NodeConfig& config, const RunPlace& place,
                        processes::ScratchFolder& scratch) {
  scratch.make();
  TrainFiles files{.folder = place.folder.path(), .config = scratch.path() / "config.yaml"};
  if (config.is_here) {
    write_file_atomic(files.config, config.resolved.yaml());
    return files;
  }
  const std::vector<std::string>& words = start.found.rest;
  const auto file = std::find_if(words.begin(), words.end(), is_config_file);
  start.context.log().info(fmt::format("{} is not on this host: rank 0's node sends its own",
                                       file == words.end() ? "the configuration" : *file));
  std::copy_if(words.begin(), words.end(), std::back_inserter(files.overrides),
               [](const std::string& word) { return !is_config_file(word); });
  return files;
}

TrainFiles train_files(const TrainStart& start, const NodeConfig& config, const RunPlace& place,
                       processes::ScratchFolder& scratch) {
  if (!place.own) return files_beside(start, config, place, scratch);
  return {.folder = place.folder.path(),
          .config = store_config(place.folder, config.resolved, scratch)};
}

// Gives the ranks their command and the folders of their logs.
void place_attempt(const TrainStart& start, const TrainFiles& files,
                   const telemetry::RunFolder& folder, launch::LaunchSpec& attempt) {
  attempt.program = train_worker_command(start, files);
  attempt.logs.layout = launch::LogLayout::Convoy;
  attempt.logs.folder = folder.logs_folder();
  attempt.flight_folder = folder.logs_folder();
}

// The device of each rank, for tools that inspect the run from outside.
void write_placement(const launch::JobSetup& setup, const telemetry::RunFolder& folder) {
  const std::vector<launch::RankPlacement>& ranks = setup.placement.ranks;
  write_file_atomic(
      folder.logs_folder() / fmt::format("placement-{}-{}.json", setup.host, ranks.at(0).rank),
      launch::placement_json(ranks) + "\n");
}

TensorBoardPlan tensorboard_plan(const TrainFlags& flags, const telemetry::RunFolder& folder) {
  TensorBoardPlan plan{.events = folder.tensorboard_folder(),
                       .log_file = folder.logs_folder() / "tensorboard.log",
                       .port = flags.tensorboard_port,
                       .stays = flags.tensorboard_stays};
  if (plan.stays) {
    plan.events = folder.path().parent_path();
    plan.log_file = plan.events / "tensorboard.log";
  }
  return plan;
}

RunDevicesOptions devices_options(const TrainFlags& flags, const settings::TrainSettings& train,
                                  const RunPlace& place) {
  RunDevicesOptions options{.interval_s = flags.device_interval, .own = place.own};
  if (place.own)
    options.tensorboard = telemetry::tensorboard_folder(train.logging.backend.names,
                                                        place.folder.tensorboard_folder());
  return options;
}

// Runs the ranks. Also runs TensorBoard and records device usage, if requested.
launch::LaunchReport run_watched(const TrainStart& start, const settings::TrainSettings& train,
                                 const RunPlace& place, const launch::JobSpec& job) {
  const TrainFlags& flags = start.flags();
  const Log log = start.context.log();
  std::optional<TensorBoardBeside> tensorboard;
  if ((flags.tensorboard || flags.tensorboard_stays) && place.own)
    tensorboard.emplace(tensorboard_plan(flags, place.folder), log);
  std::optional<RunDevices> devices;
  if (flags.device_interval > 0)
    devices.emplace(start.context, start.setup, place.folder, devices_options(flags, train, place));
  const auto begin = std::chrono::system_clock::now();
  launch::LaunchReport report = launch::run_job(job);
  tensorboard.reset();
  if (place.own) record_failure(log, place.folder, report, begin);
  if (devices) devices->conclude();
  return report;
}

void remove_if_refused(const RunPlace& place, const settings::TrainSettings& train,
                       launch::LaunchReport& report) {
  if (!place.removes_if_refused || !is_refused(place.folder, report)) return;
  remove_folder(place.folder, report);
  // Removes `runs`, unless it holds other runs.
  std::error_code ignored;
  if (train.train.output_dir.empty()) fs::remove(place.folder.path().parent_path(), ignored);
}

// Calls `work`. True when a signal ended it.
template <class Work>
bool is_stopped_in(const Work& work) {
  try {
    work();
    return false;
  } catch (const StopRequest&) {
    return true;
  }
}

}  // namespace

int run_training(const TrainStart& start, NodeConfig config, const std::string& to_go_on) {
  const Context& context = start.context;
  processes::ScratchFolder scratch;
  launch::JobSpec job =
      launch::make_job_spec(start.found.request, start.setup, worker_spec(context), context.log());
  const bool own = owns_run_folder(start.setup, job);
  if (own && !config.is_here) config = read_own_config(start);
  if (starts_every_rank(start.setup)) require_train_inputs(*config.train);
  require_tasks_can_be_measured(start, *config.train);
  const RunPlace place = open_run_place(start, *config.train, own);
  place_attempt(start, train_files(start, config, place, scratch), place.folder, job.attempt);
  write_placement(start.setup, place.folder);
  const std::string go_on = to_go_on.empty()
                                ? command_to_go_on(start.found, *config.train, place.folder.path())
                                : to_go_on;
  RunTasks tasks(context, *config.train, place.folder, start.setup.on_gpus,
                 job.attempt.stop_signals);
  if (is_stopped_in([&] { tasks.measure_before(); })) return conclude_stop(context, go_on);
  launch::LaunchReport report = run_watched(start, *config.train, place, job);
  remove_if_refused(place, *config.train, report);
  const int code = conclude_training(context, report, go_on);
  if (code == 0 && is_stopped_in([&] { tasks.measure_after(); }))
    return conclude_stop(context, go_on);
  if (code == 0 && own && context.common.json) print_result(place.folder);
  return code;
}

void print_result(const telemetry::RunFolder& folder) {
  const nlohmann::ordered_json result = {
      {"run_dir", folder.path().string()},
      {"metrics", telemetry::read_run_record(folder.metrics_path())}};
  fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace convoy::apps
