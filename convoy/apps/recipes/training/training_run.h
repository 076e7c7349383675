// SPDX-License-Identifier: Apache-2.0
//
// One rank of a training before it has read anything, whatever it trains: its place among the
// ranks, its device, its run folder, and the settings; and its end where the training fails.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "convoy/apps/recipes/fine_tune.h"
#include "convoy/apps/recipes/traced_steps.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/core/telemetry/run_folder.h"
#include "convoy/core/telemetry/training_log.h"
#include "convoy/machine/device/placement.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/comm/environment.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/comm/meeting.h"
#include "convoy/train/optim/adamw.h"

namespace convoy::recipes {

struct TrainingRun {
  // `ask` and `stop` outlive it. Throws ConfigError, DeviceError.
  TrainingRun(const FineTuneRequest& ask, settings::TrainSettings agreed,
              std::shared_ptr<comm::Meeting> ranks, const std::atomic<bool>& stop,
              const Log& log_of_rank_zero);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  telemetry::FlightWriter& flight() const { return meeting->flight(); }
  std::string device_kind() const;  // "cpu", "cuda"

  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const FineTuneRequest& request;
  const settings::TrainingSettings wished;  // the section `train` as it was written
  const settings::TrainSettings settings;   // with the least numbers where `wished` has auto
  const std::atomic<bool>& stop_requested;
  const std::shared_ptr<comm::Meeting> meeting;
  const comm::RankEnvironment& environment;
  // Batch, steps and memory are those of this job. A plan alone is tried by the ranks of one node
  // and describes the job with all its nodes.
  const comm::RankEnvironment planned;
  const device::Placement placement;
  const std::string dtype;  // of products: "fp32" or "bf16"
  const Log log;            // quiet on all ranks but 0
  const telemetry::RunFolder folder;
  checkpoint::CheckpointStore checkpoints;
  TracedSteps trace;  // outlives the group
};

// Sets LibTorch up for this rank. Call once, on the thread of the rank, before the first operator.
void prepare_rank(const TrainingRun& run);

// The parts of a training that exist by now; null: not yet.
struct Underway {
  const settings::TrainSettings& settings;
  nn::CausalLm* model = nullptr;  // with the optimizer: named where the device is full
  const optim::AdamW* optimizer = nullptr;
  comm::Group* group = nullptr;           // is aborted
  telemetry::TrainingLog* log = nullptr;  // is told the failure
};

// To be called while an exception is handled. Throws it, or the convoy::Error that it means.
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
