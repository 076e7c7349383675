// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_dry_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "convoy/apps/front/config/memory_fit.h"
#include "convoy/apps/front/harness/run_tasks.h"
#include "convoy/apps/front/standard_streams.h"
#include "convoy/apps/front/train/train_inputs.h"
#include "convoy/apps/front/train/train_ranks.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/processes/scratch_folder.h"

namespace convoy::apps {
namespace {

// Estimates memory by formula when the model is missing or incomplete, because the ranks of a dry
// run need its weights.
void say_fit_without_weights(const TrainStart& start, const NodeConfig& config) {
  const launch::JobSetup& setup = start.setup;
  if (has_weights(config.train->model)) return;
  const auto model = sizes_of(config.train->model);
  if (!model) return;
  const int64_t ranks =
      int64_t{setup.several_nodes() ? setup.nodes.most : 1} * setup.num_local_ranks;
  const sizing::Machine machine = machine_of_config("", config.resolved);
  // The preset of another machine is planned for all devices of that machine.
  const bool is_here = machine.name == "cpu" || machine.name == "gpu";
  if (const auto fit = memory_fit(*model, *config.train, machine, is_here ? ranks : 0))
    say_memory_fit(*fit, start.context.log());
}

// The ranks of this node as a job of their own.
launch::JobSpec trial_job(const TrainStart& start, const TrainFiles& files) {
  launch::JobSetup alone = start.setup;
  if (alone.several_nodes()) alone.nodes = {};
  launch::JobSpec trial = launch::make_job_spec(start.found.request, alone,
                                                worker_spec(start.context), start.context.log());
  trial.attempt.program = train_worker_command(start, files);
  return trial;
}

void plan_all_nodes(const TrainStart& start, launch::JobSpec& trial) {
  const launch::JobSetup& setup = start.setup;
  if (!setup.several_nodes()) return;
  const int all = setup.nodes.most * setup.num_local_ranks;
  trial.attempt.environment["CONVOY_FULL_WORLD_SIZE"] = std::to_string(all);
  start.context.log().info(fmt::format("the plan of {} nodes, {}; those of this node try it",
                                       setup.nodes.most, counted(all, "rank")));
}

}  // namespace

int dry_run_training(const TrainStart& start, const NodeConfig& config) {
  say_fit_without_weights(start, config);
  require_train_inputs(*config.train);
  require_harness(*config.train);
  write_to_stderr(launch::placement_table(start.setup.placement.ranks) + "\n" +
                  launch::preflight_table(launch::check_job(start.setup, {})) + "\n");
  processes::ScratchFolder scratch;
  scratch.make();
  const TrainFiles files{.folder = scratch.path(), .config = scratch.path() / "config.yaml"};
  write_file_atomic(files.config, config.resolved.yaml());
  launch::JobSpec trial = trial_job(start, files);
  plan_all_nodes(start, trial);
  return conclude_training(start.context, launch::run_job(trial), "");
}

}  // namespace convoy::apps
