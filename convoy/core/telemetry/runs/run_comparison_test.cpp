// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_comparison.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "convoy/core/base/files.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;

class RunComparisonTest : public ::testing::Test {
 protected:
  RunComparisonTest() {
    std::string pattern = (fs::temp_directory_path() / "convoy-compare-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RunComparisonTest() override { fs::remove_all(folder_); }

  // `more` is JSON text: further members of run.json, behind `config`.
  RunHistory run(const std::string& name, const std::string& config, const std::string& metrics,
                 const std::string& more = "", const std::string& more_events = "") {
    fs::create_directory(folder_ / name);
    write_file_atomic(folder_ / name / "run.json", R"({"config": )" + config + more + "}");
    write_file_atomic(folder_ / name / "metrics.json", metrics);
    write_file_atomic(folder_ / name / "events.jsonl",
                      R"({"event":"start","time":100.0,"total_steps":4}
{"event":"step","time":101.0,"step":1,"loss":2.5,"tokens_per_second":100}
{"event":"step","time":102.0,"step":2,"loss":2.0,"tokens_per_second":300}
{"event":"eval","time":103.0,"step":2,"loss":1.25}
{"event":"end","time":104.0,"status":"finished"}
)" + more_events);
    return read_run(folder_ / name);
  }

  fs::path folder_;
};

std::map<std::string, std::vector<std::string>> by_name(const std::vector<ComparedValue>& lines) {
  std::map<std::string, std::vector<std::string>> found;
  for (const ComparedValue& line : lines) found[line.name] = line.values;
  return found;
}

TEST_F(RunComparisonTest, SettingsThatDifferAndFiguresSideBySide) {
  const RunComparison comparison = compare_runs(
      {run("a", R"({"train": {"lr": 0.1, "steps": 4, "output_dir": "x"}, "task": "sft"})",
           R"({"eval_loss": 1.25, "rows": 100, "process": {"deep": 1}})"),
       run("b", R"({"train": {"lr": 0.2, "steps": 4, "output_dir": "y"}, "task": "sft",
                    "lora": {"r": 8}})",
           R"({"eval_loss": 1.25})")});
  EXPECT_EQ(comparison.runs, (std::vector<std::string>{"a", "b"}));
  const auto settings = by_name(comparison.settings);
  EXPECT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings.at("train.lr"), (std::vector<std::string>{"0.1", "0.2"}));
  EXPECT_EQ(settings.at("lora.r"), (std::vector<std::string>{"", "8"}));
  const auto figures = by_name(comparison.figures);
  EXPECT_EQ(figures.at("steps"), (std::vector<std::string>{"2/4", "2/4"}));
  EXPECT_EQ(figures.at("lowest evaluation loss")[0], "1.2500 at step 2");
  EXPECT_EQ(figures.at("tokens per second, median")[1], "300");
  const auto metrics = by_name(comparison.metrics);
  EXPECT_EQ(metrics.at("eval_loss"), (std::vector<std::string>{"1.25", "1.25"}));
  EXPECT_EQ(metrics.at("rows"), (std::vector<std::string>{"100", ""}));
  EXPECT_FALSE(metrics.contains("process"));
}

TEST_F(RunComparisonTest, RanksAndStrategyOfTheLastStart) {
  const RunComparison comparison =
      compare_runs({run("a", R"({"parallel": {"strategy": "auto"}})", "{}",
                        R"(, "world_size": 4, "stamp": {"parallel.strategy": "ddp"})"),
                    run("b", R"({"parallel": {"strategy": "zero3"}})", "{}",
                        R"(, "world_size": 2, "stamp": {"parallel.strategy": "zero3"})")});
  const auto told = by_name(lines_to_tell(comparison));
  EXPECT_EQ(told.at("ranks"), (std::vector<std::string>{"4", "2"}));
  EXPECT_EQ(told.at("strategy"), (std::vector<std::string>{"ddp", "zero3"}))
      << "auto became something";
}

TEST_F(RunComparisonTest, NothingIsToldTwiceAndNoMetricThatIsEqual) {
  const RunComparison comparison = compare_runs(
      {run("a", R"({"train": {"learning_rate": 0.001}, "parallel": {"strategy": "ddp"}})",
           R"({"global_step": 2, "best_step": 2, "best_eval_loss": 1.25, "eval_loss": 1.25,
               "train_loss": 2.25,
               "eval_rows": 20, "train_tokens_per_second": 99, "peak_learning_rate": 0.001,
               "global_batch_size": 16})",
           R"(, "stamp": {"parallel.strategy": "ddp"})"),
       run("b", R"({"train": {"learning_rate": 2e-05}, "parallel": {"strategy": "zero1"}})",
           R"({"global_step": 1, "best_step": 1, "best_eval_loss": 1.5, "eval_loss": 1.5,
               "train_loss": 2.75,
               "eval_rows": 20, "train_tokens_per_second": 98, "peak_learning_rate": 2e-05,
               "global_batch_size": 8})",
           R"(, "stamp": {"parallel.strategy": "zero1"})")});
  const auto told = by_name(lines_to_tell(comparison));
  for (const char* name :
       {"strategy", "global_step", "best_step", "best_eval_loss", "eval_loss",
        "last evaluation loss", "eval_rows", "train_tokens_per_second", "peak_learning_rate"})
    EXPECT_FALSE(told.contains(name)) << name;
  EXPECT_EQ(told.at("train_loss"), (std::vector<std::string>{"2.25", "2.75"}));
  EXPECT_EQ(told.at("global_batch_size"), (std::vector<std::string>{"16", "8"}))
      << "no setting says it";
  EXPECT_EQ(by_name(comparison.settings).size(), 2U);
}

TEST_F(RunComparisonTest, TheLastEvaluationIsToldWhereAnotherOneWasTheBest) {
  const RunComparison comparison = compare_runs(
      {run("a", "{}", "{}"), run("b", "{}", "{}", "",
                                 R"({"event":"eval","time":103.5,"step":3,"loss":1.75})"
                                 "\n")});
  const auto told = by_name(lines_to_tell(comparison));
  EXPECT_EQ(told.at("lowest evaluation loss")[1], "1.2500 at step 2");
  EXPECT_EQ(told.at("last evaluation loss")[1], "1.7500 at step 3");
}

// Where another metric than the loss chose the best step, only the line `best_step` tells it.
TEST_F(RunComparisonTest, ABestStepIsToldWhereNoLossSaysIt) {
  const RunComparison comparison =
      compare_runs({run("a", "{}", R"({"best_step": 2, "best_eval_rougeL": 0.5})"),
                    run("b", "{}", R"({"best_step": 1, "best_eval_rougeL": 0.4})")});
  const auto told = by_name(lines_to_tell(comparison));
  EXPECT_TRUE(told.contains("best_step"));
  EXPECT_TRUE(told.contains("best_eval_rougeL"));
}

TEST_F(RunComparisonTest, ARunWithoutRecordedSettingsIsNamed) {
  const RunComparison comparison =
      compare_runs({run("a", R"({"task": "sft"})", "{}"), run("b", "null", "{")});
  EXPECT_EQ(comparison.without_settings, std::vector<std::string>{"b"});
  EXPECT_TRUE(comparison.settings.empty());
  EXPECT_EQ(by_name(comparison.figures).at("state")[1], "finished");
}

}  // namespace
}  // namespace convoy::telemetry
