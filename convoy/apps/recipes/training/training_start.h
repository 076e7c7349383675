// SPDX-License-Identifier: Apache-2.0
//
// The start of a training of any kind, in stages, each of which returns the input of the next.
// Ranks find the checkpoint to resume, agree on their starting state, and join their group.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/training/agreement.h"
#include "convoy/apps/recipes/training/training_run.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {

// The checkpoint from which a run resumes. A new run has zeros, no folder and no stamp.
struct FoundCheckpoint {
  checkpoint::Progress progress = {};
  std::filesystem::path folder = {};  // as rank 0 sees it
  io::Json objective_memory = io::Json::object();
  std::optional<checkpoint::Stamp> stamp = {};
  std::optional<checkpoint::LoadedCheckpoint> loaded = {};  // on rank 0
  // World size that rank 0 counts, when nodes start different numbers of ranks.
  int64_t full_world = 1;
  bool forgets_best = false;  // another metric decides the best from now on

  // A number in the settings of the checkpoint's run ("batch_size").
  std::optional<int64_t> saved_number(const std::string& setting) const;
  // The text of the checkpoint's trainer_state.json, on rank 0; empty when there is none.
  std::string trainer_state() const;
};

// Collective. Rank 0 decides; the other ranks need not have the checkpoint. Also settles run.dtype.
// If the settings leave it open, it is the dtype of the checkpoint, or in a new run that of the
// rule in sizing/compute_dtype.h. Throws CheckpointError.
FoundCheckpoint find_checkpoint(TrainingRun& run);

// Units per step: the checkpoint's, unless `settings` request others. Computed for the job with all
// its nodes, so that the number does not depend on which nodes take part.
int64_t global_batch(const TrainingRun& run, const FoundCheckpoint& found,
                     const settings::TrainSettings& settings);

// The starting state, equal on all ranks.
struct Agreed {
  std::vector<std::string> hosts;  // one per node
};

// Collective. Checks the stamp of the checkpoint, then compares the ranks; `inputs` reads the
// content that hosts must have in common. Throws CheckpointError for another stamp, and as
// agree_on_start().
Agreed agree(const TrainingRun& run, const FoundCheckpoint& found, const checkpoint::Stamp& stamp,
             const std::function<std::vector<SharedInput>()>& inputs);

// Collective. From here on every wait has a limit, except waits for files.
std::unique_ptr<comm::Group> join(const TrainingRun& run, const Agreed& agreed);

// Collective. Restores the optimizer states on every rank.
void restore_optimizer(const FoundCheckpoint& found, optim::AdamW& optimizer,
                       parallel::Strategy& strategy);

// True when the run must load its best checkpoint at the end, because its last one is another.
bool takes_best(const settings::TrainingSettings& train, const checkpoint::Progress& progress);
// Collective. Returns the folder of rank 0's best checkpoint on every rank; empty when there is
// none.
std::string folder_of_best(comm::Group& group,
                           const std::optional<checkpoint::LoadedCheckpoint>& best);

}  // namespace convoy::recipes
