// SPDX-License-Identifier: Apache-2.0
//
// Tests what runs of days need: the cost of a plan, the log, the command at the end, and a table
// that follows the run.
#include <signal.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "convoy/core/base/files.h"
#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

class SweepLongRun : public SweepTest {};

::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no `" << part << "` in:\n" << text;
}

TEST_F(SweepLongRun, ADryRunEndsWithTotalsAndTheTimeAndWritesNothing) {
  const std::vector<std::string> sweep = {
      "ssm",  "--num-seeds", "2",  "--student-dims", "20", "30", "--gnc-num-samples", "100000",
      "--gd", "--gd-epochs", "100"};
  std::vector<std::string> dry = sweep;
  dry.push_back("--dry-run");
  const SweepEnd before = run(dry);
  EXPECT_EQ(before.status, 0) << before.errors;
  EXPECT_TRUE(contains(before.errors, "8 cells of ssm-"));
  EXPECT_TRUE(contains(before.errors, ": 400k guesses in 4 cells, 400 steps in 4 descents"));
  EXPECT_TRUE(contains(before.errors, "about "));
  EXPECT_TRUE(contains(before.errors, " steps/s, measured just now"));
  EXPECT_FALSE(std::filesystem::exists(path("results")));
  ASSERT_EQ(run(sweep).status, 0);
  dry[4] = "40";  // replaces the dimension 20
  const SweepEnd after = run(dry);
  EXPECT_TRUE(contains(after.errors,
                       "4 stored in results/sweep.db, 4 left to compute: 200k guesses in 2 cells, "
                       "200 steps in 2 descents"))
      << after.errors;
  dry[4] = "20";
  const SweepEnd all = run(dry);
  EXPECT_TRUE(contains(all.errors, "8 stored in results/sweep.db, none left to compute\n"))
      << all.errors;
}

TEST_F(SweepLongRun, ADryRunOfACommandGoesByItsFinishedCells) {
  const auto sweep = [](const std::string& seeds, bool dry) {
    std::vector<std::string> words = {"run", "--num-seeds", seeds, "--workers", "2"};
    if (dry) words.emplace_back("--dry-run");
    words.insert(words.end(), {"--", "sleep", "0.{seed}"});
    return words;
  };
  EXPECT_TRUE(contains(run(sweep("2", true)).errors, "the time is not known"));
  ASSERT_EQ(run(sweep("2", false)).status, 0);
  const SweepEnd end = run(sweep("6", true));
  EXPECT_TRUE(contains(end.errors, "2 stored in results/sweep.db, 4 left to compute\n"));
  EXPECT_TRUE(contains(end.errors, " s a cell, the mean of finished cells of this command"));
}

TEST_F(SweepLongRun, TheLogHasTimeLevelWorkerAndWhatKilledIt) {
  write("program.sh",
        "echo from $1 >&2\n[ $1 = 1 ] && [ ! -e dead ] && touch dead && kill -9 $PPID\n"
        "[ $1 != 2 ] && echo '{\"loss\": 1}'\n");
  const SweepEnd end =
      run({"run", "--num-seeds", "3", "--workers", "1", "--max-attempts", "1", "--result", "loss",
           "--log-dir", "logs", "--", "sh", "program.sh", "{seed}"});
  EXPECT_EQ(end.status, 15) << end.errors;
  const std::string log = read_file(path("logs") / "sweep.log");
  const std::string begin = "(^|\n)\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3} ";
  for (const char* line :
       {"INFO    runner    run-\\w+: 3 cells; 1 worker on CPUs \\(",
        "INFO    worker 0  stderr: from 0",
        "WARNING worker 0  ended by SIGKILL; its unfinished work is computed again",
        "ERROR   worker 0  \\{.*\\}: attempt 1 failed: exit: the program ended with 1",
        "INFO    runner    100 %: cells 3/3",
        "INFO    runner    ended: 2 of 3 cells done, 1 failed"})
    EXPECT_TRUE(std::regex_search(log, std::regex(begin + line))) << line << "\n" << log;
  EXPECT_EQ(log.find("DEBUG"), std::string::npos) << log;
}

TEST_F(SweepLongRun, LogLevelsAreForTheLogAndTheTerminal) {
  const std::vector<std::string> sweep = {"ssm", "--num_seeds",       "1",   "--student_dims",
                                          "20",  "--gnc_num_samples", "2000"};
  const auto with = [&](const std::string& level, const std::string& folder) {
    std::vector<std::string> words = sweep;
    words.insert(words.end(), {"--log_level", level, "--log_dir", folder, "--results-dir", folder});
    return run(words);
  };
  const SweepEnd debug = with("DEBUG", "a");
  EXPECT_EQ(debug.status, 0) << debug.errors;
  EXPECT_TRUE(contains(debug.errors, "[worker 0] process "));
  EXPECT_TRUE(contains(read_file(path("a") / "sweep.log"), "DEBUG   worker 0  process "));
  const SweepEnd warning = with("warning", "b");
  EXPECT_EQ(warning.errors, "");
  EXPECT_EQ(read_file(path("b") / "sweep.log"), "");
  EXPECT_TRUE(contains(with("loud", "c").errors, "wanted debug, info, warning or error"));
}

TEST_F(SweepLongRun, ACommandRunsAtTheEndHoweverItEnds) {
  const std::string on_end = "echo \"$CONVOY_SWEEP_CODE $CONVOY_SWEEP_END\" >>end.txt";
  const std::vector<std::string> sweep = {"run",  "--num-seeds", "2",    "--max-attempts",
                                          "1",    "--on-end",    on_end, "--",
                                          "test", "{seed}",      "-lt",  "2"};
  ASSERT_EQ(run(sweep).status, 0);
  EXPECT_EQ(read_file(path("end.txt")), "0 2 cells: 2 values\n");
  ASSERT_EQ(run(sweep).status, 0);  // computes nothing
  EXPECT_EQ(read_file(path("end.txt")), "0 2 cells: 2 values\n");
  std::vector<std::string> more = sweep;
  more[2] = "3";
  EXPECT_EQ(run(more).status, 15);
  EXPECT_TRUE(contains(read_file(path("end.txt")), "\n15 3 cells: 2 values, 1 failed"));
  const auto stopped = start({"run", "--name", "long", "--on-end", on_end, "--", "sleep", "100"});
  ASSERT_TRUE(wait_until([&] { return !processes("sleep 100").empty(); }));
  ::kill(stopped->pid(), SIGTERM);
  EXPECT_EQ(stopped->wait().status, 75);
  EXPECT_TRUE(contains(read_file(path("end.txt")), "\n75 stopped by SIGTERM: 1 cell: 0 values"));
  const SweepEnd said = run({"run", "--name", "said", "--on-end", "echo HELLO", "--", "test", "1"});
  EXPECT_TRUE(contains(said.errors, "HELLO"));
  EXPECT_EQ(said.output.find("HELLO"), std::string::npos);
  const SweepEnd bad = run({"run", "--name", "bad", "--on-end", "exit 3", "--", "true"});
  EXPECT_EQ(bad.status, 0);
  EXPECT_TRUE(contains(bad.errors, "warning: --on-end: the command ended with 3"));
}

TEST_F(SweepLongRun, ShowFollowsUntilEveryCellIsDone) {
  const auto runner =
      start({"run", "--num-seeds", "4", "--workers", "2", "--", "sleep", "1.{seed}"});
  ASSERT_TRUE(wait_until([&] { return !processes("sleep 1.").empty(); }));
  const SweepEnd end = run({"show", "--follow"});
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(contains(end.output, "unfinished\n"));
  EXPECT_TRUE(contains(end.output, "4 cells: 4 values\n"));
  EXPECT_EQ(runner->wait().status, 0);
  EXPECT_EQ(run({"show", "--follow", "--json"}).status, 2);
}

}  // namespace
}  // namespace convoy::testing
