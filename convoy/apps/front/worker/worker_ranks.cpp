// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/worker/worker_ranks.h"

#include <unistd.h>

#include <cstdlib>

#include "convoy/apps/front/job_end.h"
#include "convoy/apps/front/worker/libtorch_folder.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/core/base/error.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/machine/processes/scratch_folder.h"

namespace convoy::apps {

launch::SetupRequest worker_request(const Context& context, const launch::DeviceFlags& devices) {
  launch::SetupRequest request;
  request.own_program = {
      .devices = devices.devices == "gpu" ? "cuda" : devices.devices,
      .threads = static_cast<int>(devices.threads),
      .why_no_cuda = [program = context.program] { return why_no_cuda(program); }};
  return request;
}

std::string devices_of(const launch::JobSetup& setup) { return setup.on_gpus ? "cuda" : "cpu"; }

void say_notes(const Context& context, const launch::JobSetup& setup) {
  for (const std::string& note : setup.notes) context.log().warning(note);
  if (!setup.on_gpus) return;
  for (const std::string& note : setup.placement.notes) context.log().warning(note);
}

launch::LaunchSpec worker_spec(const Context& context) {
  launch::LaunchSpec spec;
  spec.environment = worker_environment(context);
  spec.logs.console = launch::Console::RankZeroPlain;
  return spec;
}

int run_worker_on_ranks(const Context& context, const HostRanks& ranks, const std::string& command,
                        const std::vector<std::string>& arguments, const std::string& alone) {
  launch::SetupRequest request = worker_request(context, ranks.devices);
  static_cast<launch::HostRankFlags&>(request.members) = ranks.members;
  request.own_program->one_rank = !alone.empty();
  // The ranks belong to this host alone, so an outer job system or launcher is ignored.
  request.members.env_source = "none";
  const launch::JobSetup setup = launch::set_up_job(request, launch::process_environment());
  std::vector<std::string> words = arguments;
  words.insert(words.end(), {"--devices", devices_of(setup)});
  say_notes(context, setup);
  if (setup.num_local_ranks == 1) {
    if (!setup.visible_devices.empty())
      ::setenv("CUDA_VISIBLE_DEVICES", setup.visible_devices.c_str(), 1);
    become_worker(context, command, words, ranks.devices.threads);
  }
  if (!alone.empty())
    throw ConfigError(fmt::format("{} runs on one rank, found {}", alone, setup.num_local_ranks),
                      {.key = "nproc_per_node", .hint = "leave out --ranks"});
  processes::ScratchFolder scratch;
  scratch.make();
  launch::JobSpec job = launch::make_job_spec(request, setup, worker_spec(context), context.log());
  words.insert(words.begin(), {worker_program(context).string(), command, "--ranks-folder",
                               scratch.path().string(), "--color",
                               context.use_color(STDERR_FILENO) ? "always" : "never"});
  job.attempt.program = words;
  return say_how_it_ended(context, launch::run_job(job));
}

}  // namespace convoy::apps
