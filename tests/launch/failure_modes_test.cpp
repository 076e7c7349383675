// SPDX-License-Identifier: Apache-2.0
//
// Tests the failure modes of a launcher with the real program. The names have the numbers of
// docs/explanation/failure-modes.md.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "launch/launch_process.h"
#include "load/slowdown.h"

namespace convoy::testing {
namespace {

using FailureModes = LaunchTest;
using nlohmann::json;

// A rank writes its number and waits until all ranks have written theirs.
const std::string kAllReady =
    kReady + "while [ $(wc -l < $HERE/pids) -lt $WORLD_SIZE ]; do sleep 0.01; done; ";

// Expects the JSON of the failure as the last line, and the cause in words before it.
void expect_report(const LaunchEnd& end, int code, int rank, const std::string& words) {
  EXPECT_EQ(end.status, code) << end.errors;
  const json line = json::parse(end.last_line(), nullptr, false);
  ASSERT_TRUE(line.is_object()) << end.errors;
  EXPECT_EQ(line["code"], code);
  EXPECT_EQ(line["rank"], rank);
  EXPECT_NE(line["message"].get<std::string>().find(words), std::string::npos) << line;
  const std::string before = end.errors.substr(0, end.errors.rfind(end.last_line()));
  EXPECT_NE(before.find(words), std::string::npos) << end.errors;
}

TEST_F(FailureModes, L01_WorkerExitsNonZero) {
  const LaunchEnd end =
      run(shell(3, kAllReady + "[ $RANK = 1 ] && { echo 'the reason' >&2; exit 7; }; sleep 60"));
  expect_report(end, 7, 1, "rank 1 ended with exit code 7");
  EXPECT_NE(end.errors.find("rank 1 failed first; its last lines:\n  | the reason\n"),
            std::string::npos)
      << end.errors;
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L01_WorkerDiesOfSegmentationFault) {
  const LaunchEnd end = run(shell(2, kAllReady + "[ $RANK = 1 ] && kill -SEGV $$; sleep 60"));
  expect_report(end, 128 + SIGSEGV, 1, "rank 1 was killed by signal 11");
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L01_WorkerIsKilled) {
  const LaunchEnd end = run(shell(2, kAllReady + "[ $RANK = 0 ] && kill -KILL $$; sleep 60"));
  expect_report(end, 128 + SIGKILL, 0, "rank 0 was killed by signal 9");
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L01_RanksThatRunOnAfterOthersAreNamedBeforeTheyAreEnded) {
  const LaunchEnd end =
      run(shell(2, kAllReady + "[ $RANK = 0 ] && exit 0; sleep 1.5; echo x >> $HERE/done",
                {"--early-exit-timeout", "1"}));
  EXPECT_EQ(end.status, 13) << end.errors;
  EXPECT_EQ(file("done"), "");
  EXPECT_NE(
      end.errors.find("rank 0 has ended and others run on (1): in 1 s that counts as a failure"),
      std::string::npos)
      << end.errors;
}

TEST_F(FailureModes, TokenOfTheJobReachesNoProgram) {
  LaunchStart what = shell(2, "echo \"[$CONVOY_JOB_TOKEN$CONVOY_JOB_TOKEN_FILE]\" >> $HERE/said");
  what.environment = {{"CONVOY_JOB_TOKEN", "0123456789abcdef0123"},
                      {"CONVOY_JOB_TOKEN_FILE", path("token")}};
  EXPECT_EQ(run(what).status, 0);
  EXPECT_EQ(file("said"), "[]\n[]\n");
}

TEST_F(FailureModes, PythonOfARankWritesItsLinesAtOnceUnlessTheUserSaysOtherwise) {
  LaunchStart what = shell(1, "echo \"[$PYTHONUNBUFFERED]\" >> $HERE/said");
  what.removed_variables = {"PYTHONUNBUFFERED"};
  EXPECT_EQ(run(what).status, 0);
  what.removed_variables = {};
  for (const char* const value : {"", "yes"}) {
    what.environment["PYTHONUNBUFFERED"] = value;
    EXPECT_EQ(run(what).status, 0);
  }
  EXPECT_EQ(file("said"), "[1]\n[]\n[yes]\n");
}

TEST_F(FailureModes, AllocatorOfPyTorchGrowsItsSegmentsUnlessTheUserSaysOtherwise) {
  LaunchStart what =
      shell(1, "echo \"[$PYTORCH_CUDA_ALLOC_CONF|$PYTORCH_ALLOC_CONF]\" >> $HERE/said");
  what.removed_variables = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                            "PYTORCH_ALLOC_CONF"};
  EXPECT_EQ(run(what).status, 0);
  what.removed_variables = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"};
  what.environment["PYTORCH_ALLOC_CONF"] = "max_split_size_mb:64";
  EXPECT_EQ(run(what).status, 0);
  what.environment["PYTORCH_CUDA_ALLOC_CONF"] = "";
  what.removed_variables = {"PYTORCH_HIP_ALLOC_CONF"};
  EXPECT_EQ(run(what).status, 0);
  EXPECT_EQ(file("said"),
            "[expandable_segments:True|]\n[|max_split_size_mb:64]\n[|max_split_size_mb:64]\n");
}

TEST_F(FailureModes, L05_ErrorOfTheRootCauseIsHandedToTheLauncherAround) {
  LaunchStart what = shell(2,
                           "[ $RANK = 1 ] && sleep 60; echo '{\"message\":{\"message\":\"no such "
                           "data\",\"extraInfo\":{\"timestamp\":\"1\"}}}' "
                           "> $TORCHELASTIC_ERROR_FILE; exit 9");
  what.environment["TORCHELASTIC_ERROR_FILE"] = path("outer.json");
  EXPECT_EQ(run(what).status, 9);
  const auto handed = nlohmann::json::parse(file("outer.json"), nullptr, false);
  ASSERT_TRUE(handed.is_object()) << file("outer.json");
  EXPECT_EQ(handed["message"]["message"], "no such data");
  EXPECT_EQ(handed["message"]["errorCode"], 9);
}

TEST_F(FailureModes, L01_WorkerExitsZeroEarly) {
  const LaunchEnd end = run(
      shell(2, kAllReady + "[ $RANK = 0 ] && exit 0; sleep 60", {"--early-exit-timeout", "0.3"}));
  expect_report(end, 13, 0, "rank 0 ended with exit code 0 while other ranks were still running");
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L01_RankThatIgnoresTermGoesWithinTwoSeconds) {
  const LaunchEnd end = run(shell(2, "trap '' TERM INT HUP; " + kAllReady +
                                         "[ $RANK = 1 ] && exit 9; while :; do sleep 1; done"));
  EXPECT_EQ(end.status, 9);
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L02_KilledLauncherLeavesNoRankAndNoGrandchild) {
  const auto launch =
      start(shell(2, "trap '' TERM INT HUP; sleep 61 & setsid sleep 62 & " + kAllReady +
                         "echo x >> $HERE/ready; while :; do sleep 1; done"));
  ASSERT_TRUE(wait_for_lines("ready", 2));
  EXPECT_GE(survivors().size(), 8U);  // launcher, guard, 2 ranks, 4 grandchildren
  launch->signal(SIGKILL);
  launch->wait();
  EXPECT_TRUE(nothing_left());
  EXPECT_EQ(run(shell(2, "true")).status, 0);  // the next start works at once
}

TEST_F(FailureModes, L02_KilledGuardIsReplacedAndALauncherKilledLaterLeavesNothing) {
  const auto launch = start(shell(2, "trap '' TERM; sleep 61 & setsid sleep 62 & " + kAllReady +
                                         "echo x >> $HERE/ready; while :; do sleep 1; done"));
  ASSERT_TRUE(wait_for_lines("ready", 2));
  const auto guard = [&]() -> pid_t {
    for (const pid_t pid : survivors()) {
      std::ifstream file(fmt::format("/proc/{}/comm", pid));
      std::string name;
      if (std::getline(file, name) && name == "convoy-guard") return pid;
    }
    return -1;
  };
  const pid_t first = guard();
  ASSERT_GT(first, 0);
  ::kill(first, SIGKILL);
  pid_t second = -1;
  ASSERT_TRUE(
      wait_until([&] { return (second = guard()) > 0 && second != first; }, milliseconds(10'000)));
  EXPECT_TRUE(wait_until(
      [&] { return launch->errors().find(fmt::format("process {}", second)) != std::string::npos; },
      milliseconds(10'000)))
      << launch->errors();
  launch->signal(SIGKILL);
  launch->wait();
  EXPECT_TRUE(nothing_left());
}

TEST_F(FailureModes, L02_KilledLauncherOfOneNodeEndsTheOther) {
  const std::string port = std::to_string(20'000 + ::getpid() % 10'000);
  const auto node = [&](int rank) {
    return shell(1, "trap '' TERM; " + kReady + "while :; do sleep 1; done",
                 {"--nnodes", "2", "--node-rank", std::to_string(rank), "--rdzv-endpoint",
                  "127.0.0.1:" + port, "--rdzv-id", "l02"});
  };
  const auto first = start(node(0)), second = start(node(1));
  ASSERT_TRUE(wait_for_lines("pids", 2)) << first->errors() << second->errors();
  second->signal(SIGKILL);
  second->wait();
  const LaunchEnd end = first->wait(milliseconds(12'000));
  EXPECT_EQ(end.status, 13) << end.errors;
  EXPECT_FALSE(end.timed_out);
  EXPECT_TRUE(nothing_left());
}

TEST_F(FailureModes, L03_GrandchildrenOfEveryKindAreReaped) {
  // The ranks start a plain child, a daemon (two forks and its own session), a process under nohup,
  // a process in another process group, and a stopped process.
  const std::string starts =
      "sleep 61 & (setsid sh -c 'sleep 62 & sleep 63') & nohup sleep 64 >/dev/null 2>&1 & "
      "perl -e 'setpgrp(0,0); sleep 65' & sleep 66 & kill -STOP $!; ";
  const LaunchEnd end = run(shell(2, starts + kAllReady + "sleep 0.1; exit 0"));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L03_GrandchildThatKeepsTheOutputOpenDoesNotHoldTheLauncher) {
  const LaunchEnd end = run(shell(1, "setsid sleep 60 & echo said; exit 4"));
  EXPECT_EQ(end.status, 4);
  EXPECT_NE(end.output.find("said"), std::string::npos);
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L04_RankHeldByADebuggerDoesNotHoldTheLauncher) {
  // A traced process that was killed remains until its tracer, here this test, waits for it, which
  // it does not.
  const auto launch = start(shell(2, kReady + "sleep 60", {"--shutdown-timeout", "0.3"}));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  const pid_t held = numbers("pids")[0];
  if (::ptrace(PTRACE_SEIZE, held, nullptr, nullptr) != 0) GTEST_SKIP() << "may not trace";
  launch->signal(SIGTERM);
  const LaunchEnd end = launch->wait(milliseconds(12'000));
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.status, 128 + SIGTERM) << end.errors;
  ::waitpid(held, nullptr, __WALL);
  EXPECT_TRUE(nothing_left());
}

class FailureModesPrivileged : public FailureModes {
 protected:
  void SetUp() override {
    if (!is_root()) GTEST_SKIP() << "needs root";
  }
};

TEST_F(FailureModesPrivileged, L04_UnkillableRankDoesNotHoldTheLauncher) {
  // A process that cgroup v1 has frozen waits inside the kernel, as for a dead disk: not even
  // SIGKILL ends it.
  const std::filesystem::path cgroup =
      fmt::format("/sys/fs/cgroup/freezer/convoy-test-{}", ::getpid());
  std::error_code error;
  if (!std::filesystem::exists("/sys/fs/cgroup/freezer/tasks") ||
      !std::filesystem::create_directory(cgroup, error))
    GTEST_SKIP() << "needs the freezer of cgroup v1";
  const auto launch = start(shell(2, kReady + "sleep 60", {"--shutdown-timeout", "0.3"}));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  const pid_t frozen = numbers("pids")[0];
  std::ofstream(cgroup / "cgroup.procs") << frozen << std::flush;
  std::ofstream(cgroup / "freezer.state") << "FROZEN" << std::flush;
  launch->signal(SIGTERM);
  const LaunchEnd end = launch->wait(milliseconds(15'000));
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.status, 128 + SIGTERM) << end.errors;
  EXPECT_NE(end.errors.find(fmt::format("process {}", frozen)), std::string::npos) << end.errors;
  EXPECT_LT(end.seconds, 10 * testing::slowdown());
  EXPECT_TRUE(is_alive(frozen));
  std::ofstream(cgroup / "freezer.state") << "THAWED" << std::flush;
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(wait_until([&] { return std::filesystem::remove(cgroup, error) || !error; },
                         milliseconds(2'000)));
}

TEST_F(FailureModesPrivileged, L01_WorkerIsKilledForItsMemory) {
  const std::filesystem::path cgroup =
      fmt::format("/sys/fs/cgroup/memory/convoy-test-{}", ::getpid());
  std::error_code error;
  if (!std::filesystem::exists("/sys/fs/cgroup/memory/tasks") ||
      !std::filesystem::create_directory(cgroup, error))
    GTEST_SKIP() << "needs the memory controller of cgroup v1";
  std::ofstream(cgroup / "memory.limit_in_bytes") << (64 << 20) << std::flush;
  // tail keeps all of its input in memory.
  LaunchStart what = shell(2, kAllReady + "[ $RANK = 1 ] && exec tail /dev/zero; sleep 60");
  what.before = {"sh", "-c", "echo $$ > " + (cgroup / "cgroup.procs").string() + "; exec \"$@\"",
                 "sh"};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_NE(end.errors.find("rank 1"), std::string::npos) << end.errors;
  EXPECT_NE(end.errors.find("memory"), std::string::npos) << end.errors;
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(wait_until([&] { return std::filesystem::remove(cgroup, error) || !error; },
                         milliseconds(2'000)));
}

struct ExitCase {
  const char* name;
  const char* script;
  int code;
};

class ExitCodes : public LaunchTest, public ::testing::WithParamInterface<ExitCase> {};

TEST_P(ExitCodes, L05_AreTheFirstRootCauses) {
  const LaunchEnd end = run(shell(2, kAllReady + GetParam().script));
  EXPECT_EQ(end.status, GetParam().code) << end.errors;
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

constexpr ExitCase kExitCases[] = {
    {"AllDone", "exit 0", 0},
    {"One", "exit 1", 1},
    {"Largest", "[ $RANK = 1 ] && exit 255; sleep 60", 255},
    {"FirstOfTwo", "[ $RANK = 1 ] && exit 21; sleep 0.3; exit 22", 21},
    {"LostPeerIsNotTheCause", "[ $RANK = 0 ] && exit 13; sleep 0.1; exit 33", 33},
    {"CauseBeforeItsVictims", "trap 'exit 44' TERM; [ $RANK = 1 ] && exit 43; sleep 60 & wait", 43},
    {"Abort", "[ $RANK = 0 ] && kill -ABRT $$; sleep 60", 128 + SIGABRT},
    {"RealTimeSignal", "[ $RANK = 0 ] && kill -40 $$; sleep 60", 128 + 40},
    {"TermFromOutside", "[ $RANK = 0 ] && kill -TERM $$; sleep 60", 128 + SIGTERM},
    {"ExitLikeASignal", "[ $RANK = 0 ] && exit 137; sleep 60", 137},
};
INSTANTIATE_TEST_SUITE_P(FailureModes, ExitCodes, ::testing::ValuesIn(kExitCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(FailureModes, L14_StoppedForeignRankIsNamedButNotKilled) {
  // A program that is not Convoy has no heartbeat, so its stop is seen in its process state. The
  // user who stopped it may continue it.
  const auto launch = start(shell(2, kReady + "[ $RANK = 1 ] && kill -STOP $$; true"));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  ASSERT_TRUE(wait_until([&] { return launch->errors().find("rank 1") != std::string::npos; },
                         milliseconds(12'000)))
      << launch->errors();
  EXPECT_TRUE(launch->running());
  for (const pid_t pid : numbers("pids")) ::kill(pid, SIGCONT);
  EXPECT_EQ(launch->wait().status, 0) << launch->errors();
}

TEST_F(FailureModes, L15_FloodOfLinesFromTwelveRanksIsWholeInTheFiles) {
  const LaunchEnd end =
      run(shell(12,
                "yes $RANK-abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz | head -n 20000; "
                "printf end",
                {"--log-dir", path("logs"), "--redirects", "3"}));
  EXPECT_EQ(end.status, 0) << end.errors;
  const auto run_folder = *std::filesystem::directory_iterator(path("logs"));
  for (int rank = 0; rank < 12; ++rank) {
    std::ifstream log(run_folder.path() / fmt::format("attempt_0/{}/stdout.log", rank));
    const std::string wanted =
        fmt::format("{}-abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz", rank);
    long lines = 0;
    std::string line;
    while (std::getline(log, line) && line == wanted) ++lines;
    EXPECT_EQ(lines, 20'000) << "rank " << rank;
    EXPECT_EQ(line, "end");
  }
}

TEST_F(FailureModes, L15_LineWithoutEndDoesNotFillTheMemory) {
  const LaunchEnd end = run(shell(2, "head -c 50000000 /dev/zero | tr '\\0' x; echo; exit 0",
                                  {"--log-dir", path("logs"), "--redirects", "1"}));
  EXPECT_EQ(end.status, 0) << end.errors;
  const auto run_folder = *std::filesystem::directory_iterator(path("logs"));
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(std::filesystem::file_size(run_folder.path() /
                                         fmt::format("attempt_0/{}/stdout.log", rank)),
              50'000'001U);
}

TEST_F(FailureModes, L16_LogDiskThatIsFullStopsNothing) {
  LaunchStart what = shell(2, "yes line of $RANK | head -n 200000; echo last of $RANK",
                           {"--log-dir", path("logs"), "--tee", "3"});
  // `ulimit -f` imitates a full disk: no file of this process may grow beyond the limit.
  what.before = {"sh", "-c", "ulimit -f 1000; exec \"$@\"", "sh"};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("stdout.log"), std::string::npos) << end.errors;
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L17_NextAttemptHasAStoreOfItsOwn) {
  const LaunchEnd end =
      run(shell(2,
                "echo $CONVOY_STORE_FILE >> $HERE/stores.$RANK; [ -e $CONVOY_STORE_FILE ] && echo "
                "stale >> $HERE/stale; sleep 0.1; echo key > $CONVOY_STORE_FILE; [ "
                "$TORCHELASTIC_RESTART_COUNT = 2 ] || exit 3",
                {"--max-restarts", "2"}));
  EXPECT_EQ(end.status, 0) << end.errors;
  std::set<std::string> stores;
  std::istringstream lines(file("stores.0"));
  for (std::string line; std::getline(lines, line);) stores.insert(line);
  EXPECT_EQ(stores.size(), 3U);
  EXPECT_EQ(file("stale"), "");
}

}  // namespace
}  // namespace convoy::testing
