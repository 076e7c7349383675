// SPDX-License-Identifier: Apache-2.0
//
// Tests how ranks and their launcher are stopped: by signals, after the time to save, and by
// killing the launcher.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/launch/supervisor/launcher_fixture_test.h"
#include "convoy/machine/processes/signals.h"
#include "load/slowdown.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;

TEST_F(Launcher, StopIsForwardedAndRanksMaySave) {
  for (const int signal : {SIGTERM, SIGINT}) {
    fs::remove(folder_ / "ready");
    std::thread sender = signals_after("ready", 2, {signal});
    const LaunchReport report =
        run(2,
            "trap 'sleep 0.$((RANK * 4)); echo saved > $HERE/saved.$RANK; exit 75' TERM; "
            "echo x >> $HERE/ready; while :; do sleep 0.05; done");
    sender.join();
    EXPECT_EQ(report.exit_code, 75);
    EXPECT_EQ(report.stop_signal, signal);
    EXPECT_EQ(report.root_cause, -1);
    EXPECT_EQ(file("saved.1"), "saved\n");
  }
}

TEST_F(Launcher, StopOfAProgramThatDoesNotSaveIsTheSignal) {
  std::thread sender = signals_after("ready", 2, {SIGTERM});
  EXPECT_EQ(run(2, "echo x >> $HERE/ready; exec sleep 60").exit_code, 128 + SIGTERM);
  sender.join();
}

TEST_F(Launcher, AConsoleThatTakesNothingDoesNotDelayAStop) {
  Pipe stuck = make_pipe();
  std::thread sender = signals_after("ready", 2, {SIGTERM});
  // The ranks write more output than the pipe holds before they save. The full pipe must not keep
  // them from saving.
  LaunchSpec two = spec(2,
                        "trap 'head -c 3000000 /dev/zero | tr \"\\0\" x; echo saved > "
                        "$HERE/saved.$RANK; exit 75' TERM; echo x >> $HERE/ready; "
                        "while :; do head -c 1000000 /dev/zero | tr '\\0' y; sleep 0.05; done");
  two.logs.console = Console::Prefixed;
  two.logs.console_output = two.logs.console_errors = stuck.write_end.get();
  const auto begin = std::chrono::steady_clock::now();
  const LaunchReport report = run_ranks(two);
  sender.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::within(8));
  EXPECT_EQ(report.exit_code, 75);
  for (const char* const name : {"saved.0", "saved.1"}) EXPECT_EQ(file(name), "saved\n");
}

TEST_F(Launcher, SecondStopEndsAtOnce) {
  std::thread sender = signals_after("ready", 2, {SIGTERM, SIGTERM});
  const LaunchReport report =
      run(2, "trap '' TERM; echo $$ >> $HERE/pids; echo x >> $HERE/ready; sleep 60; sleep 60");
  sender.join();
  EXPECT_EQ(report.exit_code, 128 + SIGTERM);
  EXPECT_LT(seconds_, 3 * testing::slowdown());
  EXPECT_TRUE(all_gone("pids", milliseconds(0)));
}

TEST_F(Launcher, GraceOfAStopIsBounded) {
  std::thread sender = signals_after("ready", 1, {SIGTERM});
  LaunchSpec one = spec(1, "trap '' TERM; echo x >> $HERE/ready; sleep 60; sleep 60");
  one.stop_grace = milliseconds(300);
  const LaunchReport report = run_ranks(one);
  sender.join();
  EXPECT_EQ(report.exit_code, 128 + SIGTERM);
}

TEST_F(Launcher, FailureWhileStoppingIsReported) {
  std::thread sender = signals_after("ready", 2, {SIGTERM});
  LaunchSpec slow = spec(2,
                         "trap '[ $RANK = 1 ] && exit 12; sleep 60' TERM; echo x >> $HERE/ready; "
                         "while :; do sleep 0.05; done");
  slow.stop_grace = milliseconds(500);  // for rank 0, which may be saving
  const LaunchReport report = run_ranks(slow);
  sender.join();
  EXPECT_EQ(report.exit_code, 12);
  EXPECT_TRUE(report.killed_by_stop);
}

TEST_F(Launcher, AJobSystemMayRepeatItsRequestToStop) {
  std::thread sender = signals_after("ready", 1, {SIGTERM, SIGTERM});
  LaunchSpec one = spec(1,
                        "trap 'sleep 0.6 & wait $!; exit 75' TERM; echo x >> $HERE/ready; "
                        "while :; do sleep 0.05; done");
  one.stop_repeat = milliseconds(5'000);
  const LaunchReport report = run_ranks(one);
  sender.join();
  EXPECT_EQ(report.exit_code, 75);
  EXPECT_FALSE(report.killed_by_stop);
}

TEST_F(Launcher, UserSignalsAreForwardedAndTheJobGoesOn) {
  std::thread sender = signals_after("ready", 2, {SIGUSR1, SIGUSR2});
  const LaunchReport report =
      run(2,
          "trap 'echo 1 >> $HERE/got.$RANK' USR1; trap 'echo 2 >> $HERE/got.$RANK; exit 0' USR2; "
          "echo x >> $HERE/ready; while :; do sleep 0.05; done");
  sender.join();
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.stop_signal, 0);
  EXPECT_EQ(file("got.0"), "1\n2\n");
  EXPECT_EQ(file("got.1"), "1\n2\n");
}

TEST_F(Launcher, RanksThatLeaveForAUserSignalAreNotHurriedByTheQuickest) {
  std::thread sender = signals_after("ready", 2, {SIGUSR1});
  const LaunchReport report =
      run(2,
          "trap 'sleep $RANK; echo saved > $HERE/saved.$RANK; exit 75' USR1; "
          "echo x >> $HERE/ready; while :; do sleep 0.05; done");
  sender.join();
  EXPECT_EQ(report.exit_code, 75);
  EXPECT_FALSE(report.failed());
  EXPECT_EQ(report.stop_signal, SIGUSR1);
  EXPECT_EQ(file("saved.1"), "saved\n");
}

TEST_F(Launcher, KilledLauncherLeavesNothing) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    run_ranks(spec(2,
                   "trap '' TERM; echo $$ >> $HERE/pids; sleep 60 & echo $! >> $HERE/pids; "
                   "echo $CONVOY_STORE_FILE > $HERE/store; wait; sleep 60"));
    _exit(0);
  }
  wait_for_lines("pids", 4);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  EXPECT_TRUE(all_gone("pids", milliseconds(2000)));
  std::string store = file("store");
  store.pop_back();
  for (int turn = 0; turn < 200 && fs::exists(fs::path(store).parent_path()); ++turn)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(fs::exists(fs::path(store).parent_path()));
}

// A process that left its rank's process group and session, as a daemon does.
constexpr const char* kDaemon =
    "setsid sh -c 'echo $$ >> $HERE/pids; sleep 60 & echo $! >> $HERE/pids; wait' & ";

TEST_F(Launcher, DaemonsOfARankEndWithTheJob) {
  run(1, std::string(kDaemon) +
             "while [ $(wc -l < $HERE/pids || echo 0) -lt 2 ]; do sleep 0.02; done");
  EXPECT_TRUE(all_gone("pids", milliseconds(0)));
  EXPECT_LT(seconds_, 2 * testing::slowdown());
}

TEST_F(Launcher, KilledLauncherLeavesNoDaemon) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    run_ranks(spec(2, std::string(kDaemon) + "wait; sleep 60"));
    _exit(0);
  }
  wait_for_lines("pids", 4);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  EXPECT_TRUE(all_gone("pids", milliseconds(2000)));
}

TEST_F(Launcher, PassesOnTheStopSignalWhereAsked) {
  std::thread sender = signals_after("ready", 1, {SIGINT});
  LaunchSpec one = spec(1,
                        "trap 'echo int > $HERE/got; exit 0' INT; echo x >> $HERE/ready; while :; "
                        "do sleep 0.05; done");
  one.pass_stop_signal = true;
  run_ranks(one);
  sender.join();
  EXPECT_EQ(file("got"), "int\n");
}

TEST(Signals, AreReadByName) {
  EXPECT_EQ(processes::parse_signals("SIGTERM,INT"), (std::vector<int>{SIGTERM, SIGINT}));
  EXPECT_EQ(processes::signal_name(SIGUSR1), "SIGUSR1");
  for (const char* wrong : {"SIGKILL", "SIGNOPE", "15", "TERM,,INT"})
    EXPECT_THROW(processes::parse_signals(wrong), ConfigError) << wrong;
}

TEST_F(Launcher, SignalsWorkAsBeforeAfterwards) {
  run(1, ":");
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGPIPE})
    EXPECT_EQ(sigismember(&mask, signal), 0);
}

}  // namespace
}  // namespace convoy::launch
