// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of a run: written while the loop waits, or from a copy of the training state while it
// goes on. Driven by the thread of the loop.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/loop/train_loop.h"

namespace convoy::train {

class CheckpointSaver {
 public:
  // `in_background`: from a copy, which takes its memory now: the first save then waits for no
  // page. `parts` outlives it.
  CheckpointSaver(const LoopParts& parts, bool in_background);

  // Collective. Throws what saving throws; of an earlier save too, where that went on behind.
  void save(const checkpoint::Progress& progress, bool is_best);
  // Called between steps: logs the checkpoints that were written meanwhile.
  void poll();
  // Collective. Blocks until all that was begun is there.
  void finish();

 private:
  checkpoint::TrainTensors tensors_to_save() const;
  void copy(checkpoint::TrainTensors& tensors);
  at::Tensor copy_of(const std::string& key, const at::Tensor& value);
  void conclude();

  const LoopParts& parts_;
  const bool in_background_;
  std::map<std::string, at::Tensor> copies_;  // kept from save to save: their pages stay
  std::unique_ptr<checkpoint::PendingSave> pending_;
  telemetry::CheckpointEvent event_;  // of pending_
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace convoy::train
