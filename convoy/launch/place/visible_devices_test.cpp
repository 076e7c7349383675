// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/visible_devices.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

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

std::vector<Gpu> amd_gpus(int count) {
  std::vector<Gpu> gpus;
  for (int index = 0; index < count; ++index) {
    gpus.push_back(gpu(index, "GPU-8d0" + std::to_string(index), "MI300X"));
    gpus.back().device.vendor = monitor::Vendor::Amd;
  }
  return gpus;
}

TEST(AmdsDevices, HipCountsWhatRocrLeft) {
  const auto selected = [](const SelectionRequest& request) {
    return select_devices(amd_gpus(4), request);
  };
  EXPECT_EQ(selected({}).devices.size(), 4U);
  EXPECT_EQ(selected({}).variable, "HIP_VISIBLE_DEVICES");
  EXPECT_FALSE(selected({}).cuda_visible_devices);
  EXPECT_EQ(uuids(selected({.rocr_visible_devices = "2,GPU-8d01"})),
            (Texts{"GPU-8d02", "GPU-8d01"}));
  EXPECT_EQ(uuids(selected({.hip_visible_devices = "1", .rocr_visible_devices = "3,2"})),
            Texts{"GPU-8d02"});
  EXPECT_EQ(uuids(selected({.cuda_visible_devices = "3"})), Texts{"GPU-8d03"});
  EXPECT_EQ(uuids(selected({.cuda_visible_devices = "3", .hip_visible_devices = "0"})),
            Texts{"GPU-8d00"});
  EXPECT_EQ(uuids(selected({.hip_visible_devices = ""})), Texts{});
  EXPECT_EQ(
      selected({.hip_visible_devices = "0,9"}).notes.at(0),
      "HIP_VISIBLE_DEVICES names 9, which this host does not have, so the list ends before it");
}

TEST(AmdsDevices, AreChosenByNumberAmongTheVisible) {
  const DeviceSelection chosen =
      select_devices(amd_gpus(4), {.rocr_visible_devices = "3,2", .gpu_ids = "1"});
  EXPECT_EQ(uuids(chosen), Texts{"GPU-8d02"});
  EXPECT_EQ(chosen.cuda_visible_devices, "1");  // the number among the GPUs that ROCR shows
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

}  // namespace
}  // namespace convoy::launch
