// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_cleaning.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;

class RunCleaning : public ::testing::Test {
 protected:
  RunCleaning() {
    std::string pattern = (fs::temp_directory_path() / "convoy-clean-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RunCleaning() override { fs::remove_all(folder_); }

  // Makes a run whose last event was at `time`. A run with `loss` 0 took no step.
  void make(const std::string& name, double loss, double time, const char* status = "finished") {
    fs::create_directories(folder_ / name / "checkpoints/step-1");
    fs::create_directories(folder_ / name / "empty");
    if (loss == 0) fs::remove_all(folder_ / name / "checkpoints");
    if (loss > 0) write_file_atomic(folder_ / name / "checkpoints/step-1/state", "12345");
    std::string events = R"({"event":"start","time":1.0,"total_steps":1})"
                         "\n";
    if (loss > 0)
      events += fmt::format(R"({{"event":"step","time":{},"step":1,"loss":9}})"
                            "\n"
                            R"({{"event":"eval","time":{},"step":1,"loss":{}}})"
                            "\n",
                            time, time, loss);
    events += fmt::format(R"({{"event":"end","time":{},"status":"{}"}})"
                          "\n",
                          time, status);
    write_file_atomic(folder_ / name / "events.jsonl", events);
  }

  std::vector<RunHistory> runs() {
    std::vector<RunHistory> found;
    for (const fs::path& path : find_runs(folder_)) found.push_back(read_run(path));
    return found;
  }

  std::vector<std::string> names(const CleaningRequest& request, double now = 1000) {
    std::vector<std::string> found;
    for (const RemovableRun& run : removable_runs(runs(), request, now)) found.push_back(run.name);
    std::sort(found.begin(), found.end());
    return found;
  }

  fs::path folder_;
};

using Names = std::vector<std::string>;

TEST_F(RunCleaning, ByItselfTakesRunsThatNeverTookAStepAndLeftNothing) {
  make("good", 1.5, 900);
  make("empty", 0, 900);
  write_file_atomic(folder_ / "empty/devices.csv", "timestamp\n");
  make("useful", 0, 900);
  write_file_atomic(folder_ / "useful/output.jsonl", "{}\n");
  EXPECT_EQ(names({}), Names{"empty"});
}

TEST_F(RunCleaning, KeepsTheBestAndWhatGoesOn) {
  make("a", 1.5, 900);
  make("b", 1.25, 900);
  make("c", 1.75, 900);
  make("d", 2.0, 900);
  make("no-loss", 0, 900);
  EXPECT_EQ(names({.keep_best = 2}), (Names{"c", "d"}));
  EXPECT_EQ(names({.keep_best = 9}), Names{});
  const RunFolder held = RunFolder::create(folder_ / "d", "d");
  write_file_atomic(folder_ / "d/events.jsonl", R"({"event":"start","time":1.0})"
                                                "\n");
  EXPECT_EQ(names({.keep_best = 2}), Names{"c"});
}

TEST_F(RunCleaning, OldRunsAlone) {
  make("old", 0, 1000);
  make("young", 0, 86400 * 9);
  EXPECT_EQ(names({.older_than_days = 5}, 86400 * 10), Names{"old"});
}

TEST_F(RunCleaning, CheckpointsOfFinishedRunsGoAndTheRestStays) {
  make("done", 1.5, 900);
  make("stopped", 1.25, 900, "stopped");
  const auto chosen = removable_runs(runs(), {.only_checkpoints = true}, 1000);
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].bytes, 5);
  remove_run(chosen[0]);
  EXPECT_FALSE(fs::exists(folder_ / "done/checkpoints"));
  EXPECT_TRUE(fs::exists(folder_ / "done/events.jsonl"));
  EXPECT_TRUE(fs::exists(folder_ / "stopped/checkpoints/step-1/state"));
}

TEST_F(RunCleaning, ARunThatBeganInBetweenIsNotRemoved) {
  make("again", 0, 900);
  const auto chosen = removable_runs(runs(), {}, 1000);
  ASSERT_EQ(chosen.size(), 1U);
  const RunFolder held = RunFolder::create(folder_ / "again", "again");
  EXPECT_THROW(remove_run(chosen[0]), ConfigError);
  EXPECT_TRUE(fs::exists(folder_ / "again/events.jsonl"));
  EXPECT_THROW(named_runs(runs(), {}), ConfigError);
}

}  // namespace
}  // namespace convoy::telemetry
