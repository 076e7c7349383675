// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep run`: programs that print, fail, crash, hang, or return what is no number.
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepRun : public SweepTest {};

// What each value of {case} does.
const char* const kProgram = R"sh(#!/bin/sh
case "$1" in
  good) echo '{"loss": 1.5, "seed": '$2'}' ;;
  crash) kill -SEGV $$ ;;
  exit) echo 'no such file' >&2; exit 3 ;;
  nan) echo '{"loss": NaN}' ;;
  silent) echo done ;;
  hang) sleep 1000 & wait ;;
esac
)sh";

json row_of(const json& rows, const std::string& what) {
  for (const json& row : rows)
    if (row["case"] == what) return row;
  return {};
}

TEST_F(SweepRun, EachFailureIsWhatItIsAndTheRestGoesOn) {
  write("program.sh", kProgram);
  const SweepEnd end =
      run({"run", "--grid", "case=good,crash,exit,nan,silent,hang", "--result", "loss", "--timeout",
           "1", "--max-attempts", "2", "--json", "--", "sh", "program.sh", "{case}", "{seed}"});
  EXPECT_EQ(end.status, 15) << end.errors;
  EXPECT_NE(end.errors.find("6 cells: 1 values, 5 failed"), std::string::npos) << end.errors;
  const json rows = json::parse(end.output);
  EXPECT_EQ(row_of(rows, "good")["value"], 1.5);
  EXPECT_EQ(row_of(rows, "good")["state"], "value");
  const std::vector<std::pair<std::string, std::string>> wanted = {{"crash", "crash"},
                                                                   {"exit", "exit"},
                                                                   {"nan", "non_finite"},
                                                                   {"silent", "output"},
                                                                   {"hang", "timeout"}};
  for (const auto& [what, kind] : wanted) {
    const json row = row_of(rows, what);
    EXPECT_EQ(row["state"], "failed") << what;
    EXPECT_TRUE(row["value"].is_null()) << what;
    EXPECT_EQ(row["failure_kind"], kind) << row.dump();
  }
  EXPECT_EQ(row_of(rows, "crash")["failure_signal"], 11);
  EXPECT_EQ(row_of(rows, "exit")["attempts"], 2);
  const json last = json::parse(end.last_line());
  EXPECT_EQ(last["code"], 15);
  EXPECT_EQ(last["kind"], "failed_cells");
}

TEST_F(SweepRun, AFailedCellIsTriedAgainByTheSameCommand) {
  write("program.sh", "test -e ready || exit 1\necho '{\"loss\": '$1'}'\n");
  const std::vector<std::string> command = {"run", "--grid",   "x=1,2",      "--num-seeds",
                                            "2",   "--result", "loss",       "--json",
                                            "--",  "sh",       "program.sh", "{x}"};
  EXPECT_EQ(run(command).status, 15);
  write("ready", "");
  const SweepEnd again = run(command);
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(json::parse(again.output).size(), 4u);
}

TEST_F(SweepRun, PlaceholdersAndTheEnvironment) {
  const SweepEnd end =
      run({"run", "--grid", "a=0.5", "--seeds", "7", "--env", "FACTOR={a}", "--result", "value",
           "--json", "--", "sh", "-c", "echo \"{{\\\"value\\\": $FACTOR}}\"; test {seed} = 7"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(json::parse(end.output)[0]["value"], 0.5);
  const SweepEnd unknown = run({"run", "--grid", "a=1", "--", "echo", "{b}"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.errors.find("`b` is no name of the grid"), std::string::npos);
  EXPECT_EQ(run({"run", "--", "no-such-program-anywhere"}).status, 15);
}

TEST_F(SweepRun, AStopEndsThePrograms) {
  auto sweep = start({"run", "--num-seeds", "4", "--", "sh", "-c", "sleep 1000 & wait"});
  while (sweep->workers().empty() && sweep->running()) {
  }
  ::usleep(300'000);
  ::kill(sweep->pid(), SIGTERM);
  EXPECT_EQ(sweep->wait().status, 75);
  EXPECT_TRUE(nothing_left());
}

TEST_F(SweepRun, AKilledRunnerLeavesNoProgram) {
  auto sweep = start({"run", "--num-seeds", "4", "--", "sh", "-c", "setsid sleep 1000 & wait"});
  while (sweep->workers().empty() && sweep->running()) {
  }
  ::usleep(300'000);
  ::kill(sweep->pid(), SIGKILL);
  EXPECT_EQ(sweep->wait().status, 137);
  EXPECT_TRUE(nothing_left());
}

}  // namespace
}  // namespace convoy::testing
