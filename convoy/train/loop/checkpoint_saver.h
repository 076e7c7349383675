// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of a run: written while the loop waits, or while it computes the next gradients,
// which change nothing of the training state. Driven by the thread of the loop.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/loop/train_loop.h"

namespace convoy::train {

class CheckpointSaver {
 public:
  // `parts` outlives it.
  CheckpointSaver(const LoopParts& parts, bool in_background)
      : parts_(parts), in_background_(in_background) {}

  // Collective. Throws what saving throws, also for an earlier save that went on in the background.
  void save(const checkpoint::Progress& progress, bool is_best);
  // Blocks until the state that a save under way writes may be changed.
  void before_update();
  // Called between steps: logs the checkpoints that were written meanwhile.
  void poll();
  // Collective. Blocks until every save that was begun has ended.
  void finish();

 private:
  checkpoint::TrainTensors tensors_to_save() const;
  void conclude();

  const LoopParts& parts_;
  const bool in_background_;
  std::unique_ptr<checkpoint::PendingSave> pending_;
  telemetry::CheckpointEvent event_;  // belongs to pending_
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace convoy::train
