// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep-worker`: one worker of a sweep, as its runner starts it. In no list of commands.
#include <unistd.h>

#include <cerrno>

#include "convoy/apps/front/command.h"
#include "convoy/base/error.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/signals.h"
#include "convoy/sweep/runner/cell_outcome.h"
#include "convoy/sweep/runner/worker.h"
#include "convoy/sweep/runner/workload_registry.h"

namespace convoy::apps {
namespace {

struct WorkerFlags {
  std::string store;
  std::string workload;
  std::string mode;
  std::vector<int64_t> groups;
  std::vector<int64_t> cells_per_claim;
  int64_t first_range = 1 << 16;
  int64_t max_attempts = 3;
  double timeout = 0;
  double lease = 60;
  bool notes = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("store", store, "file or URL");
    visit("workload", workload, "what is computed");
    visit("mode", mode, "of the workload");
    visit("groups", groups, "numbers in the store");
    visit("cells_per_claim", cells_per_claim, "of each group");
    visit("first_range", first_range, "guesses").at_least(1);
    visit("max_attempts", max_attempts, "tries of a range").at_least(1);
    visit("timeout", timeout, "seconds a program may take; 0 = any").at_least(0);
    visit("lease", lease, "seconds").at_least(1);
    visit("notes", notes, "tell what is computed");
  }
};

void tell(const sweep::WorkerMessage& message) {
  const std::string line = message.line();
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, line.data() + sent, line.size() - sent);
    // Without its runner this process is about to be killed.
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) sent += static_cast<size_t>(wrote);
  }
}

// The GPU that the runner gave this worker; null = it computes with the CPU.
std::shared_ptr<sweep::cuda::Device> worker_gpu() {
  const launch::Environment environment = launch::process_environment();
  const auto wanted = environment.find("CONVOY_SWEEP_DEVICE");
  if (wanted == environment.end()) return nullptr;
  try {
    const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
    return sweep::cuda::open_device(sweep::cuda::driver_library(environment),
                                    visible == environment.end() ? "0" : visible->second);
  } catch (const Error& error) {
    if (wanted->second != "auto") throw;
    tell({.kind = sweep::WorkerMessage::Kind::Note,
          .text =
              fmt::format("computes with the CPU: its GPU can not be used: {}", error.sentence())});
    return nullptr;
  }
}

int run_sweep_worker(Context& context, const std::vector<std::string>& arguments) {
  WorkerFlags flags;
  context.parse(flags, arguments);
  CONVOY_CHECK(!flags.groups.empty() && flags.groups.size() == flags.cells_per_claim.size(),
               ConfigError, "--groups and --cells-per-claim want one number per group");
  launch::SignalStream signals({SIGTERM, SIGINT, SIGHUP});
  const std::shared_ptr<sweep::cuda::Device> gpu = worker_gpu();
  const auto workload = sweep::make_workload(flags.workload, flags.mode, flags.timeout, gpu);
  bool stop = false;
  const auto stop_wanted = [&] {
    while (const auto signal = signals.next())
      stop = stop || *signal == SIGTERM || *signal == SIGINT || *signal == SIGHUP;
    return stop;
  };
  const auto store = jobs::open_store(
      flags.store,
      {.server_limit = sweep::kServerLimit, .keep_waiting = [&] { return !stop_wanted(); }});
  sweep::WorkerOptions options;
  options.name = sweep::worker_name(::getpid());
  for (size_t at = 0; at < flags.groups.size(); ++at)
    options.groups.push_back({flags.groups[at], flags.cells_per_claim[at]});
  options.first_range_guesses = flags.first_range;
  options.max_attempts = static_cast<int>(flags.max_attempts);
  options.lease = std::chrono::milliseconds(static_cast<int64_t>(1000 * flags.lease));
  options.device = sweep::device_name();
  if (gpu) options.gpu = gpu->name();
  options.notes = flags.notes;
  options.tell = tell;
  options.stop_wanted = stop_wanted;
  sweep::run_worker(options, *workload, *store);
  return 0;
}

}  // namespace

Command sweep_worker_command() {
  return {.name = "sweep-worker",
          .summary = "one worker of a sweep, started by `convoy sweep`",
          .usage = "convoy sweep-worker --store S --workload W --groups N --cells-per-claim N",
          .examples =
              "convoy sweep-worker --store results/sweep.db --workload ssm --mode exact "
              "--groups 1 --cells-per-claim 1",
          .flag_table = config::flag_table_of<WorkerFlags>,
          .run = run_sweep_worker,
          .hidden = true};
}

}  // namespace convoy::apps
