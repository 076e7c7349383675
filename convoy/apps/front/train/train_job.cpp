// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_job.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "convoy/apps/front/rejection/rejection_run.h"
#include "convoy/apps/front/train/train_dry_run.h"
#include "convoy/apps/front/train/train_node_config.h"
#include "convoy/apps/front/train/train_run.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/environment_variable.h"

namespace convoy::apps {
namespace {

int print_placement(const Context& context, const launch::JobSetup& setup) {
  say_notes(context, setup);
  if (context.common.json) {
    fmt::print("{}\n", launch::placement_json(setup.placement.ranks));
    return 0;
  }
  if (setup.several_nodes())
    fmt::print(
        "{} of {}, which meet at {}:{}\n",
        setup.wanted_node_rank < 0 ? "any node" : fmt::format("node {}", setup.wanted_node_rank),
        setup.nodes.most, setup.endpoint.host, setup.endpoint.port);
  fmt::print("{}", launch::placement_table(setup.placement.ranks));
  return 0;
}

// Warns a user who requested several devices when only one is used.
void warn_of_one_device(const TrainStart& start, const settings::TrainSettings& train) {
  const launch::JobSetup& setup = start.setup;
  if (setup.adopted() || setup.several_nodes() || setup.num_local_ranks > 1) return;
  const Log log = start.context.log();
  const std::string& multi_gpu = start.found.multi_gpu;
  const char* const device = setup.on_gpus ? "one GPU" : "no GPU";
  if (multi_gpu == "ddp" && start.found.request.members.nproc_per_node == "auto")
    log.warning(fmt::format("--multi-gpu ddp: {} can be used here, so ONE rank trains, on {}{}",
                            device, setup.on_gpus ? "it" : "the CPU",
                            setup.on_gpus ? "" : " (--ranks N starts N on CPUs)"));
  if (multi_gpu == "dp" && !setup.on_gpus && train.parallel.replicas <= 1)
    log.warning(
        "--multi-gpu dp: no GPU can be used here, so ONE replica trains, on the CPU "
        "(parallel.replicas=N trains N)");
}

// Guides export these variables for their own scripts. If they were read without a request, a job
// would wait for nodes that are never started.
void warn_of_unread_nodes(const Context& context, const launch::JobSetup& setup) {
  const std::string nodes = environment_text("NNODES");
  if (std::atoi(nodes.c_str()) <= 1 || setup.several_nodes() || setup.adopted()) return;
  context.log().warning(fmt::format(
      "NNODES={} is set but ignored: this node trains alone. For {} nodes give --nnodes "
      "{} --node-rank R --master-addr HOST",
      nodes, nodes, nodes));
}

}  // namespace

int run_train_job(Context& context, const TrainInvocation& found, const std::string& to_go_on) {
  const launch::JobSetup setup = launch::set_up_job(found.request, launch::process_environment());
  const TrainStart start{.context = context, .found = found, .setup = setup};
  if (found.flags.placement) {
    check_launch_settings(start);
    return print_placement(context, setup);
  }
  worker_program(context);  // throws first when the worker is missing
  NodeConfig config = read_node_config(start);
  if (config.train->task_facts().data == settings::TaskData::Problems)
    return run_rejection(context, {found, setup, *config.train, config.resolved});
  say_notes(context, setup);
  warn_of_one_device(start, *config.train);
  warn_of_unread_nodes(context, setup);
  return found.flags.dry_run ? dry_run_training(start, config)
                             : run_training(start, std::move(config), to_go_on);
}

}  // namespace convoy::apps
