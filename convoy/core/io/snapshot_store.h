// SPDX-License-Identifier: Apache-2.0
//
// A folder of numbered snapshots. Each is a folder of files that either exists whole or does not
// exist. Independent of tensors. One writer at a time, any number of readers; used from one thread.
//
//   <root>/step-00000100/           its files, and manifest.json with their sizes and CRC32C
//   <root>/last -> step-00000100    the snapshot saved last
//   <root>/best -> step-00000080    the last one saved as best
//   <root>/.tmp-...                 being written or removed; prepare() clears leftovers of a crash
//   <root>/.replaced-step-00000100  set aside for a rerun of its step; see save()
//
// A writer calls prepare() once, newest_valid() to resume, save() any number of times, and settle()
// at the end. A reader calls only newest_valid() or best().
//
// The store requires two things of its file system: a rename within the folder is atomic, and fsync
// makes data durable before it returns. It also works where names cannot be exchanged, folders
// cannot be synced or symbolic links cannot be made (`last` and `best` are then files that hold the
// name).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convoy/core/io/json_text.h"
#include "convoy/core/io/snapshot_writer.h"

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
  // `keep`: number of snapshots, beside `best` and `last`, that retention leaves; at least 1.
  SnapshotStore(std::filesystem::path root, int64_t keep);

  // For the writer, once at start. Creates the root, removes leftovers of an interrupted save,
  // restores a snapshot that the save had set aside, and calls settle(). Throws IoError.
  void prepare();

  struct SaveRequest {
    int64_t step = 0;
    Json content = Json::object();
    bool is_best = false;
  };

  // Publishes one snapshot and returns its folder. Blocks for as long as the writing and its fsyncs
  // take; reads no snapshot. In this order:
  //   1. `write_files` writes every file; each is fsynced.
  //   2. The manifest is written and fsynced, then the folders.
  //   3. The folder gets its final name, and the root is fsynced. A snapshot of the same step is
  //      set aside before and removed after; a crash between the two leaves it for the next
  //      prepare(), and readers find it meanwhile.
  //   4. `last` is set to the snapshot, and `best` too when is_best.
  //   5. Snapshots beyond `keep` are removed once this process has saved or verified `keep` newer
  //      snapshots. Until then they stay. A crash or an error at any moment leaves
  //      the older snapshots as they were. On an error before 3 nothing is published and the
  //      partial folder is removed. Throws IoError, or what write_files does.
  std::filesystem::path save(const SaveRequest& request,
                             const std::function<void(SnapshotWriter&)>& write_files);

  // Removes all snapshots beyond `keep` for which enough newer whole snapshots exist, after reading
  // and verifying the newer ones. Call it when no training step waits. Throws IoError.
  void settle();

  // Returns the newest snapshot whose files all match its manifest. For each newer snapshot that is
  // refused, `notices` receives a sentence. Reads whole snapshots.
  std::optional<VerifiedSnapshot> newest_valid(std::vector<std::string>& notices);
  // Returns the snapshot that `best` names, verified in the same way.
  std::optional<VerifiedSnapshot> best(std::vector<std::string>& notices);

  std::vector<int64_t> steps() const;  // published, ascending, not verified
  const std::filesystem::path& root() const { return root_; }

 private:
  enum class Unproved { Stay, AreVerified };

  std::filesystem::path folder_of(int64_t step) const;
  void put_back_replaced();
  void publish(const std::filesystem::path& temporary, int64_t step);
  void link(const std::string& name, int64_t step);
  void apply_retention(Unproved unproved);
  void discard(const std::filesystem::path& folder);
  int64_t sequence_of(int64_t step);
  std::vector<int64_t> newest_first();
  int64_t next_sequence();
  bool verify(int64_t step);

  std::filesystem::path root_;
  int64_t keep_;
  std::map<int64_t, int64_t> sequences_;  // by step, of the manifests read or written so far
  std::set<int64_t> proved_;              // saved or verified by this process
};

// Checks every file of one snapshot folder against its manifest. `folder` may be a link to such a
// folder. Throws CheckpointError that names the difference.
VerifiedSnapshot verify_snapshot(const std::filesystem::path& folder);

std::string snapshot_folder_name(int64_t step);  // "step-00000100"

}  // namespace convoy::io
