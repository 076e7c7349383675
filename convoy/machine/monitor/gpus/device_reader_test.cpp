// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/device_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "convoy/machine/monitor/gpus/gpu_info.h"
#include "files/temporary_folder.h"
#include "machines/machine.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;
using testing::FakeMachine;

// Needs the library of tests/fake_nvml.
class FakeNvml : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("CONVOY_BIN_DIR");
    library_ = fs::path(folder == nullptr ? "." : folder) / "libfake_nvml.so";
    if (!fs::exists(library_)) GTEST_SKIP() << library_ << " is not built";
  }
  void TearDown() override {
    ::unsetenv("FAKE_NVML");
    ::unsetenv("FAKE_NVML_INIT");
  }

  GpuList list(const std::string& described) const {
    ::setenv("FAKE_NVML", described.c_str(), 1);
    return list_gpus({.nvml_library = library_, .sys = sys_.path()});
  }

  void node_of(const std::string& address, int node) const {
    const fs::path folder = sys_ / "bus/pci/devices" / address;
    fs::create_directories(folder);
    std::ofstream(folder / "numa_node") << node << '\n';
  }

  fs::path library_;
  testing::TemporaryFolder sys_;
};

TEST_F(FakeNvml, ListsGpusInstancesAndNumaNodes) {
  node_of("0000:3b:00.0", 0);
  node_of("0001:d8:1f.0", 3);
  const GpuList found = list(
      "GPU-1 A100 0000:3B:00.0 81920;denied X 0:0:0 1;GPU-2 H100 0001:d8:1f.0 1000 MIG-a/1/0/100 "
      "-/0/0/0 MIG-b/5/2/200");
  ASSERT_EQ(found.gpus.size(), 2U);
  const Device& first = found.gpus[0].device;
  EXPECT_EQ(first.uuid, "GPU-1");
  EXPECT_EQ(first.name, "A100");
  EXPECT_EQ(first.pci_address, "0000:3b:00.0");
  EXPECT_EQ(first.memory_bytes, int64_t{81920} << 20);
  EXPECT_EQ(first.compute_major, 8);
  EXPECT_EQ(first.numa_node, 0);
  EXPECT_FALSE(found.gpus[0].mig_enabled);
  const Gpu& second = found.gpus[1];
  EXPECT_EQ(second.device.gpu, 2);
  EXPECT_TRUE(second.mig_enabled);
  ASSERT_EQ(second.instances.size(), 2U);
  EXPECT_EQ(second.instances[1].uuid, "MIG-b");
  EXPECT_EQ(second.instances[1].gpu_instance, 5);
  EXPECT_EQ(second.instances[1].compute_instance, 2);
  EXPECT_EQ(second.instances[1].numa_node, 3);
  EXPECT_EQ(second.instances[1].memory_bytes, int64_t{200} << 20);
}

TEST_F(FakeNvml, ReadsWhatGpusDo) {
  ::setenv("FAKE_NVML", "GPU-1 A100 0:3B:0 81920;denied X 0:0:0 1;GPU-3 Quiet 0:3c:0 500", 1);
  DeviceReader reader({.nvml_library = library_, .sys = sys_.path()});
  const std::vector<DeviceReading> readings = reader.read();
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].index, 0);
  EXPECT_EQ(readings[0].name, "A100");
  EXPECT_EQ(readings[0].values[Metric::Temperature], 40);
  EXPECT_EQ(readings[0].values[Metric::GpuUtil], 90);
  EXPECT_EQ(readings[0].values[Metric::MemBusy], 50);
  EXPECT_EQ(readings[0].values[Metric::MemUsed], 1000);  // without the 300 that the driver keeps
  EXPECT_EQ(readings[0].values[Metric::MemTotal], 81920);
  EXPECT_EQ(readings[0].values[Metric::Power], 300.5);
  EXPECT_EQ(readings[1].index, 2);
  EXPECT_EQ(readings[1].values[Metric::Temperature], std::nullopt);
  EXPECT_EQ(readings[1].values[Metric::GpuUtil], std::nullopt);
  EXPECT_EQ(readings[1].values[Metric::Power], std::nullopt);
  EXPECT_EQ(readings[1].values[Metric::MemTotal], 500);
  EXPECT_TRUE(DeviceReader({.nvml_library = "libno-such.so", .sys = sys_.path()}).read().empty());
}

TEST_F(FakeNvml, NamesEachGpuThatIsNotOpened) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "odd.json")
      << R"({"nvml": {"gpus": [{"uuid": "GPU-0", "name": "A", "pci": "0000:01:00.0"},
             {"uuid": "GPU-1", "name": "B", "pci": "0000:02:00.0", "open_error": 15},
             {"uuid": "GPU-2", "name": "C", "pci": "0000:03:00.0", "denied": true}]}})";
  ::setenv("FAKE_NVML_SCENARIO", (folder / "odd.json").c_str(), 1);
  const GpuInfo info = read_gpu_info({.nvml_library = library_, .sys = sys_.path()}, std::nullopt);
  ::unsetenv("FAKE_NVML_SCENARIO");
  EXPECT_EQ(info.num_gpus, 1);
  const std::string text = gpu_info_text(info);
  EXPECT_NE(text.find("GPU 1 cannot be opened: GPU is lost\n"), std::string::npos) << text;
  EXPECT_NE(text.find("GPU 2 may not be used by this process: Insufficient Permissions\n"),
            std::string::npos)
      << text;
}

TEST_F(FakeNvml, ControlCharactersOfADriversTextsAreReplaced) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "odd.json") << R"({"nvml": {"driver": "550\u001b[2J", "gpus": [
             {"uuid": "GPU-0", "name": "A\u001b[31mred\n\u007f\u009b é", "pci": "0000:01:00.0"}]}})";
  ::setenv("FAKE_NVML_SCENARIO", (folder / "odd.json").c_str(), 1);
  DeviceReader reader({.nvml_library = library_, .sys = sys_.path()});
  ::unsetenv("FAKE_NVML_SCENARIO");
  ASSERT_EQ(reader.devices().size(), 1U);
  EXPECT_EQ(reader.devices()[0].name, "A?[31mred??? é");
  EXPECT_EQ(reader.read()[0].name, "A?[31mred??? é");
  EXPECT_EQ(reader.versions().driver, "550?[2J");
}

TEST_F(FakeNvml, SaysWhyThereIsNone) {
  EXPECT_NE(list("").why_none.find("no GPU"), std::string::npos);
  ::setenv("FAKE_NVML_INIT", "9", 1);
  EXPECT_NE(list("").why_none.find("not running"), std::string::npos);
  ::setenv("FAKE_NVML_INIT", "18", 1);
  EXPECT_NE(list("").why_none.find("their versions differ"), std::string::npos);
  EXPECT_NE(
      list_gpus({.nvml_library = "/nowhere/libnvidia-ml.so.1"}).why_none.find("no NVIDIA driver"),
      std::string::npos);
  EXPECT_NE(list_gpus({.nvml_library = "libz.so.1"}).why_none.find("nvml"), std::string::npos);
}

// Reads twice and returns the second reading, which has the values that need an interval.
std::vector<DeviceReading> second_reading(DeviceReader& reader) {
  reader.read();
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  return reader.read();
}

std::string reason_of(const DeviceReader& reader, const std::string& device,
                      const std::string& metric) {
  for (const MetricGap& gap : reader.gaps())
    if (gap.device == device && gap.metric == metric) return gap.reason;
  return "";
}

TEST(MetricTable, IsInTheOrderOfItsNames) {
  for (size_t at = 0; at < kNumMetrics; ++at)
    EXPECT_EQ(static_cast<size_t>(metric_table()[at].metric), at) << metric_table()[at].name;
}

TEST(MetricTable, ReasonsAreWords) {
  EXPECT_EQ(throttle_text(0), "none");
  EXPECT_EQ(throttle_text(1), "none");  // bit 1: the GPU is idle
  EXPECT_EQ(throttle_text(0x44), "sw_power+hw_thermal");
}

TEST(Machines, EightH200TellAll) {
  const FakeMachine machine("h200x8");
  DeviceReader reader(machine.sources());
  EXPECT_EQ(reader.versions().driver, "570.124.06");
  EXPECT_EQ(reader.versions().cuda, 12080);
  const auto readings = second_reading(reader);
  ASSERT_EQ(readings.size(), 8U);
  const MetricValues& values = readings[3].values;
  EXPECT_EQ(values[Metric::GpuUtil], 98);
  EXPECT_EQ(values[Metric::SmActive], 91.5);
  EXPECT_EQ(values[Metric::TensorActive], 61.25);
  EXPECT_EQ(values[Metric::NvlinkTx], 30'250);
  EXPECT_EQ(values[Metric::NvlinkRx], 30'500);
  EXPECT_EQ(values[Metric::MemUsed], 121'300);
  EXPECT_EQ(values[Metric::MemReserved], 700);
  EXPECT_EQ(values[Metric::MemTemperature], 60);
  EXPECT_EQ(values[Metric::Energy], 5'000'000 + 640.0 + 655.5);
  EXPECT_EQ(values[Metric::ThrottlePowerNs], 5e8);
  EXPECT_EQ(values[Metric::Processes], 1);
  EXPECT_EQ(readings[3].throttle_reasons, 0U);
  EXPECT_TRUE(reader.gaps().empty());
}

TEST(Machines, OnlyThoseAskedForAreRead) {
  const FakeMachine machine("h200x8");
  DeviceReader reader(machine.sources(),
                      std::set<std::string>{"GPU-00000002-1111-2222-3333-444444444444"});
  const auto readings = reader.read();
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].label(), "gpu2");
}

TEST(Machines, AnA100HasNoGpmAndSaysWhy) {
  const FakeMachine machine("a100x4");
  DeviceReader reader(machine.sources());
  const auto readings = second_reading(reader);
  ASSERT_EQ(readings.size(), 4U);
  EXPECT_EQ(readings[0].values[Metric::SmActive], std::nullopt);
  EXPECT_EQ(readings[0].values[Metric::GpuUtil], 90);
  EXPECT_EQ(readings[1].values[Metric::RemapPending], 1);
  EXPECT_EQ(readings[1].values[Metric::EccCorrected], 12);
  EXPECT_NE(reason_of(reader, "gpu0", "sm_active_pct").find("has no GPM"), std::string::npos);
  EXPECT_NE(reason_of(reader, "gpu0", "throttle_power_ns").find("Not Supported"),
            std::string::npos);
}

TEST(Machines, InstancesFollowTheirGpu) {
  const FakeMachine machine("mig");
  DeviceReader reader(machine.sources());
  const auto readings = second_reading(reader);
  std::vector<std::string> labels;
  for (const DeviceReading& reading : readings) labels.push_back(reading.label());
  EXPECT_EQ(labels,
            (std::vector<std::string>{"gpu0", "gpu0/mig1", "gpu0/mig5", "gpu0/mig13", "gpu1"}));
  EXPECT_EQ(readings[0].values[Metric::GpuUtil], std::nullopt);  // MIG gives no such value
  EXPECT_EQ(readings[0].values[Metric::Power], 120.25);
  EXPECT_EQ(readings[3].values[Metric::MemUsed], 9'500);
  EXPECT_EQ(readings[3].values[Metric::Power], std::nullopt);
}

TEST(Machines, ALostGpuStaysInTheListAndTheOthersGoOn) {
  const FakeMachine machine("lost");
  DeviceReader reader(machine.sources());
  EXPECT_TRUE(reader.read()[2].xids.empty());
  reader.read();
  EXPECT_EQ(reader.read()[2].xids, std::vector<uint64_t>{79});
  const auto readings = reader.read();
  ASSERT_EQ(readings.size(), 4U);
  EXPECT_EQ(readings[2].problem, "GPU is lost");
  EXPECT_EQ(readings[2].values[Metric::Temperature], std::nullopt);
  EXPECT_EQ(readings[3].problem, "");
  EXPECT_EQ(readings[3].values[Metric::GpuUtil], 95);
}

TEST(Machines, SentinelsAreNoValues) {
  const FakeMachine machine("wsl");
  DeviceReader reader(machine.sources());
  const auto readings = second_reading(reader);
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].values[Metric::Power], std::nullopt);
  EXPECT_EQ(readings[0].values[Metric::PerformanceState], std::nullopt);
  EXPECT_EQ(readings[0].values[Metric::Processes], std::nullopt);
  EXPECT_EQ(readings[0].values[Metric::Temperature], 41);
  EXPECT_NE(reason_of(reader, "gpu0", "processes"), "");
  EXPECT_NE(reason_of(reader, "gpu0", "xid"), "");
}

TEST(Machines, UnifiedMemoryIsNotTheGpus) {
  const FakeMachine machine("unified");
  DeviceReader reader(machine.sources());
  const auto readings = reader.read();
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].values[Metric::MemUsed], std::nullopt);
  EXPECT_EQ(readings[0].values[Metric::GpuUtil], 50);
  EXPECT_EQ(readings[0].problem, "");
}

TEST(Machines, ADriverThatWasUpdatedIsExplained) {
  const FakeMachine machine("mismatch");
  DeviceReader reader(machine.sources());
  EXPECT_TRUE(reader.read().empty());
  EXPECT_NE(reader.problem().find("reload the module"), std::string::npos);
}

TEST(Machines, ADriverThatComesBackIsOpenedAgain) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "dies.json")
      << R"({"nvml": {"dead_ticks": [2, 99], "gpus": [{"uuid": "GPU-1", "name": "A", "pci": "0000:01:00.0",
             "memory_mib": 100, "used_mib": 1, "reserved_mib": 1}]}})";
  ::setenv("FAKE_NVML_SCENARIO", (folder / "dies.json").c_str(), 1);
  DeviceReader reader({.nvml_library = FakeMachine::library(), .sys = folder / "sys"});
  EXPECT_EQ(reader.read()[0].problem, "");
  EXPECT_EQ(reader.read()[0].problem, "Unknown Error");
  EXPECT_EQ(reader.read()[0].problem, "");  // the first retry comes at once
  ::unsetenv("FAKE_NVML_SCENARIO");
}

TEST(Machines, AmdsGpusAreKfds) {
  const FakeMachine machine("mi300x8");
  DeviceReader reader(machine.sources());
  const auto readings = reader.read();
  ASSERT_EQ(readings.size(), 8U);
  EXPECT_EQ(readings[7].name, "AMD Instinct MI300X");
  EXPECT_EQ(readings[7].uuid, "GPU-8d00000000000007");
  EXPECT_EQ(readings[7].pci_address, "0000:e5:00.0");
  EXPECT_EQ(readings[7].values[Metric::GpuUtil], 97);
  EXPECT_EQ(readings[7].values[Metric::MemUsed], 100'007);
  EXPECT_EQ(readings[7].values[Metric::Power], 612);
  EXPECT_EQ(readings[7].values[Metric::Temperature], 61);
  EXPECT_EQ(readings[7].values[Metric::SmActive], std::nullopt);
  EXPECT_NE(reason_of(reader, "gpu7", "sm_active_pct"), "");
  EXPECT_EQ(reader.problem(), "");
}

}  // namespace
}  // namespace convoy::monitor
