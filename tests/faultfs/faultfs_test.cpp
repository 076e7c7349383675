// SPDX-License-Identifier: Apache-2.0
//
// Makes each file call of a save fail or end the process, in every way, and expects a valid
// snapshot each time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <tuple>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/snapshot_store.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;

struct Fault {
  std::string action{};
  int64_t call = 0;
  fs::path prefix{};
  fs::path trace{};
  std::string lacks{};
};

// Returns the exit code, or 128 + the signal.
int run_subject(const std::vector<std::string>& arguments, const Fault& fault) {
  std::vector<std::string> environment = {
      "LD_PRELOAD=" + std::string(std::getenv("CONVOY_FAULTFS")),
      "FAULTFS_PREFIX=" + fault.prefix.string(), "FAULTFS_CALL=" + std::to_string(fault.call),
      "FAULTFS_ACTION=" + fault.action, "FAULTFS_LACKS=" + fault.lacks};
  if (!fault.trace.empty()) environment.push_back("FAULTFS_TRACE=" + fault.trace.string());
  std::vector<std::string> words = {std::getenv("CONVOY_FAULTFS_SUBJECT")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int status = ::posix_spawn(&child, words[0].c_str(), &actions, nullptr,
                                   pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) throw std::runtime_error("posix_spawn " + words[0]);
  int result = 0;
  ::waitpid(child, &result, 0);
  return WIFSIGNALED(result) ? 128 + WTERMSIG(result) : WEXITSTATUS(result);
}

int save(const fs::path& root, int64_t step, const Fault& fault = {}) {
  return run_subject({"save", root.string(), std::to_string(step), "1"}, fault);
}

std::vector<std::string> trace_lines(const fs::path& trace) {
  std::ifstream file(trace);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool is_read(const std::string& line) {
  return line.starts_with("read ") || line.starts_with("map ");
}

int64_t count_calls(const fs::path& trace) {
  const std::vector<std::string> lines = trace_lines(trace);
  return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.starts_with("open-elsewhere") && !is_read(line);
  });
}

int64_t newest_step(const fs::path& root) {
  std::vector<std::string> notices;
  const auto found = io::SnapshotStore(root, 1).newest_valid(notices);
  return found ? found->manifest.step : -1;
}

int64_t num_valid(const fs::path& root) {
  int64_t count = 0;
  for (const int64_t step : io::SnapshotStore(root, 1).steps()) {
    try {
      io::verify_snapshot(root / io::snapshot_folder_name(step));
      ++count;
    } catch (const CheckpointError&) {
    }
  }
  return count;
}

// Names what a file system may lack, as network file systems do: all of it.
constexpr const char* kNetwork = "exchange folder_fsync symlink nameless";

struct Place {
  std::string name;
  std::string lacks;
  int64_t step = 4;  // 4 is a new step after 1 to 3; 3 is saved again
};

void PrintTo(const Place& place, std::ostream* stream) { *stream << place.name; }

// The steps 1 to 3 are saved (2 is the best, 3 the last), so the save of step 4 also moves both
// links and removes two snapshots. The save of step 3 replaces the snapshot that `last` names.
class EveryCall : public ::testing::TestWithParam<std::tuple<Place, std::string>> {
 protected:
  void SetUp() override {
    for (int64_t step = 1; step <= 3; ++step)
      ASSERT_EQ(save(start_.path(), step, {.prefix = start_.path(), .lacks = place().lacks}), 0);
  }

  static const Place& place() { return std::get<0>(GetParam()); }

  TemporaryFolder start_;
};

TEST_P(EveryCall, LeavesAValidSnapshotAndTheNextSaveWorks) {
  const auto& [place, action] = GetParam();
  int64_t num_struck = 0;
  for (int64_t call = 1;; ++call) {
    SCOPED_TRACE(action + " at call " + std::to_string(call));
    TemporaryFolder folder;
    const fs::path root = folder / "checkpoints";
    fs::copy(start_.path(), root, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const fs::path trace = folder / "trace";
    const int code = save(root, place.step, {action, call, root, trace, place.lacks});
    const int64_t num_calls = count_calls(trace);
    if (num_calls < call) {
      EXPECT_EQ(code, 0);
      break;
    }
    ++num_struck;
    const bool ends_by_signal = action == "kill" || action == "torn" || action == "power";
    const bool is_invisible = action == "short" || action == "EINTR";
    EXPECT_TRUE(!is_invisible || code == 0) << code;
    EXPECT_TRUE(!ends_by_signal || code == 128 + 9) << code;
    EXPECT_TRUE(code == 0 || code == 12 || code == 128 + 9) << code;

    const int64_t newest = newest_step(root);
    EXPECT_TRUE(newest == 3 || newest == place.step) << newest;
    EXPECT_TRUE(code != 0 || newest == place.step) << newest;
    EXPECT_GE(num_valid(root), 2);

    io::SnapshotStore(root, 1).prepare();
    EXPECT_EQ(newest_step(root), newest) << "the next start lost it";
    EXPECT_TRUE(fs::exists(root / "last")) << "a dangling link";
    EXPECT_TRUE(fs::exists(root / "best"));
    ASSERT_EQ(save(root, 6, {.prefix = root, .lacks = place.lacks}), 0) << "the next start";
    EXPECT_EQ(newest_step(root), 6);
    for (const auto& entry : fs::directory_iterator(root))
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
  }
  EXPECT_GE(num_struck, 30) << "the shim saw too few calls";
}

INSTANTIATE_TEST_SUITE_P(Actions, EveryCall,
                         ::testing::Combine(::testing::Values(Place{"local", ""},
                                                              Place{"local_again", "", 3},
                                                              Place{"network", kNetwork},
                                                              Place{"network_again", kNetwork, 3}),
                                            ::testing::Values("kill", "torn", "power", "EIO",
                                                              "ENOSPC", "short", "EINTR")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param).name + "_" + std::get<1>(tested.param);
                         });

// A save within a step reads nothing: neither what it wrote, nor the older snapshots that retention
// counts.
TEST(Save, ReadsNoSnapshot) {
  for (const int64_t step : {4, 3}) {
    TemporaryFolder folder;
    const fs::path root = folder / "checkpoints";
    for (int64_t saved = 1; saved <= 3; ++saved) ASSERT_EQ(save(root, saved), 0);
    ASSERT_EQ(save(root, step, {.prefix = root, .trace = folder / "trace"}), 0);
    const std::vector<std::string> lines = trace_lines(folder / "trace");
    const auto begin = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("mkdir ") && line.find("/.tmp-step-") != std::string::npos;
    });
    ASSERT_NE(begin, lines.end());
    EXPECT_TRUE(std::any_of(lines.begin(), begin, is_read)) << "the shim sees no reads";
    for (auto line = begin; line != lines.end(); ++line) EXPECT_FALSE(is_read(*line)) << *line;
  }
}

// Another process may rename the file's folder as soon as the file is there, as rank 0 renames a
// checkpoint when the last rank has written its part.
TEST(AtomicFile, NamesNothingAfterItsRename) {
  for (const std::string lacks : {"", kNetwork}) {
    TemporaryFolder folder;
    const fs::path inner = folder / "inner";
    ASSERT_EQ(run_subject({"write", (inner / "file").string()},
                          {.prefix = inner, .trace = folder / "trace", .lacks = lacks}),
              0);
    const std::vector<std::string> lines = trace_lines(folder / "trace");
    const auto renamed = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("rename ");
    });
    ASSERT_NE(renamed, lines.end());
    EXPECT_NE(renamed + 1, lines.end()) << "the rename is not made durable";
    for (auto line = renamed + 1; line != lines.end(); ++line)
      EXPECT_TRUE(line->starts_with("fsync ") || line->starts_with("close ")) << *line;
  }
}

TEST(NetworkFileSystem, ARunFolderWithoutLocksIsUsedUnlocked) {
  TemporaryFolder folder;
  const auto hold = [&](const std::string& lacks) {
    return run_subject({"hold", folder.path().string()}, {.prefix = folder.path(), .lacks = lacks});
  };
  EXPECT_EQ(hold(""), 0);
  EXPECT_EQ(hold("lock"), 3);
}

TEST(NetworkFileSystem, FilesThatCanNotBeMappedAreRead) {
  TemporaryFolder folder;
  const fs::path model = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m";
  EXPECT_EQ(run_subject({"open", model.string()},
                        {.prefix = model, .trace = folder / "trace", .lacks = "map"}),
            0);
  const std::vector<std::string> lines = trace_lines(folder / "trace");
  const std::string weights = (model / "model.safetensors").string();
  EXPECT_TRUE(std::find(lines.begin(), lines.end(), "map " + weights) != lines.end());
  EXPECT_TRUE(std::find(lines.begin(), lines.end(), "read " + weights) != lines.end());
}

struct SmallDisk {
  explicit SmallDisk(const fs::path& at) : path(at) {
    fs::create_directory(path);
    mounted = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~SmallDisk() {
    if (mounted) ::umount(path.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  fs::path path;
  bool mounted = false;
};

TEST(FullDisk, OlderSnapshotsStayAndThePartialOneGoes) {
  TemporaryFolder folder;
  const SmallDisk small(folder / "disk");
  if (!small.mounted) GTEST_SKIP() << "mounting needs root";
  const fs::path& disk = small.path;
  // The disk has room for two saves. Another file then takes the room that a third save needs.
  for (int64_t step = 1; step <= 2; ++step) ASSERT_EQ(save(disk / "checkpoints", step), 0);
  std::ofstream(disk / "other") << std::string(1 << 20, 'x');
  EXPECT_EQ(save(disk / "checkpoints", 3), 12);
  EXPECT_EQ(newest_step(disk / "checkpoints"), 2);
  for (const auto& entry : fs::directory_iterator(disk / "checkpoints"))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp-")) << entry.path();
  fs::remove(disk / "other");
  EXPECT_EQ(save(disk / "checkpoints", 3), 0);
}

TEST(BrokenModels, OpenNothingOutsideTheirFolder) {
  const fs::path models = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/broken/models";
  int num_folders = 0;
  for (const auto& entry : fs::directory_iterator(models)) {
    SCOPED_TRACE(entry.path().filename());
    TemporaryFolder folder;
    EXPECT_EQ(run_subject({"open", entry.path().string()},
                          {.prefix = entry.path(), .trace = folder / "trace"}),
              10);
    for (const std::string& line : trace_lines(folder / "trace"))
      EXPECT_FALSE(line.starts_with("open-elsewhere")) << line;
    ++num_folders;
  }
  EXPECT_GE(num_folders, 40);
}

}  // namespace
}  // namespace convoy
