// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/snapshot_store.h"

#include <gtest/gtest.h>

#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;

fs::path save(SnapshotStore& store, int64_t step, bool is_best = false) {
  return store.save({step, {{"number", step}}, is_best}, [&](SnapshotWriter& writer) {
    writer.write("weights", fmt::format("weights of {}", step));
    writer.write("adapter/inner", "inner");
  });
}

void flip_bit(const fs::path& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(at);
  file.put(byte);
}

int64_t newest(SnapshotStore& store, std::vector<std::string>* notices = nullptr) {
  std::vector<std::string> said;
  const auto found = store.newest_valid(said);
  if (notices != nullptr) *notices = said;
  return found ? found->manifest.step : -1;
}

TEST(SnapshotStore, SavesLinksAndLoads) {
  TemporaryFolder folder;
  SnapshotStore store(folder / "checkpoints", 2);
  store.prepare();
  EXPECT_EQ(newest(store), -1);
  const fs::path saved = save(store, 7, true);
  EXPECT_EQ(saved.filename(), "step-00000007");
  std::vector<std::string> notices;
  const auto loaded = store.newest_valid(notices);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->manifest.content.at("number"), 7);
  EXPECT_EQ(read_file(loaded->folder / "weights"), "weights of 7");
  EXPECT_EQ(fs::read_symlink(folder / "checkpoints/last"), "step-00000007");
  EXPECT_EQ(store.best(notices)->manifest.step, 7);
  EXPECT_EQ(verify_snapshot(folder / "checkpoints/last").manifest.step, 7);
  EXPECT_TRUE(notices.empty());
}

TEST(SnapshotStore, EveryFlippedBitOrCutFileIsRefusedAndTheOneBeforeIsUsed) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 3);
  store.prepare();
  save(store, 1);
  for (const char* name : {"weights", "adapter/inner", "manifest.json"}) {
    const fs::path file = save(store, 2) / name;
    const auto size = static_cast<int64_t>(fs::file_size(file));
    for (int64_t at = 0; at < size; ++at) {
      flip_bit(file, at);
      std::vector<std::string> notices;
      const int64_t step = newest(store, &notices);
      // White space in the manifest has no meaning, so a flipped bit there may be accepted or
      // refused.
      if (step != 2) {
        EXPECT_EQ(step, 1);
        ASSERT_EQ(notices.size(), 1u);
        EXPECT_NE(notices[0].find("step-00000002"), std::string::npos) << notices[0];
      } else {
        EXPECT_EQ(fs::path(name), "manifest.json");
      }
      flip_bit(file, at);
    }
    fs::resize_file(file, static_cast<uintmax_t>(size - 1));
    EXPECT_EQ(newest(store), std::string(name) == "manifest.json" ? 2 : 1)
        << name;  // the byte that is cut off is the manifest's last newline
    fs::remove(file);
    EXPECT_EQ(newest(store), 1) << name;
  }
}

TEST(SnapshotStore, ADamagedStepIsReplacedByItsRerun) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 3);
  store.prepare();
  save(store, 1);
  flip_bit(save(store, 2) / "weights", 0);
  save(store, 2);
  EXPECT_EQ(newest(store), 2);
}

TEST(SnapshotStore, RetentionKeepsBestLastAndEnoughValidOnes) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 2);
  store.prepare();
  save(store, 1, true);
  for (int64_t step = 2; step <= 6; ++step) save(store, step);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 4, 5, 6}));
  flip_bit(folder / "step-00000005/weights", 0);
  SnapshotStore next_process(folder.path(), 2);
  next_process.prepare();
  save(next_process, 7);
  next_process.settle();
  EXPECT_EQ(next_process.steps(), (std::vector<int64_t>{1, 4, 5, 6, 7}))
      << "a damaged one counts as kept";
  save(next_process, 8, true);
  EXPECT_EQ(next_process.steps(), (std::vector<int64_t>{6, 7, 8}));
}

// A save does not read older snapshots. A snapshot that was never read may be damaged, so a save
// removes no other snapshot in its favour.
TEST(SnapshotStore, ASaveRemovesOnlyWhatProvedOnesReplace) {
  TemporaryFolder folder;
  SnapshotStore first_process(folder.path(), 2);
  first_process.prepare();
  for (int64_t step = 1; step <= 3; ++step) save(first_process, step);
  SnapshotStore store(folder.path(), 2);
  store.prepare();
  EXPECT_EQ(newest(store), 3);
  save(store, 4);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 2, 3, 4})) << "only 3 was proved whole";
  save(store, 5);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{3, 4, 5}));

  // Processes that each save once and end do not fill the disk, because every start removes what it
  // may.
  for (int64_t step = 6; step <= 20; ++step) {
    SnapshotStore attempt(folder.path(), 2);
    attempt.prepare();
    save(attempt, step);
    EXPECT_LE(attempt.steps().size(), 4u);
  }
}

TEST(SnapshotStore, AReplacedSnapshotIsFoundAndPutBack) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 2);
  store.prepare();
  save(store, 1);
  save(store, 2, true);
  // A crash between the two renames of a rerun leaves the folder like this.
  fs::rename(folder / "step-00000002", folder / ".replaced-step-00000002");
  EXPECT_EQ(newest(store), 2);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 2}));
  std::vector<std::string> notices;
  EXPECT_EQ(store.best(notices)->manifest.step, 2);
  SnapshotStore next_process(folder.path(), 2);
  next_process.prepare();
  EXPECT_TRUE(fs::exists(folder / "last/weights"));
  EXPECT_FALSE(fs::exists(folder / ".replaced-step-00000002"));
  // A crash after both renames leaves two copies of the snapshot; the new one counts.
  fs::copy(folder / "step-00000001", folder / ".replaced-step-00000002",
           fs::copy_options::recursive);
  next_process.prepare();
  EXPECT_EQ(newest(next_process), 2);
  EXPECT_FALSE(fs::exists(folder / ".replaced-step-00000002"));
}

TEST(SnapshotStore, AFileStandsInForALink) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 1);
  store.prepare();
  save(store, 1, true);
  for (const char* name : {"last", "best"}) {
    fs::remove(folder / name);
    write_file_atomic(folder / name, "step-00000001\n");
  }
  std::vector<std::string> notices;
  EXPECT_EQ(store.best(notices)->manifest.step, 1);
  EXPECT_EQ(verify_snapshot(folder / "last").manifest.step, 1);
  for (int64_t step = 2; step <= 4; ++step) save(store, step);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 3, 4})) << "1 is best";
}

TEST(SnapshotStore, NewestIsTheLastSavedNotTheLargestStep) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 5);
  store.prepare();
  for (const int64_t step : {10, 20, 12}) save(store, step);
  EXPECT_EQ(newest(store), 12);
}

TEST(SnapshotStore, AFailedSavePublishesNothing) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 2);
  store.prepare();
  save(store, 1);
  EXPECT_THROW(store.save({.step = 2}, [](SnapshotWriter&) { throw IoError("disk full"); }),
               IoError);
  EXPECT_EQ(newest(store), 1);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1}));
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp-")) << entry.path();
}

TEST(SnapshotStore, PrepareRemovesLeftovers) {
  TemporaryFolder folder;
  fs::create_directories(folder / "c/.tmp-step-00000003-1/adapter");
  SnapshotStore store(folder / "c", 2);
  store.prepare();
  EXPECT_TRUE(fs::is_empty(folder / "c"));
}

TEST(SnapshotStore, AManifestMayNotNameFilesOutside) {
  TemporaryFolder folder;
  SnapshotStore store(folder.path(), 2);
  store.prepare();
  const fs::path manifest = save(store, 1) / "manifest.json";
  std::string text = read_file(manifest);
  text.replace(text.find("\"weights\""), 9, "\"../../x\"");
  write_file_atomic(manifest, text);
  EXPECT_THROW(verify_snapshot(folder / "step-00000001"), CheckpointError);
}

}  // namespace
}  // namespace convoy::io
