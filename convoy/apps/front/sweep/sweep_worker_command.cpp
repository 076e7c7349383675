// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep-worker`: one worker of a sweep, started by its runner. Not in the list of commands.
#include "convoy/apps/front/command.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/sweep/runner/worker_message.h"
#include "convoy/farm/sweep/runner/worker_process.h"
#include "convoy/farm/workers/worker.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::apps {
namespace {

// The GPU that the runner gave this worker; null = it computes on the CPU.
std::shared_ptr<experiments::cuda::Device> worker_gpu() {
  const launch::Environment environment = launch::process_environment();
  const auto wanted = environment.find("CONVOY_SWEEP_DEVICE");
  if (wanted == environment.end()) return nullptr;
  try {
    const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
    return experiments::cuda::open_device(experiments::cuda::driver_library(environment),
                                          visible == environment.end() ? "0" : visible->second);
  } catch (const Error& error) {
    if (wanted->second != "auto") throw;
    const sweep::WorkerMessage note{
        .kind = sweep::WorkerMessage::Kind::Warning,
        .text = fmt::format("computes with the CPU, as each worker that meets this: its GPU cannot "
                            "be used: {}",
                            error.sentence())};
    workers::send_to_supervisor(note.line());
    return nullptr;
  }
}

int run_sweep_worker(Context& context, const std::vector<std::string>& arguments) {
  sweep::WorkerFlags flags;
  context.parse(flags, arguments);
  sweep::run_worker_process(flags, [&] {
    const std::shared_ptr<experiments::cuda::Device> gpu = worker_gpu();
    return sweep::WorkerEquipment{
        .workload = experiments::make_workload(flags.workload, flags.mode, flags.timeout, gpu),
        .gpu = gpu ? gpu->name() : ""};
  });
  return 0;
}

}  // namespace

Command sweep_worker_command() {
  return {
      .name = "sweep-worker",
      .summary = "Run one worker of a sweep, for `convoy sweep`",
      .usage =
          "CONVOY_SWEEP_STORE=S convoy sweep-worker --workload W --groups N --cells-per-claim N",
      .examples = "",
      .flags = {flags_of<sweep::WorkerFlags>()},
      .run = run_sweep_worker,
      .hidden = true};
}

}  // namespace convoy::apps
