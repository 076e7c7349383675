// SPDX-License-Identifier: Apache-2.0
//
// A folder of numbered snapshots, each a folder of files that is either complete and verified or
// not there. Knows nothing of tensors. One writer; any number of readers.
//
//   <root>/step-00000100/{files..., manifest.json}   <root>/last -> step-00000100   <root>/best ->
//   ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convoy/io/json_text.h"

namespace convoy::io {

struct SnapshotManifest {
  int64_t step = 0;
  Json content;  // the caller's own object
};

struct VerifiedSnapshot {
  std::filesystem::path folder;
  SnapshotManifest manifest;
};

class SnapshotStore {
 public:
  // `keep`: snapshots beside `best` and `last` that retention leaves; at least 1.
  SnapshotStore(std::filesystem::path root, int64_t keep);

  // Creates the root and removes what an interrupted save left behind. Writers call it once at
  // start. Throws IoError.
  void prepare();

  // write_files writes into the folder it is given. Then, in this order: every file is fsynced and
  // its CRC32C taken, the manifest is written last and fsynced, the folder renamed to its final
  // name and the root fsynced; then `last` (and `best` when is_best) moves; then retention. On
  // failure nothing is published and the partial folder is removed. Throws IoError or whatever
  // write_files throws. Returns the folder.
  struct SaveRequest {
    int64_t step = 0;
    Json content = Json::object();
    bool is_best = false;
  };
  std::filesystem::path save(const SaveRequest& request,
                             const std::function<void(const std::filesystem::path&)>& write_files);

  // `best` names the snapshot of this step. Throws IoError.
  void mark_best(int64_t step);

  // The newest snapshot whose every file matches its manifest. Each refused newer one adds a
  // sentence to `notices`.
  std::optional<VerifiedSnapshot> newest_valid(std::vector<std::string>& notices) const;
  std::optional<VerifiedSnapshot> best(
      std::vector<std::string>& notices) const;  // what `best` names, verified
  std::vector<int64_t> steps() const;            // published, ascending, not verified
  const std::filesystem::path& root() const { return root_; }

 private:
  void publish(const std::filesystem::path& temporary, int64_t step);
  void link(const std::string& name, int64_t step);
  void apply_retention();
  void discard(const std::filesystem::path& folder);
  std::optional<int64_t> linked_step(const std::string& name) const;
  std::vector<int64_t> newest_first() const;
  int64_t next_sequence() const;
  bool is_valid(int64_t step);

  std::filesystem::path root_;
  int64_t keep_;
  std::set<int64_t> known_valid_;  // saved or verified by this process
};

// Checks every file of one snapshot folder against its manifest. Throws CheckpointError naming what
// differs.
VerifiedSnapshot verify_snapshot(const std::filesystem::path& folder);

std::string snapshot_folder_name(int64_t step);  // "step-00000100"

}  // namespace convoy::io
