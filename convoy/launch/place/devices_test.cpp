// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/devices.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "convoy/base/error.h"
#include "convoy/launch/place/device_reader.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

Gpu gpu(int index, const std::string& uuid, const std::string& name = "A100") {
  Gpu made;
  made.device.gpu = index;
  made.device.uuid = uuid;
  made.device.name = name;
  return made;
}

Gpu mig_gpu(int index, const std::string& uuid, const Texts& instances) {
  Gpu made = gpu(index, uuid);
  made.mig_enabled = true;
  for (const std::string& each : instances) {
    Device device = made.device;
    device.mig = true;
    device.uuid = each;
    device.gpu_instance = static_cast<int>(made.instances.size()) + 7;
    device.compute_instance = 0;
    made.instances.push_back(device);
  }
  return made;
}

const std::vector<Gpu> kFour = {gpu(0, "GPU-aa11"), gpu(1, "GPU-aa22"), gpu(2, "GPU-bb33"),
                                gpu(3, "GPU-cc44")};

Texts uuids(const DeviceSelection& selection) {
  Texts texts;
  for (const Device& device : selection.devices) texts.push_back(device.uuid);
  return texts;
}

Texts visible(const std::vector<Gpu>& gpus, const std::string& list) {
  return uuids(select_devices(gpus, {.cuda_visible_devices = list}));
}

TEST(VisibleDevices, UnsetShowsAllAndLeavesTheVariableAlone) {
  const DeviceSelection all = select_devices(kFour, {});
  EXPECT_EQ(all.devices.size(), 4U);
  EXPECT_FALSE(all.cuda_visible_devices);
  EXPECT_EQ(all.tokens, (Texts{"0", "1", "2", "3"}));
  EXPECT_TRUE(all.notes.empty());
}

TEST(VisibleDevices, IndicesAreReadAsCudaReadsThem) {
  EXPECT_EQ(visible(kFour, "2,0"), (Texts{"GPU-bb33", "GPU-aa11"}));
  EXPECT_EQ(visible(kFour, " 3 , 1"), (Texts{"GPU-cc44", "GPU-aa22"}));
  EXPECT_EQ(visible(kFour, "1gpu2,2"), (Texts{"GPU-aa22", "GPU-bb33"}));
  EXPECT_EQ(visible(kFour, "0,-1,2"), (Texts{"GPU-aa11"}));
  EXPECT_EQ(visible(kFour, "0,9,2"), (Texts{"GPU-aa11"}));
  EXPECT_EQ(visible(kFour, "0,x,2"), (Texts{"GPU-aa11"}));
  for (const std::string none : {"", "-1", "NoDevFiles", "9", "0,0"})
    EXPECT_EQ(visible(kFour, none), Texts{}) << none;
}

TEST(VisibleDevices, WhatEndsTheListIsSaid) {
  const DeviceSelection cut = select_devices(kFour, {.cuda_visible_devices = "0,9,2"});
  ASSERT_EQ(cut.notes.size(), 1U);
  EXPECT_NE(cut.notes[0].find("names 9"), std::string::npos);
  EXPECT_EQ(select_devices(kFour, {.cuda_visible_devices = "0,0"}).notes.size(), 1U);
}

TEST(VisibleDevices, UuidsMayBeShortenedUnlessAmbiguous) {
  EXPECT_EQ(visible(kFour, "GPU-bb,GPU-aa1"), (Texts{"GPU-bb33", "GPU-aa11"}));
  EXPECT_EQ(visible(kFour, "GPU-cc44,GPU-aa,GPU-bb"), (Texts{"GPU-cc44"}));
  EXPECT_EQ(visible(kFour, "GPU-cc44,1"), (Texts{"GPU-cc44"}));
  EXPECT_EQ(visible(kFour, "GPU-cc,GPU-cc44"), Texts{});
}

TEST(VisibleDevices, MigInstancesByNewAndOldNames) {
  const std::vector<Gpu> gpus = {mig_gpu(0, "GPU-aa", {"MIG-1111", "MIG-1222"}), gpu(1, "GPU-bb")};
  EXPECT_EQ(visible(gpus, "MIG-1222,MIG-1111"), (Texts{"MIG-1222", "MIG-1111"}));
  EXPECT_EQ(visible(gpus, "MIG-GPU-aa/8/0"), (Texts{"MIG-1222"}));
  EXPECT_EQ(visible(gpus, "MIG-1,MIG-1222"), Texts{});
  const DeviceSelection all = select_devices(gpus, {});
  EXPECT_EQ(uuids(all), (Texts{"MIG-1111", "MIG-1222", "GPU-bb"}));
  EXPECT_TRUE(all.one_device_per_rank);
  EXPECT_EQ(all.cuda_visible_devices, "MIG-1111,MIG-1222,1");
  EXPECT_EQ(visible(gpus, "0"), (Texts{"MIG-1111", "MIG-1222"}));
  EXPECT_FALSE(select_devices(gpus, {.cuda_visible_devices = "1"}).one_device_per_rank);
}

TEST(GpuIds, ChooseAmongTheVisibleAndKeepTheSpelling) {
  const auto chosen = [](const std::optional<std::string>& list, const std::string& ids) {
    return select_devices(kFour, {.cuda_visible_devices = list, .gpu_ids = ids})
        .cuda_visible_devices.value();
  };
  EXPECT_EQ(chosen({}, "0,2"), "0,2");
  EXPECT_EQ(chosen("3,1,0", "0,2"), "3,0");
  EXPECT_EQ(chosen("GPU-cc,GPU-bb33", "1"), "GPU-bb33");
  EXPECT_EQ(chosen("GPU-cc,GPU-bb33", "GPU-cc44"), "GPU-cc");
  for (const std::string bad : {"4", "-1", "0,0", "x", "0,", "GPU-zz"})
    EXPECT_THROW(chosen({}, bad), ConfigError) << bad;
  EXPECT_THROW(chosen("0,1", "2"), ConfigError);
}

TEST(GpuIds, RequestsComeFromTheEnvironment) {
  EXPECT_FALSE(selection_request({}, "").cuda_visible_devices);
  const SelectionRequest request =
      selection_request({{"CUDA_VISIBLE_DEVICES", ""}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}, "1");
  EXPECT_EQ(request.cuda_visible_devices, "");
  EXPECT_EQ(request.cuda_device_order, "PCI_BUS_ID");
  EXPECT_EQ(request.gpu_ids, "1");
  EXPECT_EQ(device_sources({{"CONVOY_NVML_LIBRARY", "/x.so"}}).nvml_library, "/x.so");
  EXPECT_EQ(device_sources({}).nvml_library, "libnvidia-ml.so.1");
}

TEST(GpuIds, UnlikeGpusMakeTheOrderUncertain) {
  const std::vector<Gpu> mixed = {gpu(0, "GPU-a", "T4"), gpu(1, "GPU-b", "H100")};
  EXPECT_EQ(select_devices(mixed, {}).notes.size(), 1U);
  EXPECT_TRUE(select_devices(mixed, {.cuda_device_order = "PCI_BUS_ID"}).notes.empty());
}

TEST(RankCount, NumbersAndWords) {
  EXPECT_EQ(rank_count("3", {}), 3);
  EXPECT_EQ(rank_count("gpu", {.num_devices = 2}), 2);
  EXPECT_EQ(rank_count("auto", {.num_devices = 2, .usable_cpus = 8}), 2);
  EXPECT_EQ(rank_count("auto", {.usable_cpus = 8}), 8);
  EXPECT_EQ(rank_count("cpu", {.num_devices = 2, .usable_cpus = 8}), 8);
  for (const std::string bad : {"", "0", "-1", "2x", "all", "xpu"})
    EXPECT_THROW(rank_count(bad, {}), ConfigError) << bad;
  try {
    rank_count("gpu", {.why_none = "there is no NVIDIA driver"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("there is no NVIDIA driver"), std::string::npos);
  }
}

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
  const DeviceReader reader({.nvml_library = library_, .sys = sys_.path()});
  const std::vector<DeviceReading> readings = reader.read();
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].index, 0);
  EXPECT_EQ(readings[0].name, "A100");
  EXPECT_EQ(readings[0].temperature_celsius, 40);
  EXPECT_EQ(readings[0].busy_percent, 90);
  EXPECT_EQ(readings[0].memory_busy_percent, 50);
  EXPECT_EQ(readings[0].memory_used_mib, 1000);  // without the 300 that the driver keeps
  EXPECT_EQ(readings[0].memory_total_mib, 81920);
  EXPECT_EQ(readings[0].power_watts, 300.5);
  EXPECT_EQ(readings[1].index, 2);
  EXPECT_EQ(readings[1].temperature_celsius, std::nullopt);
  EXPECT_EQ(readings[1].busy_percent, std::nullopt);
  EXPECT_EQ(readings[1].power_watts, std::nullopt);
  EXPECT_EQ(readings[1].memory_total_mib, 500);
  EXPECT_TRUE(DeviceReader({.nvml_library = "libno-such.so", .sys = sys_.path()}).read().empty());
}

TEST_F(FakeNvml, SaysWhyThereIsNone) {
  EXPECT_NE(list("").why_none.find("no GPU"), std::string::npos);
  ::setenv("FAKE_NVML_INIT", "9", 1);
  EXPECT_NE(list("").why_none.find("not running"), std::string::npos);
  ::setenv("FAKE_NVML_INIT", "18", 1);
  EXPECT_NE(list("").why_none.find("fake error 18"), std::string::npos);
  EXPECT_NE(
      list_gpus({.nvml_library = "/nowhere/libnvidia-ml.so.1"}).why_none.find("no NVIDIA driver"),
      std::string::npos);
  EXPECT_NE(list_gpus({.nvml_library = "libz.so.1"}).why_none.find("nvml"), std::string::npos);
}

}  // namespace
}  // namespace convoy::launch
