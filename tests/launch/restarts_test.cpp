// SPDX-License-Identifier: Apache-2.0
//
// Tests restarts with the real program: the failures that lead to another attempt, the environment
// of an attempt, and the limit of attempts.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

class RestartsOfAJob : public LaunchTest {
 protected:
  // Runs the steps of each attempt and exits with `code`. Every attempt appends a line to
  // `attempts`.
  LaunchStart steps(const std::string& of_attempts, int code, int max_restarts) {
    LaunchStart what;
    what.arguments = {"--max-restarts", std::to_string(max_restarts), "sh", "-c",
                      fmt::format("echo $TORCHELASTIC_RESTART_COUNT >> $HERE/attempts; exec "
                                  "{}/launch_progress_probe {} {}",
                                  std::getenv("CONVOY_BIN_DIR"), of_attempts, code)};
    return what;
  }
};

TEST_F(RestartsOfAJob, Row9_CrashLoopAtOneStepEndsWithSixteen) {
  const LaunchEnd end = run(steps("5", 7, 100));
  EXPECT_EQ(end.status, 16) << end.errors;
  EXPECT_NE(end.errors.find("without progress, at step 5"), std::string::npos) << end.errors;
  const auto line = nlohmann::json::parse(end.last_line(), nullptr, false);
  ASSERT_TRUE(line.is_object()) << end.errors;
  EXPECT_EQ(line["code"], 16);
  EXPECT_EQ(line["kind"], "no_progress");
  EXPECT_NE(end.errors.find("no attempt makes progress, the last one ended so: rank 0 ended with "
                            "exit code 7\n"),
            std::string::npos)
      << end.errors;
  EXPECT_LE(numbers("attempts").size(), 4U);
}

TEST_F(RestartsOfAJob, AttemptsThatGetFurtherMayGoOn) {
  const LaunchEnd end = run(steps("1,2,3,4,5,6,7,8", 7, 7));
  EXPECT_EQ(end.status, 7) << end.errors;
  EXPECT_EQ(numbers("attempts").size(), 8U);
}

TEST_F(RestartsOfAJob, ForeignProgramsWithoutStepsAreStoppedByTheCountAlone) {
  const LaunchEnd end = run(shell(1, "echo x >> $HERE/attempts; exit 7", {"--max-restarts", "5"}));
  EXPECT_EQ(end.status, 7);
  EXPECT_EQ(file("attempts"), "x\nx\nx\nx\nx\nx\n");
}

TEST_F(RestartsOfAJob, KilledRankIsReplacedAndTheJobSucceeds) {
  const LaunchEnd end = run(shell(2,
                                  "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && { [ $RANK = 1 ] && kill "
                                  "-KILL $$; sleep 60; }; echo $RANK >> $HERE/done",
                                  {"--max-restarts", "1"}));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(wait_for_lines("done", 2));
  EXPECT_LT(end.seconds, kHeldUpSeconds);
  EXPECT_TRUE(nothing_left());
}

TEST_F(RestartsOfAJob, AnAttemptStartsOnlyWhenTheLastOneIsGone) {
  // A restart ends daemons of the first attempt too, because they may hold a port or a device.
  const LaunchEnd end = run(shell(1,
                                  "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then setsid sleep 61 & "
                                  "echo $! > $HERE/daemon; exit 3; fi; kill -0 $(cat $HERE/daemon) "
                                  "2>/dev/null && echo lives > $HERE/lives; exit 0",
                                  {"--max-restarts", "1"}));
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(file("lives"), "");
}

TEST_F(RestartsOfAJob, EveryAttemptHasItsOwnLogs) {
  const LaunchEnd end = run(shell(2, "echo attempt $TORCHELASTIC_RESTART_COUNT; exit 3",
                                  {"--max-restarts", "2", "--log-dir", path("logs"), "-r", "3"}));
  EXPECT_EQ(end.status, 3);
  const auto run_folder = *std::filesystem::directory_iterator(path("logs"));
  for (const std::string attempt : {"0", "1", "2"}) {
    const auto log = std::filesystem::relative(
        run_folder.path() / ("attempt_" + attempt) / "1/stdout.log", path("."));
    EXPECT_TRUE(file(log) == "attempt " + attempt + "\n" || file(log).empty()) << file(log);
    EXPECT_TRUE(std::filesystem::exists(path(log)));
  }
}

TEST_F(RestartsOfAJob, AStopIsNotFollowedByAnotherAttempt) {
  const auto launch =
      start(shell(2, "echo $RANK >> $HERE/attempts; exec sleep 60", {"--max-restarts", "5"}));
  ASSERT_TRUE(wait_for_lines("attempts", 2));
  launch->signal(SIGTERM);
  EXPECT_EQ(launch->wait().status, 128 + SIGTERM);
  EXPECT_EQ(numbers("attempts").size(), 2U);
}

}  // namespace
}  // namespace convoy::testing
