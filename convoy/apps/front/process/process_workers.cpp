// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/apps/front/worker/libtorch_folder.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/cpu_level_limit.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/usable_memory.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/place/visible_devices.h"

namespace convoy::apps {
namespace {

constexpr int kFirstWithBf16 = 8;  // major compute capability

// The GPUs for workers; empty: they compute on CPUs. `why`: the reason for having none.
launch::DeviceSelection gpus_of(const Context& context, const std::string& wanted,
                                std::string& why) {
  const auto environment = launch::process_environment();
  const monitor::GpuList list =
      monitor::list_gpus_of_any_vendor(monitor::device_sources(environment));
  why = list.why_none;
  if (list.gpus.empty()) return {};
  launch::DeviceSelection selection =
      launch::select_devices(list.gpus, launch::selection_request(environment, ""));
  if (selection.devices.empty()) why = selection.variable + " leaves no GPU";
  std::string no_cuda = launch::why_not_for_workers(list.gpus);
  if (no_cuda.empty()) no_cuda = why_no_cuda(context.program);
  if (no_cuda.empty() || selection.devices.empty()) return selection;
  why = no_cuda;
  if (wanted == "auto") selection.notes.push_back("GPUs stay idle: " + no_cuda);
  selection.devices.clear();
  return selection;
}

}  // namespace

std::string ProcessWorkers::text() const {
  return fmt::format("{} on {}", counted(count, "worker"), devices);
}

sizing::DtypeQuestion ProcessWorkers::dtype_question() const {
  if (devices == "cuda") return {.hardware = sizing::Hardware::Gpu, .gpu_has_bf16 = has_bf16};
  return {.hardware = sizing::Hardware::Cpu,
          .cpu_level = std::string(kCpuLevels[static_cast<size_t>(best_cpu_level())]),
          .machine_bytes = total_memory_bytes() / count};
}

ProcessWorkers http_workers(const settings::WorkerSettings& settings) {
  ProcessWorkers workers{.devices = "http", .count = std::max<int64_t>(1, settings.world_size)};
  workers.environment.resize(static_cast<size_t>(workers.count));
  return workers;
}

ProcessWorkers find_process_workers(const Context& context,
                                    const settings::WorkerSettings& settings) {
  ProcessWorkers workers{.devices = "cpu"};
  std::string why_none;
  if (settings.devices != "cpu") {
    const launch::DeviceSelection gpus = gpus_of(context, settings.devices, why_none);
    workers.notes = gpus.notes;
    if (settings.devices == "cuda" && gpus.devices.empty())
      throw DeviceError(fmt::format("--devices cuda: {}", why_none),
                        {.key = "workers.devices", .hint = "use --devices cpu, or fix that"});
    if (!gpus.devices.empty()) {
      workers.devices = "cuda";
      workers.has_bf16 =
          std::all_of(gpus.devices.begin(), gpus.devices.end(), [](const monitor::Device& gpu) {
            return gpu.compute_major == 0 || gpu.compute_major >= kFirstWithBf16;
          });
      const auto num_gpus = static_cast<int64_t>(gpus.tokens.size());
      workers.count = settings.world_size > 0 ? settings.world_size : num_gpus;
      if (workers.count > num_gpus)
        throw ConfigError(
            fmt::format("workers.world_size: wanted {} workers on {}", workers.count,
                        counted(num_gpus, "GPU")),
            {.key = "workers.world_size", .hint = "one worker for each GPU: one batch fills it"});
      for (int64_t worker = 0; worker < workers.count; ++worker)
        workers.environment.push_back(
            {{"CUDA_VISIBLE_DEVICES", gpus.tokens[static_cast<size_t>(worker)]}});
    }
  }
  if (workers.devices == "cpu") {
    workers.count = settings.world_size > 0 ? settings.world_size : 1;
    workers.environment.resize(static_cast<size_t>(workers.count));
  }
  for (auto& environment : workers.environment)
    environment.merge(worker_environment(context, settings.threads));
  return workers;
}

}  // namespace convoy::apps
