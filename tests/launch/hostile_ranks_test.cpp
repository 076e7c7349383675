// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy launch` with ranks that misuse their streams, files, guard or launcher.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;
using HostileUse = LaunchTest;

TEST_F(HostileUse, ThreeHundredRanks) {
  const LaunchEnd end =
      run({"--nproc-per-node", "300", "sh", "-c", "echo $RANK; [ $RANK != 299 ]"});
  EXPECT_EQ(end.status, 1) << end.errors;
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUse, RankThatWritesNoTextAndARankThatClosesItsStreams) {
  const LaunchEnd end = run(shell(
      2,
      "if [ $RANK = 0 ]; then head -c 100000 /dev/urandom; else exec >&- 2>&-; fi; sleep 0.1; "
      "exit $((RANK * 6))"));
  EXPECT_EQ(end.status, 6);
  EXPECT_TRUE(json::parse(end.last_line(), nullptr, false).is_object());
}

TEST_F(HostileUse, ErrorFileThatIsNoErrorFile) {
  for (const char* content :
       {"head -c 3000000 /dev/zero", "echo '[1,2]'", "echo '{\"message\": 3}'",
        "printf '{\"message\": {\"message\": \"a\\\\u0000b\\\\nc\"}}'",
        "yes '[' | head -n 100000 | tr -d '\\n'",
        "{ printf '{\"message\": {\"message\": '; yes '[' | head -n 200000 | tr -d '\\n'; yes ']' "
        "| "
        "head -n 200000 | tr -d '\\n'; printf '}}'; }"}) {
    SCOPED_TRACE(content);
    const LaunchEnd end =
        run(shell(1, std::string(content) + " > $TORCHELASTIC_ERROR_FILE; exit 8"));
    EXPECT_EQ(end.status, 8) << end.errors.substr(0, 2000);
    EXPECT_TRUE(json::parse(end.last_line(), nullptr, false).is_object()) << end.last_line();
    std::filesystem::remove_all(path("tmp/x"));
  }
}

TEST_F(HostileUse, ErrorFileThatIsAPipeOrAFolderDoesNotHoldTheLauncher) {
  for (const char* kind : {"mkfifo $TORCHELASTIC_ERROR_FILE", "mkdir $TORCHELASTIC_ERROR_FILE",
                           "ln -s /dev/zero $TORCHELASTIC_ERROR_FILE",
                           "ln -s $TORCHELASTIC_ERROR_FILE $TORCHELASTIC_ERROR_FILE"}) {
    SCOPED_TRACE(kind);
    const LaunchEnd end =
        start(shell(1, std::string(kind) + "; exit 8"))->wait(milliseconds(5'000));
    EXPECT_FALSE(end.timed_out);
    EXPECT_EQ(end.status, 8);
  }
}

TEST_F(HostileUse, RankThatRemovesThePrivateFolder) {
  const LaunchEnd end = run(shell(2, "rm -rf $(dirname $CONVOY_STORE_FILE); exit 0"));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUse, WhatAJobSystemKilledAtOnceIsTidiedUpByTheNextStart) {
  // All processes get SIGKILL in one moment, the guard too, as at the end of a job's time. The
  // files of two running launches must be left alone.
  const auto alive = start(shell(1, "echo $$ >> $HERE/alive; sleep 60"));
  const auto killed = start(shell(1, "echo $$ >> $HERE/pids; sleep 60"));
  ASSERT_TRUE(wait_for_lines("pids", 1) && wait_for_lines("alive", 1));
  const std::vector<pid_t> kept = numbers("alive");
  std::set<pid_t> spared = {alive->pid(), kept[0]};
  const auto folders = [&] {
    return std::distance(std::filesystem::directory_iterator(path("tmp")), {});
  };
  ASSERT_EQ(folders(), 2);
  for (int turn = 0; turn < 2; ++turn)
    for (const pid_t pid : survivors()) {
      std::ifstream parent_of(fmt::format("/proc/{}/stat", pid));
      std::string number, name, state;
      pid_t parent = 0;
      parent_of >> number >> name >> state >> parent;
      if (spared.contains(pid) || parent == alive->pid() || parent == kept[0]) continue;
      ::kill(pid, SIGKILL);
    }
  killed->wait();
  EXPECT_EQ(folders(), 2);
  EXPECT_EQ(run(shell(1, "true")).status, 0);
  EXPECT_EQ(folders(), 1);
  alive->signal(SIGTERM);
  alive->wait();
  EXPECT_EQ(folders(), 0);
}

TEST_F(HostileUse, RankThatKillsTheGuard) {
  // The rank kills the guard process. The job still ends with the rank's code, and no process
  // remains.
  const LaunchEnd end = run(shell(
      1,
      "for pid in $(cat /proc/$PPID/task/*/children); do [ $pid = $$ ] || kill -9 $pid; done; "
      "setsid sleep 61 & sleep 0.1; exit 7"));
  EXPECT_EQ(end.status, 7) << end.errors;
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUse, RankThatStopsTheLauncherAndLetsItGoOn) {
  const LaunchEnd end =
      run(shell(2, "[ $RANK = 0 ] && { kill -STOP $PPID; sleep 0.3; kill -CONT $PPID; }; exit 0"));
  EXPECT_EQ(end.status, 0) << end.errors;
}

TEST_F(HostileUse, LauncherInsideALauncher) {
  const std::string inner = fmt::format(
      "{}/convoy launch --standalone --nproc-per-node 2 sh -c 'echo inner $RANK/$WORLD_SIZE >> "
      "$HERE/said; exit $((RANK * 4))'",
      std::getenv("CONVOY_BIN_DIR"));
  const LaunchEnd end = run(shell(2, inner));
  EXPECT_EQ(end.status, 4) << end.errors;
  EXPECT_NE(file("said").find("inner 1/2"), std::string::npos);
  EXPECT_TRUE(nothing_left());
}

TEST_F(HostileUse, KilledLauncherInsideALauncherLeavesNothing) {
  const std::string inner = fmt::format(
      "exec {}/convoy launch --standalone --nproc-per-node 2 sh -c 'setsid sleep 61 & echo $$ >> "
      "$HERE/pids; sleep 62'",
      std::getenv("CONVOY_BIN_DIR"));
  const auto launch = start(shell(2, inner));
  ASSERT_TRUE(wait_for_lines("pids", 4));
  launch->signal(SIGKILL);
  launch->wait();
  EXPECT_TRUE(nothing_left());
}

// ---- tests that need root: namespaces, mounts, other users
}  // namespace
}  // namespace convoy::testing
