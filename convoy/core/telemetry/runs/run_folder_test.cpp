// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"

namespace convoy::telemetry {
namespace {

using nlohmann::json;

TEST(RunFolder, MakesAFreshFolderNamedAfterTheRun) {
  const TestFolder folder;
  const RunFolder first = RunFolder::create("", "sums lora", folder.path() / "runs");
  const RunFolder second = RunFolder::create("", "sums lora", folder.path() / "runs");
  EXPECT_TRUE(first.path().filename().string().starts_with("sums-lora-20"));
  EXPECT_NE(first.path(), second.path());
  EXPECT_TRUE(std::filesystem::is_directory(first.logs_folder()));
}

TEST(RunFolder, ASecondWriterIsRefusedAndNamesTheHolder) {
  const TestFolder folder;
  const RunFolder first = RunFolder::create(folder.path(), "a");
  EXPECT_TRUE(run_folder_is_held(folder.path()));
  try {
    RunFolder::create(folder.path(), "a");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(static_cast<int>(error.code()), 2);
    EXPECT_NE(error.sentence().find("process " + std::to_string(::getpid()) + " on "),
              std::string::npos)
        << error.sentence();
  }
  EXPECT_EQ(RunFolder::attach(folder.path()).path(), first.path());
}

TEST(RunFolder, WhoOnlyTakesPartNeedsNoLockAndLeavesItToTheWriter) {
  const TestFolder folder;
  const RunFolder part = RunFolder::take_part(folder.path() / "a", "a");
  EXPECT_TRUE(std::filesystem::is_directory(part.logs_folder()));
  EXPECT_FALSE(run_folder_is_held(part.path()));
  const RunFolder writer = RunFolder::create(part.path(), "a");
  EXPECT_EQ(RunFolder::take_part(part.path(), "a").path(), writer.path());
  EXPECT_TRUE(run_folder_is_held(part.path()));
}

TEST(RunFolder, TheLockEndsWithItsObject) {
  const TestFolder folder;
  { const RunFolder run = RunFolder::create(folder.path(), "a"); }
  EXPECT_FALSE(run_folder_is_held(folder.path()));
  const RunFolder again = RunFolder::create(folder.path(), "a");
  EXPECT_TRUE(run_folder_is_held(folder.path()));
}

TEST(RunFolder, TheLockOfAKilledProcessIsTakenOver) {
  const TestFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder run = RunFolder::create(folder.path(), "a");
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROW(RunFolder::create(folder.path(), "a"), ConfigError);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const RunFolder run = RunFolder::create(folder.path(), "a");
  const json holder = json::parse(read_file(folder.path() / ".lock"));
  EXPECT_EQ(holder["pid"], ::getpid());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(RunFolder, IdentityKeepsItsBirthAndListsStarts) {
  const TestFolder folder;
  const RunFolder run = RunFolder::create(folder.path(), "a");
  RunIdentity identity{
      .name = "a", .task = "sft", .config_yaml = "seed: 1\n", .config_json = R"({"seed":1})"};
  identity.origins = {{"seed", "run.yaml:1"}};
  identity.data_hashes = {{"train", "abc"}};
  run.write_identity(identity);
  identity.resume_step = 10;
  run.write_identity(identity);
  const json record = json::parse(read_file(run.identity_path()));
  EXPECT_EQ(record["starts"].size(), 2u);
  EXPECT_EQ(record["starts"][1]["resume_step"], 10);
  EXPECT_EQ(record["created"], record["starts"][0]["time"]);
  EXPECT_EQ(record["config"]["seed"], 1);
  EXPECT_EQ(record["origins"]["seed"], "run.yaml:1");
  EXPECT_EQ(read_file(run.config_path()), "seed: 1\n");
}

TEST(RunFolder, IdentityKeepsTheConfigWrittenBeforeTheStart) {
  const TestFolder folder;
  const RunFolder run = RunFolder::create(folder.path(), "a");
  run.write_config("seed: 1\n", {{"seed", 1}}, {{"seed", "run.yaml:1"}});
  run.write_identity({.name = "a", .task = "sft"});
  const json record = json::parse(read_file(run.identity_path()));
  EXPECT_EQ(record["name"], "a");
  EXPECT_EQ(record["config"]["seed"], 1);
  EXPECT_EQ(record["origins"]["seed"], "run.yaml:1");
  EXPECT_EQ(read_file(run.config_path()), "seed: 1\n");
}

TEST(RunFolder, ARefusedStartLeavesTheConfigOfTheRun) {
  const TestFolder folder;
  const RunFolder run = RunFolder::create(folder.path(), "a");
  run.write_config("seed: 1\n", {{"seed", 1}}, {{"seed", "run.yaml:1"}});
  run.write_identity({.name = "a", .task = "sft"});
  run.propose_config({{"seed", 2}}, {{"seed", "argument"}});
  EXPECT_EQ(read_file(run.config_path()), "seed: 1\n");
  EXPECT_EQ(json::parse(read_file(run.identity_path()))["config"]["seed"], 1);
  run.write_identity({.name = "a", .task = "sft", .config_yaml = "seed: 2\n"});
  const json accepted = json::parse(read_file(run.identity_path()));
  EXPECT_EQ(accepted["config"]["seed"], 2);
  EXPECT_EQ(accepted["origins"]["seed"], "argument");
  EXPECT_FALSE(accepted.contains("proposed"));
  EXPECT_EQ(read_file(run.config_path()), "seed: 2\n");
}

TEST(RunFolder, MetricsMerge) {
  const TestFolder folder;
  const RunFolder run = RunFolder::create(folder.path(), "a");
  run.write_metrics({{"train_loss", 1.5}, {"eval_loss", 2}});
  run.write_metrics({{"eval_loss", 1}});
  EXPECT_EQ(json::parse(read_file(run.metrics_path())),
            json({{"train_loss", 1.5}, {"eval_loss", 1}}));
}

}  // namespace
}  // namespace convoy::telemetry
