// SPDX-License-Identifier: Apache-2.0
//
// Training state on disk: saved atomically, loaded only when every byte matches. Rank 0 saves the
// state that all ranks hold alike. Each rank saves its part of the sharded state. All ranks write
// to one folder, which all of them see. Tensors lie in files of their group (group_files.h),
// everything else in the manifest.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/snapshot_store.h"
#include "convoy/train/checkpoint/group_files.h"
#include "convoy/train/checkpoint/pending_save.h"
#include "convoy/train/checkpoint/stamp.h"
#include "convoy/train/comm/group.h"

namespace convoy::checkpoint {

// The position of training. Positions count completed work.
struct Progress {
  int64_t step = 0;   // optimizer steps
  int64_t epoch = 0;  // 0-based
  int64_t tokens_seen = 0;
  int64_t supervised_tokens_seen = 0;
  std::optional<double> best_metric;
  int64_t best_step = 0;
  int64_t evaluations_without_improvement = 0;
  bool evaluation_pending = false;  // due after this step, but put off by a request to stop
  bool operator==(const Progress&) const = default;
};

io::Json to_json(const Progress& progress);
Progress progress_from_json(const io::Json& json, const std::string& place);  // throws DataError

struct TrainState {
  Progress progress;
  Stamp stamp;
  io::Json extra = io::Json::object();  // the caller's own values (schedule, log history)
};

using NamedTensors = std::map<std::string, at::Tensor>;

// The tensors of a checkpoint by group: "model", "adapter_model", "optimizer". They lie on any
// device.
struct TrainTensors {
  std::map<std::string, NamedTensors> whole;  // written by rank 0
  // This rank's pieces of sharded tensors, by group.
  std::map<std::string, std::vector<Piece>> pieces;
};

struct LoadedCheckpoint {
  std::filesystem::path folder;
  TrainState state;
  std::vector<std::string> notices;  // newer checkpoints that were refused, and why
  GroupReader group(const std::string& name) const { return {folder, name}; }
};

// Text or bytes of further files of a checkpoint, by name.
using NamedFiles = std::map<std::string, std::string>;

class CheckpointStore {
 public:
  // `folder`: <run>/checkpoints. `keep`: number of checkpoints that are kept beside best and last.
  CheckpointStore(std::filesystem::path folder, int64_t keep);

  std::filesystem::path folder_of(int64_t step) const;  // the present or future folder

  // Called once at start, by the process that writes: removes what an interrupted save left. Throws
  // IoError.
  void prepare();

  // Writes `state`, whole `tensors` and `more_files` (adapter_config.json, trainer_state.json),
  // then publishes the checkpoint. A SIGKILL at any time leaves a valid older checkpoint. Reads no
  // checkpoint. When it throws IoError, the older checkpoints are untouched. Blocks.
  std::filesystem::path save(const TrainState& state, const TrainTensors& tensors, bool is_best,
                             const NamedFiles& more_files = {});
  // save() on a thread of its own. The device must be done with `tensors`. The caller may change
  // `tensors` once await_read() has returned, and use the store again once wait() has returned.
  std::unique_ptr<PendingSave> start_save(TrainState state, TrainTensors tensors, bool is_best,
                                          NamedFiles more_files = {});
  // start_save() for sharded state: every rank writes its own pieces. Collective until it returns.
  // `state` and `more_files` of rank 0 are saved. On other ranks wait() returns an empty path when
  // their part is written; on a rank that does not see the folder it throws IoError.
  std::unique_ptr<PendingSave> start_save_together(comm::Group& group, TrainState state,
                                                   TrainTensors tensors, bool is_best,
                                                   NamedFiles more_files = {});

  // Removes the remaining checkpoints beyond `keep`, after verifying newer ones by reading them.
  // Throws IoError.
  void settle();

  // Empty when there is no checkpoint at all. Throws CheckpointError when there are checkpoints and
  // none of them is valid.
  std::optional<LoadedCheckpoint> load_newest();
  std::optional<LoadedCheckpoint> load_best();
  std::optional<int64_t> newest_step() const;  // the newest checkpoint, which is not verified

 private:
  io::SnapshotStore store_;
};

// One checkpoint folder that the user named (or a `last` link). Throws CheckpointError when damaged
// or missing.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& folder);

}  // namespace convoy::checkpoint
