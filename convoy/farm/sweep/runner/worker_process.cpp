// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/worker_process.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/cell_worker.h"
#include "convoy/farm/workers/worker.h"

namespace convoy::sweep {
namespace {

// Values of finished and pruned cells at the step at which cells may be pruned.
std::vector<double> values_at_step(jobs::JobStore& store, const std::vector<int64_t>& groups) {
  std::vector<double> values;
  for (const int64_t group : groups)
    store.for_each_task(group, [&](const jobs::TaskRecord& task) {
      if (task.state != jobs::TaskState::Done) return;
      const auto result = nlohmann::json::parse(task.result->payload, nullptr, false);
      if (result.is_object() && result.contains("at_step"))
        values.push_back(result["at_step"].get<double>());
    });
  return values;
}

}  // namespace

void run_worker_process(const WorkerFlags& flags, const std::function<WorkerEquipment()>& make) {
  if (flags.groups.empty() || flags.groups.size() != flags.cells_per_claim.size())
    throw ConfigError("--groups and --cells-per-claim need one number per group",
                      {.hint = "run `convoy sweep`, which starts its workers"});
  const auto store_url = environment_variable(kWorkerStoreVariable);
  if (!store_url)
    throw ConfigError(fmt::format("a worker needs its store in {}", kWorkerStoreVariable),
                      {.hint = "run `convoy sweep`, which starts its workers"});
  ::unsetenv(kWorkerStoreVariable);
  workers::WorkerProcess process;
  const WorkerEquipment equipment = make();
  const auto store = process.open_store(*store_url);
  equipment.workload->compare_with([&] { return values_at_step(*store, flags.groups); });
  WorkerOptions options;
  options.name = process.name();
  for (size_t at = 0; at < flags.groups.size(); ++at)
    options.groups.push_back({flags.groups[at], flags.cells_per_claim[at]});
  options.first_range_guesses = flags.first_range;
  options.max_attempts = static_cast<int>(flags.max_attempts);
  options.lease = milliseconds_of(flags.lease);
  options.device = device_name();
  options.gpu = equipment.gpu;
  options.notes = flags.notes;
  options.tell = [](const WorkerMessage& message) { workers::send_to_supervisor(message.line()); };
  options.stop_wanted = process.stop_wanted();
  run_worker(options, *equipment.workload, *store);
}

}  // namespace convoy::sweep
