// SPDX-License-Identifier: Apache-2.0
//
// Tests `convoy sweep run` for tuning programs: several results, grids other than products,
// pruning, the best cell, and tables and files whose form does not change.
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepPrograms : public SweepTest {
 protected:
  ::testing::AssertionResult has(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "no `" << part << "` in:\n" << text;
  }
};

TEST_F(SweepPrograms, EveryResultHasAColumnOfItsName) {
  const std::vector<std::string> sweep = {
      "run",
      "--grid",
      "lr=0.1,0.2",
      "--num-seeds",
      "2",
      "--result",
      "loss",
      "--result",
      "final.accuracy",
      "--",
      "sh",
      "-c",
      "echo '{{\"loss\": {lr}}}'; echo '{{\"final\": {{\"accuracy\": 0.{seed}}}}}'"};
  const SweepEnd end = run(sweep);
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(has(end.output, "lr   loss MEDIAN   QUARTILES  final.accuracy MEDIAN"));
  EXPECT_TRUE(has(end.errors, "best: loss 0.1 with lr=0.1, seed 0\n"));
  EXPECT_TRUE(has(end.errors, "its command: sh -c 'echo '\\''{\"loss\": 0.1}'\\''; "));
  const json rows = json::parse(run({"show", "--json"}).output);
  EXPECT_EQ(rows[1]["loss"], 0.1);
  EXPECT_EQ(rows[1]["final.accuracy"], 0.1);
  EXPECT_EQ(rows[1]["folder"], std::filesystem::canonical(folder_.path()).string());
  EXPECT_TRUE(has(rows[1]["environment"], "\"PATH\":"));
  const std::string wide = run({"export", "--format", "wide"}).output;
  EXPECT_TRUE(wide.starts_with("lr,loss_seed=0,loss_seed=1,final.accuracy_seed=0,")) << wide;
  EXPECT_EQ(wide, file_beginning("results", "run-"));
  // The second call computes nothing and writes nothing.
  const SweepEnd again = run(sweep);
  EXPECT_TRUE(has(again.errors, "nothing was run"));
  EXPECT_EQ(again.errors.find("wrote"), std::string::npos) << again.errors;
}

TEST_F(SweepPrograms, AResultThatIsMissingFailsTheCell) {
  const SweepEnd end = run({"run", "--result", "loss", "--result", "accuracy", "--max-attempts",
                            "1", "--", "echo", "{{\"loss\": 1}}"});
  EXPECT_EQ(end.status, 15);
  EXPECT_TRUE(
      has(end.errors,
          "no line of stdout is a JSON object with `accuracy`; its last is `{\"loss\": 1}`"));
  EXPECT_EQ(run({"run", "--result", "a", "--result", "a", "--", "true"}).status, 2);
}

TEST_F(SweepPrograms, TheLastLineOfAProgramWithoutAResultIsShown) {
  write("program.sh", "printf 'Traceback\\n\\033[1mcaf\\351: no GPU\\n  \\n'\n");
  const SweepEnd end =
      run({"run", "--result", "loss", "--max-attempts", "1", "--", "sh", "program.sh"});
  EXPECT_EQ(end.status, 15) << end.errors;
  EXPECT_TRUE(has(end.output, "; its last is `\\x1b[1mcaf")) << end.output;
  EXPECT_TRUE(has(end.output, ": no GPU`")) << end.output;
  EXPECT_EQ(run({"export", "--json"}).status, 0);
  const SweepEnd silent = run({"run", "--result", "loss", "--max-attempts", "1", "--", "true"});
  EXPECT_TRUE(has(silent.errors, "object with `loss`; it is empty")) << silent.errors;
}

TEST_F(SweepPrograms, TheBestMayBeTheGreatest) {
  const SweepEnd end = run({"run", "--grid", "x=1,5,3", "--env", "X={x}", "--result", "score",
                            "--best", "max", "--", "sh", "-c", "echo \"{{\\\"score\\\": $X}}\""});
  EXPECT_TRUE(has(end.errors, "best: score 5 with x=5, seed 0\nits command: X=5 sh -c "));
}

TEST_F(SweepPrograms, CellsComeFromAFileAndZippedNamesAndSamples) {
  write("cells.csv", "lr,seed\n0.1,7\n0.2,9\n");
  const SweepEnd end = run({"run", "--cells", "cells.csv", "--zip", "a=1,2", "--zip", "b=3,4",
                            "--json", "--", "test", "{lr}{a}{b}{seed}"});
  ASSERT_EQ(end.status, 0) << end.errors;
  const json rows = json::parse(end.output);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["seed"], 7);
  EXPECT_EQ(rows[3]["b"], 4);
  const SweepEnd samples = run({"run", "--name", "s", "--space", "lr=1e-4..1e-1,log", "--space",
                                "n=1..9,int", "--samples", "8", "--json", "--", "test", "{lr}{n}"});
  EXPECT_EQ(json::parse(samples.output).size(), 8u) << samples.errors;
  EXPECT_EQ(run({"run", "--cells", "none.csv", "--", "true"}).status, 10);
}

TEST_F(SweepPrograms, CellsOfSeedsOfTheirOwnAreRowsOfTheTable) {
  write("cells.csv", "lr,layers,seed\n0.1,1,0\n0.01,4,1\n0.001,2,2\n");
  const SweepEnd end = run(
      {"run", "--cells", "cells.csv", "--result", "v", "--", "echo", "{{\"v\": {lr}{layers}}}"});
  ASSERT_EQ(end.status, 0) << end.errors;
  for (const char* row :
       {"1       0.1    0.11\n", "4       0.01   0.014\n", "2       0.001  0.0012\n"})
    EXPECT_TRUE(has(end.output, row)) << end.output;
}

TEST_F(SweepPrograms, WholeNumbersReachProgramsAsTheyAre) {
  const SweepEnd end = run({"run", "--grid", "v=9007199254740993,9007199254740992", "--json", "--",
                            "sh", "-c", "echo \"$CONVOY_SWEEP_PARAMETERS\" | grep -q ':{v}}}'"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(json::parse(end.output)[0]["v"], 9007199254740993);
}

TEST_F(SweepPrograms, AProgramThatIsWorseThanTheMedianAtAStepIsEnded) {
  write("program.sh",
        "for step in 1 2 3; do echo \"{\\\"step\\\": $step, \\\"loss\\\": $1.$step}\"; done\n"
        "[ $1 -lt 9 ] || sleep 60\necho '{\"loss\": '$1'}'\n");
  const SweepEnd end = run({"run", "--grid", "x=1,2,3,4,5,9", "--workers", "1", "--result", "loss",
                            "--prune", "2", "--", "sh", "program.sh", "{x}"});
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(has(end.errors, "6 cells: 5 values, 1 censored"));
  EXPECT_TRUE(has(end.output, "pruned  at step 2 it had 9.2, the median of the others is 3.2"));
  EXPECT_TRUE(nothing_left());
  EXPECT_EQ(run({"run", "--prune", "2", "--", "true"}).status, 2);
}

TEST_F(SweepPrograms, TheListHasCommandGridAndStates) {
  ASSERT_EQ(run({"run", "--grid", "lr=0.1,0.2", "--num-seeds", "3", "--", "test", "{lr}"}).status,
            0);
  ASSERT_EQ(run({"ball", "--dims", "2", "3", "--num-seeds", "2", "--num-points", "1000"}).status,
            0);
  const SweepEnd end = run({"show", "--list"});
  EXPECT_TRUE(has(end.output, "  6 cells: 6 values\n    test {lr}\n"));
  EXPECT_TRUE(has(end.output, "\n    lr 0.1, 0.2; seeds 0 .. 2\n    last run "));
  EXPECT_TRUE(has(end.output, "\n    convoy sweep ball\n    dim 2, 3; seeds 0 .. 1; points\n"));
  const json list = json::parse(run({"show", "--list", "--json"}).output);
  EXPECT_EQ(list[0]["states"]["value"], 6);
  EXPECT_EQ(list[0]["grid"]["lr"], (json{0.1, 0.2}));
}

}  // namespace
}  // namespace convoy::testing
