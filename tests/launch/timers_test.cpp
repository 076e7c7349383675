// SPDX-License-Identifier: Apache-2.0
//
// Tests torchrun's file-based watchdog: ranks set countdown timers through a named pipe, with the
// messages of torch.distributed.elastic.timer.FileTimerClient.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

// Shell functions of a client: request PID SCOPE SECONDS SIGNAL, and release PID SCOPE.
const std::string kClient =
    "request() { printf '{\"version\": 1, \"pid\": %d, \"scope_id\": \"%s\", \"expiration_time\": "
    "%s, "
    "\"signal\": %d}\\n' \"$@\" > $TORCHELASTIC_TIMER_FILE; }; "
    "set_timer() { request $1 $2 $(date +%s.%N | awk -v more=$3 '{ printf \"%.3f\", $1 + more }') "
    "$4; }; "
    "release() { request $1 $2 -1 0; }; ";

class Timers : public LaunchTest {
 protected:
  static LaunchStart with_timers(int ranks, const std::string& script,
                                 std::vector<std::string> flags = {}) {
    LaunchStart what = shell(ranks, kClient + script, std::move(flags));
    what.environment["TORCHELASTIC_ENABLE_FILE_TIMER"] = "1";
    return what;
  }
};

TEST_F(Timers, RankThatDoesNotFinishInTimeIsKilledAndNamed) {
  const LaunchEnd end =
      run(with_timers(2, "[ $RANK = 1 ] && set_timer $$ all_reduce 0.3 9; sleep 60"));
  EXPECT_EQ(end.status, 128 + SIGKILL) << end.errors;
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  const auto line = nlohmann::json::parse(end.last_line(), nullptr, false);
  ASSERT_TRUE(line.is_object()) << end.errors;
  EXPECT_EQ(line["rank"], 1);
  EXPECT_EQ(line["kind"], "timer");
  const std::string message = line["message"];
  EXPECT_TRUE(message.starts_with("rank 1 (process ")) << message;
  EXPECT_NE(message.find("did not finish `all_reduce` in time"), std::string::npos) << message;
  EXPECT_NE(message.find("SIGKILL"), std::string::npos) << message;
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(Timers, RankThatFinishesInTimeIsLeftAlone) {
  const LaunchEnd end = run(with_timers(
      2, "set_timer $$ step 0.4 9; release $$ step; set_timer $$ report 0.2 0; sleep 0.8"));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(end.errors.find("`step`"), std::string::npos) << end.errors;
  EXPECT_NE(end.errors.find("did not finish `report` in time"), std::string::npos) << end.errors;
}

TEST_F(Timers, ProcessOfARankCountsAsTheRank) {
  const LaunchEnd end = run(with_timers(
      2, "[ $RANK = 0 ] && { sleep 61 & set_timer $! loader 0.2 15; }; sleep 60; exit 0"));
  EXPECT_EQ(end.status, 128 + SIGTERM) << end.errors;
  EXPECT_NE(end.last_line().find("of rank 0 did not finish `loader` in time"), std::string::npos)
      << end.errors;
}

TEST_F(Timers, RankThatOutlivesItsSignalEndsAllTheSame) {
  const LaunchEnd end = run(with_timers(
      2, "trap '' TERM; [ $RANK = 1 ] && set_timer $$ step 0.2 15; sleep 60; sleep 60"));
  EXPECT_EQ(end.status, 128 + SIGTERM) << end.errors;
  EXPECT_LT(end.seconds, kHeldUpSeconds);
}

TEST_F(Timers, StrangersAndNoiseHarmNobody) {
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    ::pause();
    ::_exit(0);
  }
  const LaunchEnd end = run(with_timers(
      1, fmt::format("echo noise > $TORCHELASTIC_TIMER_FILE; set_timer {} theirs 0.1 9; sleep 0.5",
                     stranger)));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("is no timer and is ignored: noise"), std::string::npos) << end.errors;
  EXPECT_TRUE(is_alive(stranger));
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}

TEST_F(Timers, ExpiryIsAFailureThatMayBeTriedAgain) {
  const LaunchEnd end = run(with_timers(
      2,
      "[ $TORCHELASTIC_RESTART_COUNT$RANK = 01 ] && { set_timer $$ step 0.1 9; sleep 60; }; exit 0",
      {"--max-restarts", "1", "--early-exit-timeout", "30"}));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("did not finish `step` in time"), std::string::npos) << end.errors;
}

TEST_F(Timers, PipeIsWhereTheUserWantsItAndGoesWithTheJob) {
  LaunchStart what = with_timers(
      1,
      "echo $TORCHELASTIC_TIMER_FILE > $HERE/name; [ -p $HERE/here ] && echo pipe >> $HERE/name");
  what.environment["TORCHELASTIC_TIMER_FILE"] = path("here");
  EXPECT_EQ(run(what).status, 0);
  EXPECT_EQ(file("name"), path("here").string() + "\npipe\n");
  EXPECT_FALSE(std::filesystem::exists(path("here")));

  write("here", "a file of the user");
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 2) << end.errors;
  EXPECT_NE(end.errors.find("TORCHELASTIC_TIMER_FILE"), std::string::npos) << end.errors;
  EXPECT_EQ(file("here"), "a file of the user");
}

TEST_F(Timers, AreOffUnlessAskedFor) {
  LaunchStart what = with_timers(1, "echo \"[$TORCHELASTIC_TIMER_FILE]\" > $HERE/name");
  what.environment["TORCHELASTIC_ENABLE_FILE_TIMER"] = "0";
  EXPECT_EQ(run(what).status, 0);
  EXPECT_EQ(file("name"), "[]\n");
}

}  // namespace
}  // namespace convoy::testing
