// SPDX-License-Identifier: Apache-2.0
#include "convoy/monitor/run_recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/base/files.h"

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

}  // namespace
}  // namespace convoy::monitor
