// SPDX-License-Identifier: Apache-2.0
//
// Tests the output of a reading: formats, a continued file, the summary, and the terminal view.
#include "convoy/machine/monitor/watch/machine_reading.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/monitor/watch/recorder.h"
#include "convoy/machine/monitor/watch/screen.h"
#include "convoy/machine/monitor/watch/watch_summary.h"
#include "files/temporary_folder.h"

namespace convoy::monitor {
namespace {

using nlohmann::json;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream all(text);
  for (std::string part; std::getline(all, part, separator);) parts.push_back(part);
  if (text.ends_with(separator)) parts.emplace_back();
  return parts;
}

DeviceReading sampled_gpu(int index, double util, double power) {
  DeviceReading reading{
      .index = index, .name = "A, \"B\"", .uuid = "GPU-1", .pci_address = "0:1:0"};
  reading.values[Metric::GpuUtil] = util;
  reading.values[Metric::Power] = power;
  reading.values[Metric::MemUsed] = 1000;
  reading.values[Metric::MemTotal] = 4000;
  reading.throttle_reasons = 0x4;
  return reading;
}

MachineReading reading_of(double elapsed_s, std::vector<DeviceReading> devices) {
  MachineReading reading{.wall_ns = 1'767'225'600'250'000'000, .elapsed_s = elapsed_s};
  reading.devices = std::move(devices);
  reading.host[HostMetric::CpuBusy] = 12.34;
  return reading;
}

std::string cell(const std::string& csv, size_t row, const std::string& column) {
  const auto lines = split(csv, '\n');
  const auto names = split(lines[0], ',');
  const auto at =
      static_cast<size_t>(std::find(names.begin(), names.end(), column) - names.begin());
  return split(lines[row], ',').at(at);
}

TEST(CsvV1, ARowPerDeviceAndOneOfTheHost) {
  DeviceReading device = sampled_gpu(0, 97, 300.25);
  device.name = "H100";
  device.xids = {79, 13};
  const std::string csv =
      csv_header() + csv_rows(reading_of(1.5, {device}), {.run_id = "r", .host = "h", .rank = "3"});
  const auto lines = split(csv, '\n');
  ASSERT_EQ(lines.size(), 4U);  // the last one is empty
  EXPECT_EQ(split(lines[0], ',').size(), split(lines[1], ',').size());
  EXPECT_EQ(split(lines[0], ',').size(), split(lines[2], ',').size());
  EXPECT_TRUE(lines[1].starts_with("2026-01-01T00:00:00.250Z,1.500,r,h,3,gpu0,GPU-1,H100,ok,97,"))
      << lines[1];
  EXPECT_EQ(cell(csv, 1, "power_w"), "300.2");
  EXPECT_EQ(cell(csv, 1, "throttle"), "sw_power");
  EXPECT_EQ(cell(csv, 1, "xid"), "79+13");
  EXPECT_EQ(cell(csv, 1, "sm_active_pct"), "");  // an unknown value is an empty cell
  EXPECT_EQ(cell(csv, 1, "host_cpu_pct"), "");
  EXPECT_EQ(cell(csv, 2, "device"), "host");
  EXPECT_EQ(cell(csv, 2, "host_cpu_pct"), "12.3");
}

TEST(CsvV1, ALostGpuHasARowOfBlanks) {
  DeviceReading device{.index = 2, .name = "H100", .uuid = "GPU-3"};
  device.problem = "GPU is lost";
  const std::string csv = csv_header() + csv_rows(reading_of(1, {device}), {});
  EXPECT_EQ(cell(csv, 1, "state"), "GPU is lost");
  EXPECT_EQ(cell(csv, 1, "gpu_util_pct"), "");
}

TEST(CsvV1, EveryColumnIsOnThePage) {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "CONVOY_SOURCE_DIR is not set";
  const std::string page = read_file(std::string(source) + "/docs/reference/device-columns.md");
  for (const std::string& name : split(split(csv_header(), '\n')[0], ','))
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
}

TEST(CsvSeed, TheColumnsOfTheGuide) {
  EXPECT_EQ(seed_csv_header(),
            "Timestamp,Elapsed,GPU_Index,GPU_Name,Temperature,GPU_Utilization,Memory_Utilization,"
            "Memory_Used,Memory_Total,Power_Draw");
  DeviceReading instance = sampled_gpu(0, 1, 2);
  instance.mig = true;
  const std::string rows = seed_csv_rows(reading_of(2, {sampled_gpu(0, 97, 300.25), instance}));
  EXPECT_TRUE(rows.ends_with(",2.00,0,\"A, \"\"B\"\"\",N/A,97,N/A,1000,4000,300.25\n")) << rows;
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1);
  EXPECT_NE(seed_csv_rows(reading_of(0, {})).find("No GPU found"), std::string::npos);
}

TEST(JsonLines, NullForWhatIsNotKnown) {
  const auto lines =
      split(json_rows(reading_of(2, {sampled_gpu(0, 97, 300)}), {.host = "h"}), '\n');
  const json device = json::parse(lines.at(0)), host = json::parse(lines.at(1));
  EXPECT_EQ(device["schema"], "convoy.monitor.v1");
  EXPECT_EQ(device["gpu_util_pct"], 97);
  EXPECT_TRUE(device["sm_active_pct"].is_null());
  EXPECT_TRUE(device["rank"].is_null());
  EXPECT_EQ(host["device"], "host");
  EXPECT_EQ(host["host_cpu_pct"], 12.34);
}

TEST(Prometheus, DcgmsNamesAndUnits) {
  DeviceReading device = sampled_gpu(1, 97, 300);
  device.values[Metric::SmActive] = 50;
  device.values[Metric::Energy] = 2;
  const std::string text = prometheus_text(reading_of(2, {device}), {.host = "h"});
  const std::string labels =
      R"({gpu="1",UUID="GPU-1",pci_bus_id="0:1:0",device="nvidia1",modelName="A, \"B\"",Hostname="h"})";
  EXPECT_NE(text.find("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL" + labels + " 97\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("DCGM_FI_PROF_SM_ACTIVE" + labels + " 0.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + " 2000\n"),
            std::string::npos);
  EXPECT_EQ(text.find("DCGM_FI_DEV_GPU_TEMP"), std::string::npos);  // no device reports it
  EXPECT_NE(text.find("convoy_host_cpu_percent{Hostname=\"h\"} 12.34\n"), std::string::npos);
}

class MonitorFile : public ::testing::Test {
 protected:
  Recorder recorder(const std::string& schema = "v1", const std::string& format = "csv") const {
    return Recorder({.output = path_, .format = format, .schema = schema}, Log(LogLevel::Quiet));
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "m.csv";
};

TEST_F(MonitorFile, GoesOnWithOneHeaderAndWithoutATornLine) {
  recorder().add(reading_of(0, {sampled_gpu(0, 1, 2)}));
  std::ofstream(path_, std::ios::app) << "2026-01-01T00:00:00.250Z,torn";
  recorder().add(reading_of(0, {sampled_gpu(0, 1, 2)}));
  const std::string text = read_file(path_);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_EQ(text.rfind(csv_header()), 0U);
  EXPECT_EQ(text.find("torn"), std::string::npos);
}

TEST_F(MonitorFile, RefusesAFileOfOtherColumns) {
  recorder().add(reading_of(0, {}));
  EXPECT_THROW(recorder("seed"), ConfigError);
  EXPECT_EQ(read_file(path_).rfind(csv_header()), 0U);
}

TEST_F(MonitorFile, PrometheusTextIsTheLastLookAlone) {
  Recorder file = recorder("v1", "prom");
  file.add(reading_of(0, {sampled_gpu(0, 1, 2)}));
  file.add(reading_of(1, {sampled_gpu(0, 3, 2)}));
  const std::string text = read_file(path_);
  EXPECT_EQ(text.find("} 1\nDCGM_FI_DEV_GPU_UTIL"), std::string::npos);
  EXPECT_NE(text.find("\"} 3\n"), std::string::npos);
}

TEST_F(MonitorFile, TheSidecarSaysWhatIsBlankAndWhy) {
  Recorder file = recorder();
  DeviceReader reader({.nvml_library = "libno-such.so", .sys = folder_ / "sys"});
  file.add(reading_of(0, {}));
  file.write_meta(reader, {}, nullptr);
  const json meta = json::parse(read_file(path_.string() + ".meta.json"));
  EXPECT_EQ(meta["schema"], "convoy.monitor_meta.v1");
  EXPECT_NE(meta["why_no_gpu"].get<std::string>().find("no NVIDIA driver"), std::string::npos);
  EXPECT_TRUE(meta["columns"].contains("sm_active_pct"));
  EXPECT_TRUE(meta["summary"].is_null());
}

TEST_F(MonitorFile, AFolderThatCanNotBeMadeIsAnError) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THROW(Recorder({.output = folder_ / "file/m.csv"}, Log(LogLevel::Quiet)), IoError);
}

TEST(RunningFigure, PercentilesAndBoundedMemory) {
  RunningFigure figure;
  for (int value = 1; value <= 100; ++value) figure.add(value);
  EXPECT_EQ(figure.least(), 1);
  EXPECT_EQ(figure.most(), 100);
  EXPECT_EQ(figure.mean(), 50.5);
  EXPECT_EQ(figure.p95(), 95);
  RunningFigure much;
  for (int value = 0; value < 100'000; ++value) much.add(value % 1000);
  EXPECT_NEAR(much.p95(), 950, 10);
}

TEST(Summary, EnergyThrottlingAndBalance) {
  Summary summary;
  DeviceReading busy = sampled_gpu(0, 95, 400), idle = sampled_gpu(1, 20, 100);
  for (int second = 0; second <= 10; ++second) {
    busy.values[Metric::Energy] = 1000 + 400.0 * second;
    busy.values[Metric::ThrottlePowerNs] = 5e8 * second;
    summary.add(reading_of(second, {busy, idle}));
  }
  const auto told = summary.json({.ticks = 11, .seconds = 10, .cpu_seconds = 0.01});
  EXPECT_EQ(told["devices"]["gpu0"]["energy_j"], 4000);
  EXPECT_EQ(told["devices"]["gpu0"]["energy_is_estimate"], false);
  EXPECT_DOUBLE_EQ(told["devices"]["gpu0"]["throttled_s"]["sw_power"], 5);
  EXPECT_EQ(told["devices"]["gpu1"]["energy_j"], 1000);  // from its power, since it has no counter
  EXPECT_EQ(told["devices"]["gpu1"]["energy_is_estimate"], true);
  // The seconds come from the throttle bit, since this GPU has no counter of them.
  EXPECT_DOUBLE_EQ(told["devices"]["gpu1"]["throttled_s"]["sw_power"], 10);
  EXPECT_EQ(told["balance"], "unequal: gpu1 was busy 20 % of the time, gpu0 95 %");
  EXPECT_NEAR(told["own_cost"]["core_percent"].get<double>(), 0.1, 1e-9);
}

TEST(Summary, ABusyGpuThatDoesNothingIsNamed) {
  Summary summary;
  DeviceReading waiting = sampled_gpu(0, 100, 120);
  waiting.values[Metric::SmActive] = 3;
  summary.add(reading_of(0, {waiting}));
  EXPECT_NE(
      summary.text({}).find("gpu0: busy 100 % of the time with 3 % of its multiprocessors at work"),
      std::string::npos)
      << summary.text({});
}

TEST(Summary, UnequalMemoryAndLostGpus) {
  Summary summary;
  DeviceReading full = sampled_gpu(0, 95, 400), other = sampled_gpu(1, 96, 400);
  full.values[Metric::MemUsed] = 3000;
  summary.add(reading_of(0, {full, other}));
  EXPECT_EQ(summary.balance(), "unequal memory: gpu1 held 1000 MiB at most, gpu0 3000 MiB");
  DeviceReading lost{.index = 1};
  lost.problem = "GPU is lost";
  summary.add(reading_of(5, {full, lost}));
  EXPECT_EQ(summary.balance(), "broken: gpu1 stopped answering");
  const auto told = summary.json({});
  EXPECT_EQ(told["devices"]["gpu1"]["problem"], "GPU is lost");
  EXPECT_EQ(told["devices"]["gpu1"]["silent_s"], 5);
  EXPECT_NE(summary.text({}).find("gpu1: no answer for 5s: GPU is lost"), std::string::npos);
}

// Counts the bytes that begin a character of UTF-8.
size_t columns_of(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xC0) != 0x80;
  }));
}

TEST(Screen, FitsTheTerminal) {
  Screen screen("convoy monitor");
  for (int look = 0; look < 200; ++look)
    screen.add(reading_of(look, {sampled_gpu(0, look % 100, 300), sampled_gpu(1, 50, 300)}));
  for (const ScreenSize size : {ScreenSize{80, 24}, ScreenSize{40, 6}, ScreenSize{200, 60},
                                ScreenSize{10, 3}, ScreenSize{1, 1}}) {
    const auto lines = screen.lines(size, false, false);
    EXPECT_LE(static_cast<int>(lines.size()), size.rows) << size.columns << 'x' << size.rows;
    for (const std::string& line : lines)
      EXPECT_LE(static_cast<int>(columns_of(line)), size.columns) << line;
  }
  const auto lines = screen.lines({80, 24}, false, true);
  EXPECT_NE(lines[0].find("PAUSED"), std::string::npos);
  EXPECT_NE(lines[1].find("gpu0        busy  99%"), std::string::npos) << lines[1];
}

TEST(Screen, ChartsAreAsHighAsTheLoad) {
  EXPECT_EQ(bar_chart({0, 50, 100}, 4, 1), std::vector<std::string>{"  ▄█"});
  EXPECT_EQ(bar_chart({0, 25, 75, 100}, 3, 2), (std::vector<std::string>{" ▄█", "▄██"}));
}

TEST(Dmon, OneLinePerDevice) {
  const std::string rows =
      dmon_rows(reading_of(1, {sampled_gpu(0, 97, 300), sampled_gpu(1, 3, 60)}));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 2);
  EXPECT_NE(rows.find("sw_power"), std::string::npos);
  EXPECT_NE(dmon_rows(reading_of(1, {})).find("host"), std::string::npos);
}

}  // namespace
}  // namespace convoy::monitor
