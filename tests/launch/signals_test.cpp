// SPDX-License-Identifier: Apache-2.0
//
// Stops a job by signals to the launcher at any time, with and without time to save.
// terminal_test.cpp tests Ctrl-C.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

using Signals = LaunchTest;

std::string noting(const std::string& names) {
  std::string script;
  for (const std::string& name : {std::string("TERM"), std::string("INT"), std::string("HUP"),
                                  std::string("QUIT"), std::string("USR1"), std::string("USR2")})
    if (names.find(name) != std::string::npos)
      script += fmt::format("trap 'echo {0} >> $HERE/got.$RANK' {0}; ", name);
  return script;
}

TEST_F(Signals, L06_BeforeAnyRankIsThere) {
  // The signal is sent at every moment of the start, from the first instruction on: the start takes
  // about 20 ms.
  for (int wait_ms = 0; wait_ms < 40; wait_ms += 2) {
    for (const int number : {SIGTERM, SIGINT}) {
      // A shell is not suitable, because after a signal during its child's start it waits for the
      // child.
      LaunchStart what;
      what.arguments = {"--nproc-per-node", "2", "sleep", "60"};
      const auto launch = start(what);
      std::this_thread::sleep_for(milliseconds(wait_ms));
      launch->signal(number);
      const LaunchEnd end = launch->wait(milliseconds(20'000));
      EXPECT_EQ(end.status, 128 + number) << wait_ms << " ms\n" << end.errors;
      ASSERT_FALSE(end.timed_out) << wait_ms << " ms";
      EXPECT_LT(end.seconds, kHeldUpSeconds);
      EXPECT_TRUE(nothing_left()) << wait_ms << " ms";
    }
  }
}

TEST_F(Signals, L06_WhileTheNodesMeet) {
  const std::string port = std::to_string(20'000 + ::getpid() % 10'000);
  for (const int number : {SIGTERM, SIGINT}) {
    for (const char* node : {"0", "1"}) {
      const auto launch = start(shell(2, "echo started > $HERE/started",
                                      {"--nnodes", "2", "--node-rank", node, "--rdzv-endpoint",
                                       "127.0.0.1:" + port, "--rdzv-id", "l06"}));
      std::this_thread::sleep_for(milliseconds(150));
      launch->signal(number);
      const LaunchEnd end = launch->wait(milliseconds(20'000));
      EXPECT_EQ(end.status, 128 + number) << end.errors;
      ASSERT_FALSE(end.timed_out);
      EXPECT_LT(end.seconds, kHeldUpSeconds);
      EXPECT_EQ(file("started"), "");
      EXPECT_TRUE(nothing_left());
    }
  }
}

TEST_F(Signals, L06_AfterTheStart) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    std::filesystem::remove(path("pids"));
    const auto launch = start(shell(2, kReady + "exec sleep 60"));
    ASSERT_TRUE(wait_for_lines("pids", 2));
    launch->signal(number);
    const LaunchEnd end = launch->wait();
    EXPECT_EQ(end.status, 128 + number) << end.errors;
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(Signals, L06_WhileRanksEndByThemselves) {
  // The signal comes at about the end of the job. The code is then that of a finished or of a
  // stopped job, and nothing remains.
  for (int wait_ms = 0; wait_ms < 24; wait_ms += 2) {
    const auto launch = start(shell(2, kReady + "sleep 0.05"));
    std::this_thread::sleep_for(milliseconds(60 + wait_ms));
    launch->signal(SIGTERM);
    const LaunchEnd end = launch->wait();
    EXPECT_TRUE(end.status == 0 || end.status == 128 + SIGTERM) << end.status << end.errors;
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(Signals, L06_BetweenTwoAttempts) {
  const auto launch = start(shell(1, kReady + "exit 3", {"--max-restarts", "100000"}));
  ASSERT_TRUE(wait_for_lines("pids", 4));
  launch->signal(SIGTERM);
  const LaunchEnd end = launch->wait(milliseconds(20'000));
  EXPECT_FALSE(end.timed_out);
  EXPECT_NE(end.status, 0);
  EXPECT_TRUE(nothing_left());
}

TEST_F(Signals, L06_RanksGetTheSignalThatCame) {
  const auto launch =
      start(shell(2, "trap 'echo INT >> $HERE/got.$RANK; exit 0' INT; " + kReady + kWait));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  launch->signal(SIGINT);
  const LaunchEnd end = launch->wait();
  EXPECT_EQ(end.status, 0) << end.errors;  // all ranks end with success
  EXPECT_EQ(file("got.0") + file("got.1"), "INT\nINT\n");
}

TEST_F(Signals, L07_UserSignalsArePassedOnAndTheJobGoesOn) {
  const auto launch =
      start(shell(2, noting("USR1 USR2") + "trap 'exit 0' TERM; " + kReady + kWait));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  for (const int number : {SIGUSR1, SIGUSR2}) {
    launch->signal(number);
    const std::string name = number == SIGUSR1 ? "USR1" : "USR2";
    for (const std::string rank : {"0", "1"})
      EXPECT_TRUE(wait_until([&] { return file("got." + rank).find(name) != std::string::npos; },
                             milliseconds(3'000)))
          << name << " to rank " << rank;
    EXPECT_TRUE(launch->running());
  }
  launch->signal(SIGTERM);
  EXPECT_EQ(launch->wait().status, 0);
}

TEST_F(Signals, L07_UserSignalsReachTheChildrenOfARank) {
  const auto launch =
      start(shell(1,
                  "trap : USR1; sh -c \"trap 'echo child > $HERE/got; exit 0' USR1; echo x >> "
                  "$HERE/ready; while :; do sleep 0.02; done\" & wait; wait"));
  ASSERT_TRUE(wait_for_lines("ready", 1));
  launch->signal(SIGUSR1);
  EXPECT_EQ(launch->wait().status, 0);
  EXPECT_EQ(file("got"), "child\n");
}

TEST_F(Signals, L07_SignalsToHandleMayNameUserSignals) {
  const auto launch = start(shell(2, noting("USR1") + "trap 'exit 0' USR1; " + kReady + kWait,
                                  {"--signals-to-handle", "SIGTERM,SIGUSR1"}));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  launch->signal(SIGUSR1);
  EXPECT_EQ(launch->wait().status, 0);
}

TEST_F(Signals, L07_GraceIsWhatShutdownTimeoutSays) {
  for (const char* form : {"flag", "variable"}) {
    std::filesystem::remove(path("pids"));
    LaunchStart what = shell(2, "trap '' TERM; " + kReady + kWait);
    if (std::string(form) == "flag")
      what.arguments.insert(what.arguments.begin(), {"--shutdown-timeout", "0.7"});
    else
      what.environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "0.7";
    const auto launch = start(what);
    ASSERT_TRUE(wait_for_lines("pids", 2));
    const auto begin = std::chrono::steady_clock::now();
    launch->signal(SIGTERM);
    const LaunchEnd end = launch->wait();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_EQ(end.status, 128 + SIGTERM) << end.errors;
    EXPECT_GT(seconds, 0.65) << form;
    EXPECT_LT(seconds, kHeldUpSeconds) << form;
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(Signals, L07_RanksThatAreKilledAreNamedWithWhatMayBeIncomplete) {
  for (const bool twice : {false, true}) {
    std::filesystem::remove(path("pids"));
    const auto launch =
        start(shell(3, "[ $RANK = 1 ] && trap 'exit 75' TERM || trap '' TERM; " + kReady + kWait,
                    {"--shutdown-timeout", twice ? "60" : "0.7"}));
    ASSERT_TRUE(wait_for_lines("pids", 3));
    launch->signal(SIGTERM);
    if (twice) {
      // The log of a batch job has the same line as a terminal.
      ASSERT_TRUE(wait_until(
          [&] { return launch->errors().find("SIGTERM: ranks have 60 s") != std::string::npos; },
          milliseconds(20'000)));
      launch->signal(SIGTERM);
    }
    const LaunchEnd end = launch->wait();
    EXPECT_EQ(end.status, 128 + SIGTERM) << end.errors;
    for (const std::string words :
         {twice ? "before the second request to stop" : "ranks have 0.7 s to end",
          twice ? "SIGTERM" : "ranks 0 and 2 did not end within 0.7 s (--shutdown-timeout)",
          "may be incomplete"})
      EXPECT_NE(end.errors.find(words), std::string::npos) << words << "\n" << end.errors;
  }
}

TEST_F(Signals, L07_StoppedRankHearsOfTheStop) {
  // Before SIGCONT, a rank that SIGSTOP has stopped receives only SIGKILL.
  const std::string script =
      "trap 'echo saved >> $HERE/saved; exit 75' TERM; " + kReady +
      "[ $RANK = 1 ] && while [ ! -e $HERE/fail ]; do sleep 0.02; done && exit 9; " + kWait;
  for (const bool failing : {false, true}) {
    for (const char* name : {"pids", "saved", "fail"}) std::filesystem::remove(path(name));
    const auto launch = start(shell(2, "[ $RANK = 0 ] && echo $$ > $HERE/first; " + script,
                                    {"--shutdown-timeout", "300", "--failure-grace", "300"}));
    ASSERT_TRUE(wait_for_lines("pids", 2));
    ASSERT_EQ(::kill(numbers("first")[0], SIGSTOP), 0);
    if (failing)
      write("fail", "now\n");
    else
      launch->signal(SIGTERM);
    const LaunchEnd end = launch->wait(milliseconds(25'000));
    EXPECT_FALSE(end.timed_out) << end.errors;
    EXPECT_EQ(end.status, failing ? 9 : 75) << end.errors;
    EXPECT_EQ(file("saved").substr(0, 6), "saved\n");
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(Signals, L07_RankThatOutlivesTheFailureGraceIsSaidToHaveBeenKilledByConvoy) {
  const LaunchEnd end = run(shell(2,
                                  "trap '' TERM; " + kReady +
                                      "while [ $(wc -l < $HERE/pids) -lt 2 ]; do sleep 0.02; done; "
                                      "[ $RANK = 1 ] && exit 5; " +
                                      kWait,
                                  {"--failure-grace", "0.4"}));
  EXPECT_EQ(end.status, 5);
  EXPECT_NE(
      end.errors.find("rank 0 did not end within 0.4 s (--failure-grace); convoy killed it\n"),
      std::string::npos)
      << end.errors;
  EXPECT_EQ(end.errors.find("signal 9"), std::string::npos) << end.errors;
}

TEST_F(Signals, L07_RanksThatSaveInTimeAreNotKilled) {
  const auto launch =
      start(shell(2, "trap 'sleep 0.5; echo saved >> $HERE/saved; exit 75' TERM; " + kReady + kWait,
                  {"--shutdown-timeout", "20"}));
  ASSERT_TRUE(wait_for_lines("pids", 2));
  launch->signal(SIGTERM);
  EXPECT_EQ(launch->wait().status, 75);
  EXPECT_EQ(file("saved"), "saved\nsaved\n");
}

TEST_F(Signals, L07_RankThatLeavesWithAnErrorDoesNotCutTheOthersSave) {
  // The rank ends by sys.exit(1) after a KeyboardInterrupt, or with the code of a shell for the
  // signal.
  struct Case {
    int signal, code, expected;
  };
  for (const Case& one : {Case{SIGTERM, 128 + SIGTERM, 128 + SIGTERM}, Case{SIGTERM, 1, 1},
                          Case{SIGINT, 1, 1}, Case{SIGINT, 128 + SIGINT, 128 + SIGINT}}) {
    for (const char* name : {"pids", "asked", "saved"}) std::filesystem::remove(path(name));
    const auto launch =
        start(shell(2,
                    fmt::format("[ $RANK = 1 ] && trap 'exit {}' TERM INT; [ $RANK = 0 ] && trap "
                                "'echo x >> $HERE/asked; "
                                "trap \"echo twice >> $HERE/asked\" TERM INT; sleep 1.5; echo "
                                "saved >> $HERE/saved; exit 0' TERM INT; ",
                                one.code) +
                        kReady + kWait,
                    {"--shutdown-timeout", "20"}));
    ASSERT_TRUE(wait_for_lines("pids", 2));
    launch->signal(one.signal);
    const LaunchEnd end = launch->wait();
    EXPECT_EQ(end.status, one.expected) << end.errors;
    EXPECT_EQ(file("saved"), "saved\n") << one.code;
    EXPECT_EQ(file("asked"), "x\n");
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(Signals, L07_OthersHaveTheFailureGraceToSave) {
  for (const auto& [grace, saved] : {std::pair("0.3", ""), std::pair("10", "saved\n")}) {
    std::filesystem::remove(path("ready"));
    const LaunchEnd end = run(
        shell(2,
              "if [ $RANK = 1 ]; then while [ ! -e $HERE/ready ]; do sleep 0.02; done; exit 5; fi; "
              "trap 'sleep 1; echo saved >> $HERE/saved; exit 0' TERM; echo x > $HERE/ready; " +
                  kWait,
              {"--failure-grace", grace}));
    EXPECT_EQ(end.status, 5) << end.errors;
    EXPECT_EQ(file("saved"), saved);
  }
}

TEST_F(Signals, L07_SecondStopEndsAtOnce) {
  for (const int second : {SIGTERM, SIGINT}) {
    std::filesystem::remove(path("pids"));
    const auto launch = start(shell(2, "trap '' TERM INT; setsid sleep 61 & " + kReady + kWait));
    ASSERT_TRUE(wait_for_lines("pids", 2));
    launch->signal(SIGINT);
    std::this_thread::sleep_for(milliseconds(200));
    EXPECT_TRUE(launch->running());
    const auto begin = std::chrono::steady_clock::now();
    launch->signal(second);
    const LaunchEnd end = launch->wait();
    EXPECT_EQ(end.status, 128 + second);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10'000));
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(Signals, FirstRankReadsFromAPipe) {
  LaunchStart what = shell(3, "cat > $HERE/got.$RANK");
  what.before = {"sh", "-c", "printf '1\\n2\\n' | \"$@\"", "sh"};
  EXPECT_EQ(start(what)->wait().status, 0);
  EXPECT_EQ(file("got.0"), "1\n2\n");
  EXPECT_EQ(file("got.1") + file("got.2"), "");
}

TEST_F(Signals, ReachTheRanksWithinAMoment) {
  const auto launch = start(shell(8, "trap 'exit 0' TERM; " + kReady + "sleep 60 & wait"));
  ASSERT_TRUE(wait_for_lines("pids", 8));
  const auto begin = std::chrono::steady_clock::now();
  launch->signal(SIGTERM);
  launch->wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10'000));
}

}  // namespace
}  // namespace convoy::testing
