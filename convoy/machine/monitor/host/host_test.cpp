// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/host/host.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "files/temporary_folder.h"
#include "machines/machine.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

class Host : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void counters(int busy, int idle, int64_t sectors, int64_t bytes) const {
    write("proc/stat",
          "cpu  " + std::to_string(busy) + " 0 0 " + std::to_string(idle) + " 0 0 0 0\n");
    const std::string disk = std::to_string(sectors);
    // The counts of the disk include the traffic of its partition and of the loop device.
    write("proc/diskstats", "8 0 sda 1 0 " + disk + " 0 1 0 " + disk + " 0\n8 1 sda1 1 0 " + disk +
                                " 0 1 0 " + disk + " 0\n7 0 loop0 1 0 " + disk + " 0 1 0 0 0\n");
    write("proc/net/dev",
          "x\ny\n    lo: 99999999999 0 0 0 0 0 0 0 999999999 0\n  eth0:" + std::to_string(bytes) +
              " 1 0 0 0 0 0 0 " + std::to_string(2 * bytes) + " 0\n");
  }
  DeviceSources sources() const { return {.sys = root_ / "sys", .proc = root_ / "proc"}; }

  testing::TemporaryFolder root_;
};

TEST_F(Host, RatesAreOfTheTimeBetweenLooks) {
  write("sys/block/sda/size", "1");
  write("sys/block/loop0/size", "1");
  write("proc/meminfo",
        "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\nSwapTotal: 2048 kB\nSwapFree: "
        "1024 kB\n");
  write("proc/loadavg", "1.25 0 0 1/2 3\n");
  counters(100, 100, 0, 0);
  HostReader reader(sources());
  const HostValues first = reader.read();
  EXPECT_EQ(first[HostMetric::CpuBusy], std::nullopt);
  EXPECT_EQ(first[HostMetric::MemTotal], 4);
  EXPECT_EQ(first[HostMetric::MemUsed], 3);
  EXPECT_EQ(first[HostMetric::SwapUsed], 1);
  EXPECT_EQ(first[HostMetric::Load], 1.25);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  counters(130, 110, 2048, 1 << 20);
  const HostValues second = reader.read();
  EXPECT_EQ(second[HostMetric::CpuBusy], 75);
  const double disk = second[HostMetric::DiskRead].value_or(0);
  EXPECT_GT(disk, 1);  // 1 MiB in about 50 ms
  EXPECT_LT(disk, 21);
  EXPECT_EQ(second[HostMetric::DiskWrite], disk);
  EXPECT_EQ(second[HostMetric::NetReceived], disk);
  EXPECT_EQ(second[HostMetric::NetSent], 2 * disk);
}

TEST_F(Host, WhatIsNotThereIsBlank) {
  HostReader reader(sources());
  reader.read();
  const HostValues values = reader.read();
  for (const HostMetricFacts& facts : host_metric_table()) {
    const bool rate = facts.metric >= HostMetric::DiskRead && facts.metric <= HostMetric::NetSent;
    EXPECT_EQ(values[facts.metric].has_value(), rate) << facts.name;  // a rate without traffic is 0
  }
  const HostFacts facts = read_host_facts(sources());
  EXPECT_EQ(facts.cpus, 0);
  EXPECT_TRUE(facts.nodes.empty());
}

TEST(HostFacts, SocketsNodesAndMemory) {
  const testing::FakeMachine machine("h200x8");
  const HostFacts facts = read_host_facts(machine.sources());
  EXPECT_EQ(facts.cpu_model, "INTEL(R) XEON(R) PLATINUM 8558");
  EXPECT_EQ(facts.sockets, 2);
  EXPECT_EQ(facts.cores, 96);
  EXPECT_EQ(facts.cpus, 192);
  EXPECT_EQ(facts.memory_mib, 2 * 1024 * 1024);
  ASSERT_EQ(facts.nodes.size(), 2U);
  EXPECT_EQ(facts.nodes[1].cpus, "48-95,144-191");
}

}  // namespace
}  // namespace convoy::monitor
