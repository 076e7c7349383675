// SPDX-License-Identifier: Apache-2.0
//
// How a training run begins, whatever it trains: in which type, from which checkpoint, with which
// batch, optimizer and schedule.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/log.h"
#include "convoy/checkpoint/checkpoint.h"
#include "convoy/comm/environment.h"
#include "convoy/comm/meeting.h"
#include "convoy/device/placement.h"
#include "convoy/optim/adamw.h"
#include "convoy/optim/schedule.h"
#include "convoy/parallel/strategy.h"
#include "convoy/recipes/agreement.h"
#include "convoy/recipes/fine_tune.h"
#include "convoy/settings/train_settings.h"

namespace convoy::recipes {

// "fp32" or "bf16": what the settings ask for and the device multiplies. Throws DeviceError.
std::string compute_dtype(const settings::TrainSettings& settings,
                          const device::Placement& placement);

// Whose batch, steps and memory a run tells of: a plan alone is tried by the ranks of one node, and
// is that of the job with all its nodes.
comm::RankEnvironment planned_job(comm::RankEnvironment environment, bool plan_only);

optim::LearningRateSchedule schedule_of(const settings::TrainingSettings& train,
                                        int64_t global_batch, int64_t steps_per_epoch);

// The checkpoint that a run goes on from, if it does. Its calls come in this order.
class RunStart {
 public:
  // All of them outlive it.
  RunStart(const FineTuneRequest& request, const settings::TrainSettings& settings,
           comm::Meeting& meeting, checkpoint::CheckpointStore& checkpoints, const Log& log)
      : request_(request),
        settings_(settings),
        meeting_(meeting),
        checkpoints_(checkpoints),
        log_(log) {}

  // Collective. Which checkpoint it is, is rank 0's to decide: the others need not have it, and
  // hear of it here. Throws CheckpointError.
  void find();
  // Units of a step: those of the checkpoint, unless the settings ask for others. Of the job with all
  // its nodes, so that the numbers do not depend on who is there; by rank 0's word where nodes start
  // unlike numbers of ranks.
  int64_t global_batch() const;
  // On rank 0: says what the run goes on from. Throws CheckpointError where its stamp differs.
  void check(const checkpoint::Stamp& stamp) const;
  // Collective. `start` with what is known here. Returns the hosts, one per node. As
  // agree_on_start().
  std::vector<std::string> agree(StartingPoint start,
                                 const std::filesystem::path& checkpoints_folder) const;
  // Collective. The states of the optimizer, on every rank; what rank 0 held of the checkpoint goes.
  void restore_optimizer(optim::AdamW& optimizer, parallel::Strategy& strategy);

  // A number among the settings of the checkpoint's run ("batch_size"), from find() on, on every rank;
  // none without a checkpoint.
  std::optional<int64_t> saved_number(const std::string& setting) const;

  // From find() on, on every rank; zeros, no folder and nothing where the run begins anew.
  const checkpoint::Progress& progress() const { return progress_; }
  const std::filesystem::path& folder() const { return folder_; }  // as rank 0 sees it
  const io::Json& task_memory() const { return task_memory_; }
  // Rank 0's, until the optimizer is restored; else null.
  const checkpoint::LoadedCheckpoint* resumed() const { return resumed_ ? &*resumed_ : nullptr; }
  // Rank 0's trainer_state.json, from restore_optimizer() on.
  const std::string& trainer_state() const { return trainer_state_; }

 private:
  void find_checkpoint();
  void forget_best_of_another_figure();

  const FineTuneRequest& request_;
  const settings::TrainSettings& settings_;
  comm::Meeting& meeting_;
  checkpoint::CheckpointStore& checkpoints_;
  const Log& log_;
  std::optional<checkpoint::LoadedCheckpoint> resumed_;
  std::optional<checkpoint::Stamp> saved_stamp_;
  checkpoint::Progress progress_;
  std::filesystem::path folder_;
  io::Json task_memory_ = io::Json::object();
  int64_t full_world_ = 1;
  std::string trainer_state_;
  bool forgets_best_ = false;
};

}  // namespace convoy::recipes
