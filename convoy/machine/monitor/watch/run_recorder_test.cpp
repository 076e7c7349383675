// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/run_recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/machine/monitor/watch/job_report.h"
#include "files/temporary_folder.h"
#include "machines/machine.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

TEST(RunRecorder, WatchesUntilItIsStopped) {
  std::string pattern = (fs::temp_directory_path() / "convoy-watch-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  RunRecorderOptions options;
  options.recorder.output = folder / "devices.csv";
  options.recorder.interval_s = 0.05;
  RunRecorder recorder(options, Log(LogLevel::Quiet));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_FALSE(recorder.stop().is_null());
  EXPECT_TRUE(recorder.stop().is_null()) << "it has ended";
  const std::string csv = read_file(folder / "devices.csv");
  EXPECT_TRUE(csv.starts_with("timestamp,elapsed_s"));
  EXPECT_GE(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_TRUE(fs::exists(folder / "devices.csv.meta.json"));
  fs::remove_all(folder);
}

TEST(RunRecorder, AFileThatCannotBeWrittenIsAWarning) {
  RunRecorderOptions options;
  options.recorder.output = "/proc/nothing/devices.csv";
  RunRecorder recorder(options, Log(LogLevel::Quiet));
  EXPECT_TRUE(recorder.stop().is_null());
}

class OfATraining : public ::testing::Test {
 protected:
  RunRecorderOptions options(const testing::FakeMachine& machine) const {
    RunRecorderOptions options{.sources = machine.sources()};
    options.recorder.output = folder_ / "devices.csv";
    options.recorder.interval_s = 0.1;
    options.events = folder_ / "events.jsonl";
    options.tensorboard = folder_ / "tb/devices";
    return options;
  }
  void event(nlohmann::json row) const {
    row["time"] = wall_clock_seconds();
    std::ofstream(folder_ / "events.jsonl", std::ios::app) << row << '\n';
  }
  static void wait_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(OfATraining, ItsRecordGoesFromItsFirstStepToItsEnd) {
  const testing::FakeMachine machine("h200x8");
  event({{"event", "end"}, {"figures", {{"train_tokens", 1}}}});  // the end of an earlier start
  RunRecorder recorder(options(machine), Log(LogLevel::Quiet));
  const double watched_since_s = wall_clock_seconds();
  wait_ms(600);  // as long as loading a model takes
  const double before_s = wall_clock_seconds() - watched_since_s;
  event({{"event", "start"}, {"resume_step", 3}});
  wait_ms(500);
  event({{"event", "step"}, {"step", 4}});
  wait_ms(500);
  event({{"event", "end"},
         {"step", 4},
         {"figures", {{"train_tokens", 1000}, {"train_supervised_tokens", 400}}}});
  wait_ms(600);  // as long as writing files takes
  const nlohmann::ordered_json whole = recorder.stop();
  const auto training = recorder.training();
  ASSERT_TRUE(training);
  EXPECT_EQ(training->tokens, 1000);
  EXPECT_EQ(training->supervised_tokens, 400);
  const double seconds = training->summary["seconds"];
  // A busy machine may see the end late, so the upper bound subtracts only the time before the
  // start.
  EXPECT_GT(seconds, 0.3);
  EXPECT_LT(seconds, whole["seconds"].get<double>() - before_s + 0.3);
  const double joules = training->summary["devices"]["gpu0"]["energy_j"];
  EXPECT_GT(joules, 0);
  EXPECT_LT(joules, whole["devices"]["gpu0"]["energy_j"].get<double>());
}

TEST_F(OfATraining, OneThatNobodySawHasNoRecord) {
  const testing::FakeMachine machine("cpus");
  RunRecorder recorder(options(machine), Log(LogLevel::Quiet));
  wait_ms(100);
  recorder.stop();
  EXPECT_FALSE(recorder.training());
}

TEST_F(OfATraining, ItsReportIsOfTheDevicesThatItsRanksComputeOn) {
  const testing::FakeMachine machine("h200x8");
  RunRecorder recorder(options(machine), Log(LogLevel::Quiet));
  wait_ms(300);
  event({{"event", "start"}, {"resume_step", -1}});
  wait_ms(900);
  event(
      {{"event", "end"}, {"figures", {{"train_tokens", 1000}, {"train_supervised_tokens", 400}}}});
  wait_ms(300);
  recorder.stop();
  const auto training = recorder.training();
  ASSERT_TRUE(training);
  const nlohmann::ordered_json& devices = training->summary["devices"];
  JobWork work{.host = "node3", .ranks_here = 2, .ranks = 2, .usable_cpus = 4};
  work.tokens = 1000;
  work.supervised_tokens = 400;
  work.uuids = {devices["gpu3"]["uuid"], devices["gpu5"]["uuid"]};
  const nlohmann::ordered_json report = job_report(training->summary, work);
  ASSERT_EQ(report["gpus"].size(), 2U);
  EXPECT_EQ(report["gpus"][0]["device"], "gpu3");
  const double joules =
      devices["gpu3"]["energy_j"].get<double>() + devices["gpu5"]["energy_j"].get<double>();
  EXPECT_DOUBLE_EQ(report["energy_j"], joules);
  EXPECT_DOUBLE_EQ(report["joules_per_token"], joules / 1000);
  EXPECT_DOUBLE_EQ(report["joules_per_supervised_token"], joules / 400);
  const std::vector<std::string> lines = job_report_lines(report);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with("devices: 2 GPUs: busy ")) << lines[0];
  EXPECT_NE(lines[0].find("(peak 99 %), SMs active "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(" each"), std::string::npos);
  EXPECT_TRUE(lines[1].starts_with("host: ")) << lines[1];
  EXPECT_NE(lines[2].find(" J a supervised one"), std::string::npos) << lines[2];
  EXPECT_NE(lines[2].find("slowed: gpu3 "), std::string::npos) << lines[2];
  EXPECT_NE(job_report_table(report).find("gpu5"), std::string::npos);

  work.ranks = 8;  // six of them on other hosts
  const nlohmann::ordered_json part = job_report(training->summary, work);
  EXPECT_TRUE(part["joules_per_token"].is_null());
  EXPECT_NE(job_report_lines(part)[2].find("for 2 of 8 ranks"), std::string::npos);
}

TEST_F(OfATraining, WithoutGpusTheReportIsOfCpusAndSaysWhyEnergyIsUnknown) {
  const testing::FakeMachine machine("cpus");
  RunRecorder recorder(options(machine), Log(LogLevel::Quiet));
  event({{"event", "start"}});
  wait_ms(700);
  recorder.stop();
  JobWork work{.usable_cpus = 4};
  work.why_no_cpu_energy = recorder.host_gap(HostMetric::CpuEnergy);
  ASSERT_TRUE(recorder.training());
  const nlohmann::ordered_json report = job_report(recorder.training()->summary, work);
  EXPECT_TRUE(report["energy_j"].is_null());
  const std::vector<std::string> lines = job_report_lines(report);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("devices: CPUs: the job used ")) << lines[0];
  EXPECT_NE(lines[0].find("of 4 cores"), std::string::npos);
  EXPECT_NE(report["energy_reason"].get<std::string>().find("the kernel shows no energy counter"),
            std::string::npos);
}

TEST(JobReport, WhatSomebodyElseWroteIsSurvived) {
  for (const char* text :
       {"null", "3", "[]", "{}", R"({"gpus": 3})", R"({"gpus": [1, {"power_w": []}], "cpu": 2})",
        R"({"energy_j": "much", "gpus": [{"throttled_s": {"a": "b"}}]})"}) {
    const auto report = nlohmann::ordered_json::parse(text);
    for (const std::string& line : job_report_lines(report)) EXPECT_FALSE(line.empty());
    job_report_table(report);
  }
}

// Reads the curves with TensorBoard's own reader.
TEST_F(OfATraining, ItsDevicesAreCurvesOverItsSteps) {
  const testing::FakeMachine machine("h200x8");
  RunRecorder recorder(options(machine), Log(LogLevel::Quiet));
  event({{"event", "start"}, {"resume_step", -1}});
  wait_ms(400);
  event({{"event", "step"}, {"step", 7}});
  wait_ms(400);
  recorder.stop();
  const char* const python = std::getenv("CONVOY_PEER_PYTHON");
  const std::string output = folder_ / "read.json";
  const int status = std::system(
      fmt::format("{} {}/tests/golden/telemetry/read_scalars.py {} >{} 2>/dev/null",
                  python == nullptr ? "python3" : python, std::getenv("CONVOY_SOURCE_DIR"),
                  (folder_ / "tb/devices").string(), output)
          .c_str());
  if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)
    GTEST_SKIP() << "no Python with TensorBoard (CONVOY_PEER_PYTHON)";
  ASSERT_EQ(status, 0);
  const auto found = nlohmann::json::parse(read_file(output));
  for (int index = 0; index < 8; ++index)
    for (const char* const name : {"utilization", "sm_active", "memory_used", "power"}) {
      const std::string tag = fmt::format("gpu/{}/{}", index, name);
      ASSERT_TRUE(found["scalars"].contains(tag)) << tag;
      EXPECT_EQ(found["scalars"][tag].back()[0], 7) << tag;
    }
  EXPECT_TRUE(found["scalars"].contains("cpu/memory_used"));
  const auto& charts = found["texts"]["custom_scalars__config__"];
  EXPECT_NE(std::find(charts.begin(), charts.end(), "GPUs: power (W)"), charts.end());
}

}  // namespace
}  // namespace convoy::monitor
