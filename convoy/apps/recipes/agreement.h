// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a run must have in common, compared across hosts before they join a group:
// nodes that share no folder may hold other files under the same names. Every rank throws the same
// error, which names field, rank and host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/train/checkpoint/stamp.h"
#include "convoy/train/comm/meeting.h"

namespace convoy::recipes {

struct SettingsSource {
  // This node's configuration. Where the file is not there, rank 0's is written to it and counts.
  std::filesystem::path file;
  std::vector<std::string> overrides = {};  // "train.batch_size=1", over the file
};

// Settings that each node has for itself: places, whose content is compared instead, and the run's
// name. "data.train_path".
bool is_own_to_a_node(const std::string& key);

// Collective. Reads `settings`, which must be rank 0's but for paths: those are each node's own,
// and so the files and folders that only some of the nodes have are refused here. Throws
// ConfigError, DataError.
void agree_on_settings(comm::Meeting& meeting, const SettingsSource& source,
                       settings::TrainSettings& settings);

// A file or folder that every node reads, by what is in it.
struct SharedInput {
  std::string what;      // "the train rows"
  std::string identity;  // a hash; empty = not looked at by this rank
  std::string place;     // where this rank has it
};

// What a rank starts from.
struct StartingPoint {
  std::vector<SharedInput> inputs;
  checkpoint::Stamp stamp;
  // Of the checkpoints in this rank's run folder; -1 = none, or they play no part.
  int64_t newest_checkpoint = -1;
  std::string checkpoints_folder;
};

// Collective. Returns the hosts of the job, one per node. Throws DataError for other inputs,
// ConfigError for another stamp, CheckpointError where a node holds a newer checkpoint than rank
// 0's: that would be passed over.
std::vector<std::string> agree_on_start(comm::Meeting& meeting, const StartingPoint& start);

}  // namespace convoy::recipes
