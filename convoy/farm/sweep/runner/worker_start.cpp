// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/worker_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/farm/sweep/runner/worker_process.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/place/visible_devices.h"

namespace convoy::sweep {
namespace {

// The number of guesses that a worker computes in a fraction of a second, before its speed is
// measured.
int64_t first_range(const SweepPlan& plan, const Workload& workload) {
  constexpr double kSeconds = 0.3;
  constexpr size_t kAsked = 8;
  double slowest = 0;
  for (const PlannedCell& planned : plan.cells) {
    if (planned.guesses == 0) continue;
    const double rate = workload.guesses(planned.cell)->expected_rate();
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
    if (&planned - plan.cells.data() >= static_cast<std::ptrdiff_t>(kAsked)) break;
  }
  return std::max<int64_t>(1024, static_cast<int64_t>(kSeconds * slowest));
}

}  // namespace

std::vector<std::string> wanted_devices(const RunOptions& options) {
  const bool by_gpus = options.compute_device != "cpu";
  if ((!options.starts_programs && !by_gpus) || options.max_gpus == 0) return {};
  const launch::Environment environment = launch::process_environment();
  const monitor::GpuList list = monitor::list_gpus(monitor::device_sources(environment));
  std::vector<std::string> devices =
      launch::select_devices(list.gpus, launch::selection_request(environment, "")).tokens;
  const std::string why_none =
      list.why_none.empty() ? "none is visible to this process" : list.why_none;
  if (options.compute_device == "cuda" && devices.empty())
    throw ConfigError(fmt::format("wanted GPUs, found none: {}", why_none),
                      {.hint = "use --device cpu"});
  if (options.max_gpus > 0 && devices.empty())
    options.log.warning(fmt::format("--max-gpus {}: no usable GPU ({}); CPUs compute everything",
                                    options.max_gpus, why_none));
  if (by_gpus && !devices.empty() && options.why_no_gpus) {
    if (const std::string problem = options.why_no_gpus(); !problem.empty()) {
      const std::string why = "GPUs cannot be used: " + problem;
      if (options.compute_device == "cuda") throw ConfigError(why, {.hint = "use --device cpu"});
      options.log.warning(why + "; CPUs compute everything");
      return {};
    }
  }
  if (options.max_gpus > 0 && devices.size() > static_cast<size_t>(options.max_gpus))
    devices.resize(static_cast<size_t>(options.max_gpus));
  return devices;
}

int64_t worker_count(const RunOptions& options, const std::vector<std::string>& devices) {
  const auto gpus = static_cast<int64_t>(devices.size());
  const int64_t by_cores = usable_cpus() / std::max<int64_t>(1, options.cores_per_worker);
  if (options.compute_device != "cpu") {
    if (options.compute_device == "cuda") return gpus;
    // Each GPU needs a core.
    const int64_t others =
        options.workers > 0 ? options.workers : std::max<int64_t>(0, by_cores - gpus);
    return std::max<int64_t>(1, gpus + others);
  }
  if (options.workers > 0) return options.workers;
  if (gpus > 0) return gpus * std::max<int64_t>(1, options.workers_per_device);
  return std::max<int64_t>(1, by_cores);
}

std::vector<std::map<std::string, std::string>> worker_environments(
    const RunOptions& options, const std::vector<std::string>& devices, int64_t workers) {
  std::vector<std::map<std::string, std::string>> environments;
  for (int64_t worker = 0; worker < workers; ++worker) {
    std::map<std::string, std::string> environment = {
        // The URL is not in the command line, because other users can read that and the URL may
        // hold a password.
        {kWorkerStoreVariable, options.store},
        {"CONVOY_SWEEP_WORKER", std::to_string(worker)},
        {"CONVOY_SWEEP_WORKERS", std::to_string(workers)}};
    const auto place = static_cast<size_t>(worker);
    if (options.compute_device == "cpu" ? !devices.empty() : place < devices.size())
      environment["CUDA_VISIBLE_DEVICES"] = devices[place % devices.size()];
    if (options.compute_device != "cpu" && place < devices.size())
      environment["CONVOY_SWEEP_DEVICE"] = options.compute_device;
    environments.push_back(std::move(environment));
  }
  return environments;
}

std::string workers_text(const std::vector<std::map<std::string, std::string>>& environments) {
  std::map<std::string, int64_t> by_gpu;
  int64_t on_cpus = 0;
  for (const auto& environment : environments) {
    const auto gpu = environment.find("CUDA_VISIBLE_DEVICES");
    ++(gpu == environment.end() ? on_cpus : by_gpu[gpu->second]);
  }
  const std::string workers = counted(static_cast<int64_t>(environments.size()), "worker");
  if (by_gpu.empty()) return workers + " on CPUs";
  std::vector<std::string> places;
  for (const auto& [gpu, count] : by_gpu)
    places.push_back(fmt::format("{}GPU {}", count > 1 ? fmt::format("{} on ", count) : "", gpu));
  if (on_cpus > 0) places.push_back(fmt::format("{} on CPUs", on_cpus));
  return fmt::format("{}: {}", workers, fmt::join(places, ", "));
}

std::vector<std::vector<int>> worker_cores(const RunOptions& options, int64_t workers) {
  std::vector<std::vector<int>> sets;
  if (options.cores_per_worker <= 0) return sets;
  const std::vector<int> cpus = allowed_cpus();
  for (int64_t worker = 0; worker < workers; ++worker) {
    sets.emplace_back();
    for (int64_t core = 0; core < options.cores_per_worker; ++core)
      sets.back().push_back(
          cpus[static_cast<size_t>(worker * options.cores_per_worker + core) % cpus.size()]);
  }
  return sets;
}

std::vector<std::string> worker_command(const SweepPlan& plan, const Workload& workload,
                                        const RunOptions& options, const StoredSweep& sweep,
                                        int64_t workers) {
  std::vector<std::string> command = options.worker_command;
  std::string groups, batches;
  for (size_t at = 0; at < sweep.groups.size(); ++at) {
    const int64_t cells =
        std::count_if(plan.cells.begin(), plan.cells.end(), [&](const PlannedCell& planned) {
          return planned.guesses == 0 && planned.cell.method == sweep.methods[at];
        });
    // This many cells share the lanes of a vector. With more cells per claim, other workers could
    // be left without work.
    constexpr int64_t kMostCells = 8;
    const int64_t batch = options.starts_programs
                              ? 1
                              : std::clamp<int64_t>((cells + workers - 1) / workers, 1, kMostCells);
    groups += fmt::format("{}{}", at == 0 ? "" : ",", sweep.groups[at].number);
    batches += fmt::format("{}{}", at == 0 ? "" : ",", batch);
  }
  for (const std::string& argument :
       {std::string("--workload"), plan.workload, std::string("--mode"), plan.mode,
        std::string("--groups"), groups, std::string("--cells-per-claim"), batches,
        std::string("--first-range"), std::to_string(first_range(plan, workload)),
        std::string("--max-attempts"), std::to_string(options.max_attempts),
        std::string("--timeout"), fmt::format("{}", options.timeout_seconds),
        std::string("--lease"), fmt::format("{}", options.lease_seconds)})
    command.push_back(argument);
  const bool logs_notes = !options.log_folder.empty() && options.log_level == Severity::Debug;
  if (options.log.level() == LogLevel::Verbose || logs_notes) command.push_back("--notes");
  return command;
}

}  // namespace convoy::sweep
