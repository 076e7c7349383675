// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints. Every rank writes its part; any number of ranks can load them, whole or sharded:
//
//   convoy::CheckpointFolder checkpoints("runs/mnist/checkpoints", group);
//   const auto resumed = checkpoints.load(model, optimizer);
//   for (int64_t step = resumed ? resumed->step : 0; step < steps; ++step) {
//     ...
//     if (step % 100 == 99) checkpoints.save(step + 1, model, optimizer);
//   }
//
// A checkpoint is a folder of safetensors files and a manifest with their checksums. It appears
// whole or not at all. Instead of a damaged checkpoint the one before it is loaded.
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

// The position of the saved run.
struct Resumed {
  int64_t step = 0;
  std::map<std::string, std::string> notes;  // notes of the program: epoch, best accuracy
};

class CheckpointFolder {
 public:
  // `folder`: a folder that all ranks see; it is created. `keep`: number of checkpoints that stay,
  // at least 1.
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
  // Collective; blocks. Loads the newest checkpoint that is whole. Returns nothing when there is no
  // checkpoint yet. Throws CheckpointError when all checkpoints are damaged, or the checkpoint
  // lacks a tensor of the model or of the optimizer, or has it in another shape.
  template <class Model, class Optimizer>
  std::optional<Resumed> load(Model& model, Optimizer& optimizer) {
    return load_parts(model.sharing(), detail::held_state(optimizer, model.sharing()));
  }
  // Not collective: call it on one rank. Writes the parameters and buffers of the newest whole
  // checkpoint into one safetensors file, under the module's names and in its types. In Python
  // safetensors.torch.load_file() reads the file, for load_state_dict() of the same module. A
  // weight with several names is in the file once, under its first name, as with
  // safetensors.torch.save_model(). The metadata hold the step, and the notes as JSON. Throws
  // CheckpointError when there is no checkpoint or all are damaged, IoError when the file cannot be
  // written.
  void export_model(const std::filesystem::path& file);

 private:
  void save_parts(int64_t step, detail::Sharing& sharing, detail::HeldState held,
                  const std::map<std::string, std::string>& notes);
  std::optional<Resumed> load_parts(detail::Sharing& sharing, detail::HeldState held);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
