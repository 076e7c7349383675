// SPDX-License-Identifier: Apache-2.0
#include "convoy/telemetry/run_comparison.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "convoy/base/files.h"

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

  RunHistory run(const std::string& name, const std::string& config, const std::string& metrics) {
    fs::create_directory(folder_ / name);
    write_file_atomic(folder_ / name / "run.json", R"({"config": )" + config + "}");
    write_file_atomic(folder_ / name / "metrics.json", metrics);
    write_file_atomic(folder_ / name / "events.jsonl",
                      R"({"event":"start","time":100.0,"total_steps":4}
{"event":"step","time":101.0,"step":1,"loss":2.5,"tokens_per_second":100}
{"event":"step","time":102.0,"step":2,"loss":2.0,"tokens_per_second":300}
{"event":"eval","time":103.0,"step":2,"loss":1.25}
{"event":"end","time":104.0,"status":"finished"}
)");
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
  EXPECT_EQ(figures.at("eval_loss"), (std::vector<std::string>{"1.25", "1.25"}));
  EXPECT_EQ(figures.at("rows"), (std::vector<std::string>{"100", ""}));
  EXPECT_FALSE(figures.contains("process"));
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
