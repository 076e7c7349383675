// SPDX-License-Identifier: Apache-2.0
//
// Compares across hosts, before the ranks join a group, everything that the ranks of a run must
// have in common. Nodes without a shared folder may hold different files under equal names. Every
// rank throws the same error, which names field, rank and host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/train/checkpoint/stamp.h"
#include "convoy/train/comm/store_barrier.h"

namespace convoy::recipes {

struct SettingsSource {
  // This node's configuration. When the file is missing, rank 0's is written to it and used.
  std::filesystem::path file;
  std::vector<std::string> overrides = {};  // "train.batch_size=1"; applied over the file
};

// True for settings that each node has for itself: paths, whose content is compared instead, and
// the run's name. `key`: "data.train_path".
bool is_own_to_a_node(const std::string& key);

// Collective. Reads `settings`, which must equal rank 0's except for paths. A file or folder that
// only some nodes have is refused here. Throws ConfigError, DataError.
void agree_on_settings(comm::StoreBarrier& store_barrier, const SettingsSource& source,
                       settings::TrainSettings& settings);

// A file or folder that every node reads, identified by its content.
struct SharedInput {
  std::string what;      // "the train rows"
  std::string identity;  // a hash; empty = not read by this rank
  std::string place;     // path on this rank's host
};

// The state that a rank starts from.
struct StartingPoint {
  std::vector<SharedInput> inputs;
  checkpoint::Stamp stamp;
  // The newest checkpoint in this rank's run folder; -1 = none, or the run does not use
  // checkpoints.
  int64_t newest_checkpoint = -1;
  std::string checkpoints_folder;
};

// Collective. Returns the hosts of the job, one per node. Throws DataError for different inputs,
// ConfigError for a different stamp, CheckpointError when a node holds a newer checkpoint than rank
// 0's, which would be ignored.
std::vector<std::string> agree_on_start(comm::StoreBarrier& store_barrier,
                                        const StartingPoint& start);

}  // namespace convoy::recipes
