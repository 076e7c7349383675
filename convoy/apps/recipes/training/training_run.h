// SPDX-License-Identifier: Apache-2.0
//
// One rank of a training of any kind before it has read anything: its rank, its device, its run
// folder and the settings. Also handles a failure of the training.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "convoy/apps/recipes/training/fine_tune.h"
#include "convoy/apps/recipes/training/traced_steps.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/core/telemetry/logs/training_log.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/comm/rank_environment.h"
#include "convoy/train/comm/store_barrier.h"
#include "convoy/train/optim/adamw.h"

namespace convoy::recipes {

struct TrainingRun {
  // `ask` and `stop` must outlive it. Throws ConfigError, DeviceError.
  TrainingRun(const FineTuneRequest& ask, settings::TrainSettings agreed,
              std::shared_ptr<comm::StoreBarrier> ranks, const std::atomic<bool>& stop,
              const Log& log_of_rank_zero);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  telemetry::FlightWriter& flight() const { return store_barrier->flight(); }
  std::string device_kind() const;  // "cpu", "cuda"

  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const FineTuneRequest& request;
  const settings::TrainingSettings wished;  // the section `train` as it was written
  const settings::TrainSettings settings;   // with minimum numbers where `wished` has auto
  const std::atomic<bool>& stop_requested;
  const std::shared_ptr<comm::StoreBarrier> store_barrier;
  const comm::RankEnvironment& environment;
  // Batch, steps and memory refer to this job. A dry run runs on the ranks of one node and
  // describes the job with all its nodes.
  const comm::RankEnvironment planned;
  const device::RankDevice rank_device;
  // Type of the products: "fp32" or "bf16". It is "auto" until find_checkpoint() settles it, if the
  // settings leave it open.
  std::string dtype;
  std::string dtype_reason = {};  // why the rule chose `dtype`; empty = the settings name it
  const Log log;                  // quiet on all ranks but 0
  const telemetry::RunFolder folder;
  checkpoint::CheckpointStore checkpoints;
  TracedSteps trace;  // outlives the group
};

// Sets up LibTorch for this rank. Call it once, on the thread of the rank, before the first
// operator.
void prepare_rank(const TrainingRun& run);

// The parts of a training that exist so far; null: not yet.
struct Underway {
  const settings::TrainSettings& settings;
  nn::CausalLm* model = nullptr;  // reported with the optimizer when the device is full
  const optim::AdamW* optimizer = nullptr;
  comm::Group* group = nullptr;           // aborted on a failure
  telemetry::TrainingLog* log = nullptr;  // records the failure
};

// Call it while an exception is handled. Rethrows the exception, or throws a convoy::Error that
// describes it.
[[noreturn]] void give_up(const TrainingRun& run, const Underway& underway);

template <class Stage>
auto or_give_up(const TrainingRun& run, const Underway& underway, Stage stage) {
  try {
    return stage();
  } catch (const std::exception&) {
    give_up(run, underway);
  }
}

}  // namespace convoy::recipes
