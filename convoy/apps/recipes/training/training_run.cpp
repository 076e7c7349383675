// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/training_run.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "convoy/apps/recipes/memory/auto_batch.h"
#include "convoy/apps/recipes/memory/memory_report.h"
#include "convoy/apps/recipes/training/run_fault.h"
#include "convoy/machine/device/determinism.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/tensor_memory.h"
#include "convoy/machine/device/threads.h"

namespace convoy::recipes {
namespace {

settings::TrainSettings with_least_batch(settings::TrainSettings settings) {
  const settings::TrainingSettings wished = settings.train;
  if (wished.chooses_batch()) settle_batch(wished, 1, {}, settings.train);
  return settings;
}

comm::RankEnvironment planned_job(comm::RankEnvironment environment, bool plan_only) {
  if (plan_only) environment.world = std::max(environment.world, environment.full_world);
  return environment;
}

// The type that the settings name and the device supports.
std::string named_dtype(const settings::TrainSettings& settings,
                        const device::RankDevice& rank_device) {
  device::require_dtype(rank_device, settings.model.dtype);
  const std::string wished = settings.wished_dtype();
  return wished == "bf16" && !rank_device.has_bf16 ? "fp32" : wished;
}

void tell(const Error& error, const Underway& underway) {
  if (underway.log != nullptr) underway.log->failure(error);
  if (underway.group != nullptr) underway.group->abort();
}

}  // namespace

TrainingRun::TrainingRun(const FineTuneRequest& ask, settings::TrainSettings agreed,
                         std::shared_ptr<comm::StoreBarrier> ranks, const std::atomic<bool>& stop,
                         const Log& log_of_rank_zero)
    : request(ask),
      wished(agreed.train),
      settings(with_least_batch(std::move(agreed))),
      stop_requested(stop),
      store_barrier(std::move(ranks)),
      environment(store_barrier->environment()),
      planned(planned_job(environment, request.plan_only)),
      rank_device(device::take_rank_device(request.devices, environment.local_rank)),
      dtype(named_dtype(settings, rank_device)),
      log(environment.rank == 0 ? log_of_rank_zero : Log(LogLevel::Quiet)),
      folder(telemetry::RunFolder::attach(request.run_folder)),
      checkpoints(folder.checkpoints_folder(), settings.train.save_total_limit),
      trace(flight(), settings::parse_step_range(settings.logging.profile_steps),
            {.folder = folder, .rank = environment, .device = rank_device.device}, log) {}

std::string TrainingRun::device_kind() const {
  return at::DeviceTypeName(rank_device.device.type(), /*lower_case=*/true);
}

void prepare_rank(const TrainingRun& run) {
  if (run.settings.train.deterministic && !run.rank_device.device.is_cpu())
    device::take_deterministic_algorithms();
  device::keep_tensor_memory();
  device::share_cpu_threads(run.environment.local_world, run.environment.replicas);
}

void give_up(const TrainingRun& run, const Underway& underway) {
  try {
    throw;
  } catch (const Error& error) {
    tell(error, underway);
    throw;
  } catch (const std::exception& foreign) {
    const bool classifies = underway.settings.task_facts().data == settings::TaskData::Windows;
    if (!classifies && dynamic_cast<const c10::OutOfMemoryError*>(&foreign) != nullptr) {
      const IoError error =
          full_device(run.rank_device.device.str(), held_memory(underway.model, underway.optimizer),
                      device::rank_memory(run.rank_device.device).peak_bytes, underway.settings);
      tell(error, underway);
      throw error;
    }
    const Error error =
        fault_of(foreign, classifies ? "lower train.batch_size"
                                     : "lower train.batch_size or model.max_seq_len");
    tell(error, underway);
    throw error;
  }
}

}  // namespace convoy::recipes
