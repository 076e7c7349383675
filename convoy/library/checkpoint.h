// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that every rank writes its part of and any number of ranks loads, whole or sharded:
//
//   convoy::CheckpointFolder checkpoints("runs/mnist/checkpoints", group);
//   const auto resumed = checkpoints.load(model, optimizer);
//   for (int64_t step = resumed ? resumed->step : 0; step < steps; ++step) {
//     ...
//     if (step % 100 == 99) checkpoints.save(step + 1, model, optimizer);
//   }
//
// A checkpoint is a folder of safetensors files and a manifest with their sums; it appears whole or
// not at all, and a damaged one is not loaded but the one before it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "convoy/library/detail/held_state.h"
#include "convoy/library/process_group.h"

namespace convoy {

// The place where the saved run stood.
struct Resumed {
  int64_t step = 0;
  std::map<std::string, std::string> notes;  // the program's own: epoch, best accuracy
};

class CheckpointFolder {
 public:
  // `folder` is one that all ranks see; it is made. `keep`: how many checkpoints stay, at least 1.
  CheckpointFolder(std::filesystem::path folder, std::shared_ptr<ProcessGroup> group,
                   int64_t keep = 2);
  ~CheckpointFolder();

  // Collective. `model`: a DistributedDataParallel or FullyShardedDataParallel; `optimizer`: a
  // torch::optim optimizer of its parameters, or a ZeroOptimizer. Parameters, buffers (rank 0's),
  // optimizer states and options are saved. Blocks until the checkpoint is on disk. Throws IoError
  // when it cannot be written.
  template <class Model, class Optimizer>
  void save(int64_t step, Model& model, Optimizer& optimizer,
            const std::map<std::string, std::string>& notes = {}) {
    save_parts(step, model.sharing(), detail::held_state(optimizer, model.sharing()), notes);
  }
  // Collective; blocks. The newest checkpoint that is whole; nothing when there is none yet. Throws
  // CheckpointError when all are damaged, or the checkpoint lacks a tensor of the model or of the
  // optimizer, or has it in another shape.
  template <class Model, class Optimizer>
  std::optional<Resumed> load(Model& model, Optimizer& optimizer) {
    return load_parts(model.sharing(), detail::held_state(optimizer, model.sharing()));
  }
  // Not collective: call it on one rank. Writes the parameters and buffers of the newest checkpoint
  // that is whole into one safetensors file, with the module's names and types: in Python
  // safetensors.torch.load_file() reads it, for load_state_dict() of the same module. A weight of
  // several names is there once, by its first, as safetensors.torch.save_model() has it. The
  // metadata hold the step, and the notes as JSON. Throws CheckpointError when there is no
  // checkpoint or all are damaged, IoError when the file cannot be written.
  void export_model(const std::filesystem::path& file);

 private:
  void save_parts(int64_t step, detail::Sharing& sharing, detail::HeldState held,
                  const std::map<std::string, std::string>& notes);
  std::optional<Resumed> load_parts(detail::Sharing& sharing, detail::HeldState held);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
