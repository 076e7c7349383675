// SPDX-License-Identifier: Apache-2.0
//
// The training loop: micro-batches, steps, evaluation, checkpoints, early stop, stop on request.
// Every rank runs the same loop; it names no objective, no model, no strategy and no adapter.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/core/telemetry/logs/training_log.h"
#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/model/nn/named_tensor.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/loop/training_objective.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/optim/schedule.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::train {

// The parts that the loop drives. Everything outlives it.
struct LoopParts {
  TrainingObjective& objective;
  // The trained parameters, as checkpoints name them.
  const std::vector<nn::NamedTensor>& parameters;
  std::string parameter_group;  // their file name in a checkpoint, without ".safetensors"
  parallel::Strategy& strategy;
  optim::AdamW& optimizer;
  const optim::LearningRateSchedule& schedule;
  const checkpoint::Stamp& stamp;
  checkpoint::CheckpointStore& checkpoints;   // rank 0 writes
  telemetry::TrainingLog* log;                // rank 0's; null elsewhere
  telemetry::FlightWriter& flight;            // gets the step and the phase
  checkpoint::NamedFiles files_alongside;     // added to each checkpoint
  std::vector<nn::NamedTensor> buffers = {};  // the model's buffers, saved beside the parameters
  // Set by a signal: the loop finishes the step, but no evaluation, saves the state and returns.
  const std::atomic<bool>& stop_requested;
};

enum class LoopEnd { Finished, Stopped, EarlyStopped };

struct LoopResult {
  LoopEnd end = LoopEnd::Finished;
  checkpoint::Progress progress;
};

// Optimizer steps of the whole run: settings.steps, or epochs rounded up to whole steps.
int64_t total_steps(const settings::TrainingSettings& settings, int64_t steps_per_epoch);

// Collective. Blocks until the run ends. Starts at `start` (from a checkpoint, or zeros);
// parameters and optimizer already hold that state. Throws NumericError on a loss or gradient norm
// that is not finite: nothing is saved then.
LoopResult run_training_loop(const LoopParts& parts, const settings::TrainSettings& settings,
                             const checkpoint::Progress& start);

}  // namespace convoy::train
