// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/checkpoint_saver.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "convoy/core/base/seconds_since.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::train {
namespace {

using Clock = std::chrono::steady_clock;

// The thread that writes does not wait for any stream of this thread.
void await_updates(at::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

}  // namespace

// Whole where all ranks hold the same, else this rank's pieces.
checkpoint::TrainTensors CheckpointSaver::tensors_to_save() const {
  const std::vector<parallel::ParameterShard>& shards = parts_.strategy.shards();
  const bool shared = parts_.strategy.shares_state();
  const bool writes = parts_.strategy.writes_shards();
  checkpoint::TrainTensors tensors;
  if (parts_.strategy.values_are_whole()) {
    for (const nn::NamedTensor& parameter : parts_.parameters)
      tensors.whole[parts_.parameter_group][parameter.name] = parameter.value;
  } else {
    std::vector<checkpoint::Piece>& pieces = tensors.pieces[parts_.parameter_group];
    for (const parallel::ParameterShard& shard : shards)
      if (writes) pieces.push_back({shard.name, shard.shape, shard.begin, shard.value});
  }
  // A forward pass changes the buffers, so a save in the background gets copies.
  for (const nn::NamedTensor& buffer : parts_.buffers)
    tensors.whole["buffers"][buffer.name] = in_background_ ? buffer.value.clone() : buffer.value;
  if (shared) tensors.pieces["optimizer"];  // the file is there where this rank has no piece too
  for (const optim::NamedState& state : parts_.optimizer.state()) {
    const parallel::ParameterShard& shard = shards[state.parameter];
    const auto [shape, begin] = parallel::range_of(state, shard);
    if (shared && writes)
      tensors.pieces["optimizer"].push_back({state.name, shape, begin, state.value});
    else if (!shared)
      tensors.whole["optimizer"][state.name] = state.value.view(shape);
  }
  return tensors;
}

void CheckpointSaver::save(const checkpoint::Progress& progress, bool is_best) {
  finish();
  if (!parts_.strategy.shares_state() && parts_.strategy.rank() != 0) return;
  parts_.flight.set_phase("save");
  parts_.strategy.group().await_device();  // values that a lost rank has not sent must not be saved
  begun_ = Clock::now();
  checkpoint::TrainState state;
  state.progress = progress;
  state.stamp = parts_.stamp;
  state.extra["task"] = parts_.objective.memory();
  if (is_best && parts_.log != nullptr)
    parts_.log->set_best_checkpoint(parts_.checkpoints.folder_of(progress.step));
  checkpoint::NamedFiles more_files = parts_.files_alongside;
  if (parts_.log != nullptr) more_files["trainer_state.json"] = parts_.log->trainer_state_text();
  checkpoint::TrainTensors tensors = tensors_to_save();
  await_updates(parts_.objective.device());
  event_ = {.step = progress.step, .best = is_best};
  pending_ = parts_.strategy.shares_state()
                 ? parts_.checkpoints.start_save_together(parts_.strategy.group(), std::move(state),
                                                          std::move(tensors), is_best,
                                                          std::move(more_files))
                 : parts_.checkpoints.start_save(std::move(state), std::move(tensors), is_best,
                                                 std::move(more_files));
  if (!in_background_) conclude();
  event_.pause_seconds = seconds_since(begun_);
}

void CheckpointSaver::conclude() {
  event_.path = pending_->wait();
  pending_.reset();
  event_.seconds = seconds_since(begun_);
  if (!in_background_) event_.pause_seconds = event_.seconds;
  parts_.flight.set_checkpoint_step(event_.step);
  if (parts_.log != nullptr) parts_.log->checkpoint(event_);
}

void CheckpointSaver::before_update() {
  if (!pending_) return;
  const Clock::time_point start = Clock::now();
  pending_->await_read();
  event_.pause_seconds += seconds_since(start);
}

void CheckpointSaver::poll() {
  if (pending_ && pending_->is_done()) conclude();
}

void CheckpointSaver::finish() {
  if (pending_) conclude();
}

}  // namespace convoy::train
