// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/topology.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/machine/monitor/gpus/gpu_info.h"
#include "machines/machine.h"

namespace convoy::monitor {
namespace {

using testing::FakeMachine;
using Words = std::vector<std::string>;

TEST(Topology, GpusOnSwitchesAndTheirCards) {
  const FakeMachine machine("h200x8");
  const Topology topology = read_topology(machine.sources());
  ASSERT_EQ(topology.nodes.size(), 16U);
  EXPECT_EQ(topology.nodes[8].label, "NIC0");
  EXPECT_EQ(topology.nodes[8].name, "mlx5_0");
  EXPECT_EQ(topology.links[0][0], "X");
  EXPECT_EQ(topology.links[0][7], "NV18");
  // The network cards: two behind the GPU's PCIe switch, one behind another switch of the socket,
  // one on the other socket.
  EXPECT_EQ(topology.links[0][8], "PIX");
  EXPECT_EQ(topology.links[0][9], "PIX");
  EXPECT_EQ(topology.links[0][10], "NODE");
  EXPECT_EQ(topology.links[0][15], "SYS");
  EXPECT_EQ(topology.nodes[7].cpus, "48-95,144-191");
  EXPECT_EQ(topology.nodes[7].numa_node, 1);
  EXPECT_TRUE(topology.notes.empty());
}

TEST(Topology, DirectLinksAreCountedPerPair) {
  const FakeMachine machine("a100x4");
  const Topology topology = read_topology(machine.sources());
  EXPECT_EQ(topology.links[0], (Words{"X", "NV4", "NV4", "NV4", "NODE"}));
  EXPECT_EQ(topology.links[1][4], "PHB");
}

TEST(Topology, WithoutLinksThePciPathTells) {
  const FakeMachine machine("mig");
  const Topology topology = read_topology(machine.sources());
  EXPECT_EQ(topology.links[0], (Words{"X", "NODE"}));
}

TEST(Topology, AmdsGpusAreShownToo) {
  const FakeMachine machine("mi300x8");
  const Topology topology = read_topology(machine.sources());
  ASSERT_EQ(topology.nodes.size(), 8U);
  EXPECT_EQ(topology.links[0][3], "NODE");
  EXPECT_EQ(topology.links[0][4], "SYS");
}

TEST(Topology, OnlyThoseAskedFor) {
  const FakeMachine machine("a100x4");
  const Topology topology = read_topology(
      machine.sources(), std::set<std::string>{"GPU-a1000002-5555-6666-7777-888888888888"});
  ASSERT_EQ(topology.nodes.size(), 2U);
  EXPECT_EQ(topology.nodes[0].label, "GPU2");
  EXPECT_EQ(topology.nodes[1].label, "NIC0");
}

TEST(Topology, WithoutGpusItSaysWhy) {
  const FakeMachine machine("cpus");
  const Topology topology = read_topology(machine.sources());
  EXPECT_NE(topology_text(topology).find("not running"), std::string::npos);
  const auto told = nlohmann::json::parse(topology_json(topology));
  EXPECT_EQ(told["schema"], "convoy.topology.v1");
  EXPECT_TRUE(told["nodes"].empty());
}

TEST(GpuInfo, BeginsWithTheNumber) {
  const FakeMachine machine("mig");
  const GpuInfo info = read_gpu_info(machine.sources(), {});
  EXPECT_TRUE(gpu_info_text(info).starts_with("Number of GPUs: 2\n"));
  const auto told = nlohmann::json::parse(gpu_info_json(info));
  EXPECT_EQ(told["num_gpus"], 2);
  EXPECT_EQ(told["gpus"].size(), 5U);
  EXPECT_EQ(told["gpus"][1]["label"], "gpu0/mig1");
  EXPECT_FALSE(told["gpus"][1]["now"].contains("power_w"));
  EXPECT_EQ(told["cuda"], "12.4");
  EXPECT_EQ(told["host"]["cores"], 16);
}

TEST(GpuInfo, InstancesCountAsTheirGpu) {
  const FakeMachine machine("mig");
  const GpuInfo info = read_gpu_info(
      machine.sources(), std::set<std::string>{"MIG-00000000-aaaa-bbbb-cccc-dddddddddddd",
                                               "MIG-10000000-aaaa-bbbb-cccc-dddddddddddd"});
  EXPECT_EQ(info.devices.size(), 2U);
  EXPECT_EQ(info.num_gpus, 1);
}

TEST(GpuInfo, IsUsefulWithoutGpus) {
  const FakeMachine machine("cpus");
  const std::string text = gpu_info_text(read_gpu_info(machine.sources(), {}));
  EXPECT_TRUE(text.starts_with("Number of GPUs: 0\n")) << text;
  EXPECT_NE(text.find("CPUs: 8 on 8 cores in 2 sockets, Intel"), std::string::npos) << text;
  EXPECT_NE(text.find("NUMA node 1: CPUs 4-7, 16.0 GiB, 8.0 GiB free"), std::string::npos) << text;
}

}  // namespace
}  // namespace convoy::monitor
