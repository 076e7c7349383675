// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/worker_ranks.h"

#include <unistd.h>

#include "convoy/apps/front/job_end.h"
#include "convoy/apps/front/worker_program.h"
#include "convoy/base/error.h"
#include "convoy/launch/job_setup.h"
#include "convoy/launch/scratch_folder.h"

namespace convoy::apps {

launch::LaunchPlan worker_plan(const Context& context) {
  launch::LaunchPlan plan;
  plan.environment = worker_environment(context);
  plan.logs.console = launch::Console::RankZeroPlain;
  return plan;
}

int run_worker_on_ranks(const Context& context, const launch::HostRankFlags& ranks,
                        const std::string& command, const std::vector<std::string>& arguments,
                        const std::string& alone) {
  launch::SetupRequest request;
  request.own_program = true;
  static_cast<launch::HostRankFlags&>(request.members) = ranks;
  // Ranks of this host alone: a job system or launcher around says nothing about them.
  request.members.env_source = "none";
  const launch::JobSetup setup = launch::set_up_job(request, launch::process_environment());
  if (setup.num_local_ranks == 1) become_worker(context, command, arguments);
  if (!alone.empty())
    throw ConfigError(fmt::format("{} runs on one rank, found {}", alone, setup.num_local_ranks),
                      {.key = "nproc_per_node", .hint = "leave out --nproc"});
  for (const std::string& note : setup.notes) context.log().warning(note);
  launch::ScratchFolder scratch;
  scratch.make();
  launch::JobPlan job = launch::plan_job(request, setup, worker_plan(context), context.log());
  std::vector<std::string>& words = job.attempt.program;
  words = {worker_program(context).string(),
           command,
           "--ranks-folder",
           scratch.path().string(),
           "--color",
           context.use_color(STDERR_FILENO) ? "always" : "never"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return say_how_it_ended(context, launch::run_job(job));
}

}  // namespace convoy::apps
