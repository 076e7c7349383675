// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/fault_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "files/temporary_folder.h"
#include "machines/machine.h"

namespace convoy::monitor {
namespace {

using nlohmann::json;

// Tests on the GPUs of the fake NVML library, which each test describes by gpus().
class Faults : public ::testing::Test {
 protected:
  void gpus(const json& described, const json& beside = json::object()) {
    json nvml = {{"gpus", described}, {"every_gpu", {{"name", "H100"}, {"memory_mib", 80000}}}};
    nvml.update(beside);
    std::ofstream(folder_ / "machine.json") << json{{"nvml", nvml}};
    ::setenv("FAKE_NVML_SCENARIO", (folder_ / "machine.json").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("FAKE_NVML_SCENARIO"); }

  std::vector<DeviceFault> found(FaultWatch& watch, size_t wanted, int limit_ms = 5'000) const {
    std::vector<DeviceFault> faults;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
    while (faults.size() < wanted && std::chrono::steady_clock::now() < end) {
      pollfd news{watch.descriptor(), POLLIN, 0};
      ::poll(&news, 1, 50);
      for (DeviceFault& fault : watch.take()) faults.push_back(std::move(fault));
    }
    return faults;
  }
  DeviceSources sources() const {
    return {.nvml_library = testing::FakeMachine::library(), .sys = folder_ / "sys"};
  }

  testing::TemporaryFolder folder_;
};

json gpu(const std::string& uuid, int slot) {
  return {{"uuid", uuid}, {"pci", "0000:0" + std::to_string(slot) + ":00.0"}};
}

TEST_F(Faults, AnXidIsToldWithItsMeaningAndWhatToDo) {
  json first = gpu("GPU-a", 1), second = gpu("GPU-b", 2);
  second["xids_at_ms"] = {{"100", 79}};
  gpus({first, second});
  FaultWatch watch(sources(), "node3", {"GPU-a", "GPU-b"});
  const std::vector<DeviceFault> faults = found(watch, 1);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].uuids, std::vector<std::string>{"GPU-b"});
  EXPECT_EQ(faults[0].xid, 79U);
  EXPECT_EQ(faults[0].severity, XidSeverity::Fatal);
  EXPECT_EQ(faults[0].sentence,
            "node3: gpu1 (H100, 0000:02:00.0): Xid 79, the GPU has fallen off the bus");
  EXPECT_NE(faults[0].to_do.find("PCIe slot"), std::string::npos);
}

TEST_F(Faults, OthersGpusAreNotWatched) {
  json first = gpu("GPU-a", 1), second = gpu("GPU-b", 2);
  second["xids_at_ms"] = {{"1", 79}};
  first["xids_at_ms"] = {{"100", 13}};
  gpus({first, second});
  FaultWatch watch(sources(), "h", {"GPU-a"});
  const std::vector<DeviceFault> faults = found(watch, 1);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].xid, 13U);
  EXPECT_EQ(faults[0].severity, XidSeverity::Application);
}

TEST_F(Faults, WhatIsNotFatalIsToldOnceAndWhatIsEachTime) {
  json one = gpu("GPU-a", 1);
  one["xids_at_ms"] = {{"1", 63}, {"2", 63}, {"3", 48}, {"4", 48}};
  gpus(json::array({one}));
  FaultWatch watch(sources(), "h", {"GPU-a"});
  std::vector<uint64_t> xids;
  for (const DeviceFault& fault : found(watch, 4, 1'000)) xids.push_back(*fault.xid);
  EXPECT_EQ(xids, (std::vector<uint64_t>{63, 48, 48}));
}

TEST_F(Faults, AGpuThatIsGoneWithoutAWordIsFoundAndFoundAgainInTheNextAttempt) {
  json one = gpu("GPU-a", 1);
  one["lost_at_ms"] = 50;
  gpus(json::array({one}));
  FaultWatch watch(sources(), "h", {"GPU-a"});
  const std::vector<DeviceFault> faults = found(watch, 1);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].xid, std::nullopt);
  EXPECT_NE(faults[0].sentence.find("is lost: GPU is lost"), std::string::npos);
  EXPECT_TRUE(found(watch, 1, 1'300).empty()) << "once";
  watch.begin_attempt();
  EXPECT_EQ(found(watch, 1).size(), 1U);
}

TEST_F(Faults, ADriverThatCountsFewerGpusHasLostOne) {
  gpus({gpu("GPU-a", 1), gpu("GPU-b", 2)}, {{"count_at_ms", {{"50", 1}}}});
  FaultWatch watch(sources(), "h", {"GPU-a", "GPU-b"});
  const std::vector<DeviceFault> faults = found(watch, 1);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].uuids, std::vector<std::string>{"GPU-b"});
  EXPECT_NE(faults[0].sentence.find("lists 1 GPUs, 2 before"), std::string::npos);
}

TEST_F(Faults, AnInstanceHasTheFaultsOfItsGpuThatAreItsOwn) {
  json one = gpu("GPU-a", 1);
  one["mig"] = {{{"uuid", "MIG-1"}, {"name", "m"}, {"gi", 1}, {"ci", 0}, {"memory_mib", 1}},
                {{"uuid", "MIG-5"}, {"name", "m"}, {"gi", 5}, {"ci", 0}, {"memory_mib", 1}}};
  one["xids_at_ms"] = {{"50", 95}};
  one["xid_instance"] = 5;
  gpus(json::array({one}));
  FaultWatch mine(sources(), "h", {"MIG-5"});
  ASSERT_EQ(found(mine, 1).size(), 1U);
  FaultWatch others(sources(), "h", {"MIG-1"});
  EXPECT_TRUE(found(others, 1, 400).empty());
}

TEST_F(Faults, WithoutADriverNothingIsFoundAndNothingIsHeldUp) {
  const auto begin = std::chrono::steady_clock::now();
  {
    FaultWatch watch({.nvml_library = "libno-such.so"}, "h", {"GPU-a"});
    EXPECT_TRUE(watch.take().empty());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Xid, SeveritiesFollowTheCatalog) {
  for (const uint64_t xid : {46, 48, 62, 64, 74, 79, 95, 109, 119, 120, 140, 158})
    EXPECT_EQ(xid_facts(xid).severity, XidSeverity::Fatal) << xid;
  for (const uint64_t xid : {8, 13, 31, 43, 45, 69, 94, 137})
    EXPECT_EQ(xid_facts(xid).severity, XidSeverity::Application) << xid;
  for (const uint64_t xid : {44, 63, 92, 121, 144, 149, 150, 154, 155, 156, 157, 999})
    EXPECT_EQ(xid_facts(xid).severity, XidSeverity::Warning) << xid;
  EXPECT_NE(xid_facts(999).meaning.find("not in Convoy's list"), std::string::npos);
}

}  // namespace
}  // namespace convoy::monitor
