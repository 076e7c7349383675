// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/placement.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "convoy/core/base/error.h"
#include "files/temporary_folder.h"

namespace convoy::launch {

using monitor::read_cpu_list;
using monitor::read_machine;
namespace {

namespace fs = std::filesystem;
using Cpus = std::vector<int>;

// A copy of /sys and /proc whose files the test writes.
class FakeMachine {
 public:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << '\n';
  }

  void add_node(int number, const std::string& cpus) const {
    write(fmt::format("sys/devices/system/node/node{}/cpulist", number), cpus);
  }

  struct CpuFiles {
    int id = 0;
    std::string siblings;
    int socket = 0;
    std::string cache = {};
  };
  void add_cpu(const CpuFiles& files) const {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/", files.id);
    write(folder + "topology/core_cpus_list", files.siblings);
    write(folder + "topology/physical_package_id", std::to_string(files.socket));
    if (files.cache.empty()) return;
    write(folder + "cache/index0/level", "1");
    write(folder + "cache/index0/type", "Data");
    write(folder + "cache/index0/shared_cpu_list", files.siblings);
    write(folder + "cache/index3/level", "3");
    write(folder + "cache/index3/type", "Unified");
    write(folder + "cache/index3/shared_cpu_list", files.cache);
    if (files.id != 27) return;
    write(folder + "cache/index4/level", "9");
    write(folder + "cache/index4/type", "Instruction");
    write(folder + "cache/index4/shared_cpu_list", "0-99");
  }

  Machine read(const std::optional<Cpus>& allowed) const {
    return read_machine({.sys = root_ / "sys", .proc = root_ / "proc", .allowed_cpus = allowed});
  }

 private:
  testing::TemporaryFolder root_;
};

// Two sockets, four nodes of four cores, two CPUs per core (cpu n and n + 16), two caches per node.
class BigMachine : public FakeMachine {
 public:
  BigMachine() {
    for (int node = 0; node < 4; ++node) {
      add_node(node,
               fmt::format("{}-{},{}-{}", 4 * node, 4 * node + 3, 4 * node + 16, 4 * node + 19));
      for (int core = 4 * node; core < 4 * node + 4; ++core) {
        const int half = core / 2 * 2;
        for (const int id : {core, core + 16})
          add_cpu({id, fmt::format("{},{}", core, core + 16), node / 2,
                   fmt::format("{}-{},{}-{}", half, half + 1, half + 16, half + 17)});
      }
    }
    add_node(4, "");  // a node with memory and without CPUs
    write("sys/devices/system/cpu/online", "0-31");
  }
};

// BigMachine has hundreds of files, so all tests share one.
Machine read_big(const std::optional<Cpus>& allowed) {
  static const BigMachine kShared;
  return kShared.read(allowed);
}

Cpus all_of_big() {
  Cpus cpus(32);
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

DeviceSelection gpus_on(const std::vector<int>& nodes) {
  DeviceSelection selection;
  for (const int node : nodes) {
    Device device;
    device.gpu = static_cast<int>(selection.devices.size());
    device.uuid = fmt::format("GPU-{}", device.gpu);
    device.numa_node = node;
    selection.devices.push_back(device);
    selection.tokens.push_back(std::to_string(device.gpu));
  }
  return selection;
}

std::string cores(const Placement& placement) {
  std::string text;
  for (const RankPlacement& each : placement.ranks)
    text += (text.empty() ? "" : " | ") + cpu_list_text(each.cpus);
  return text;
}

TEST(Machine, ReadsSocketsNodesCoresAndCaches) {
  const Machine machine = read_big(all_of_big());
  ASSERT_EQ(machine.cpus.size(), 32U);
  EXPECT_EQ(machine.num_cores(), 16);
  EXPECT_EQ(machine.usable_cpus, 32);
  EXPECT_EQ(machine.socket_of_node, (std::map<int, int>{{0, 0}, {1, 0}, {2, 1}, {3, 1}}));
  const Cpu& cpu = machine.cpus[27];
  EXPECT_EQ(cpu.core, 11);
  EXPECT_EQ(cpu.numa_node, 2);
  EXPECT_EQ(cpu.socket, 1);
  EXPECT_EQ(cpu.complex, 10);
  EXPECT_FALSE(machine.bound);
  EXPECT_TRUE(read_big(Cpus{0, 1}).bound);
}

TEST(Machine, BoundIsMeasuredAgainstTheCgroup) {
  const FakeMachine fake;
  fake.write("proc/self/cgroup", "0::/job");
  fake.write("sys/fs/cgroup/job/cpuset.cpus.effective", "0-3");
  EXPECT_FALSE(fake.read(Cpus{0, 1, 2, 3}).bound);
  EXPECT_TRUE(fake.read(Cpus{0, 1}).bound);
}

TEST(Machine, NothingToReadIsOneNode) {
  const Machine machine = FakeMachine().read(Cpus{0, 5});
  EXPECT_EQ(machine.cpus.size(), 2U);
  EXPECT_EQ(machine.num_cores(), 2);
  EXPECT_EQ(machine.socket_of_node.size(), 1U);
}

TEST(Machine, ThisOneCanBeRead) {
  const Machine machine = read_machine();
  EXPECT_GE(machine.cpus.size(), 1U);
  EXPECT_GE(machine.num_cores(), 1);
}

TEST(CpuLists, GoThereAndBack) {
  EXPECT_EQ(read_cpu_list("0-2,4,7-8"), (Cpus{0, 1, 2, 4, 7, 8}));
  EXPECT_EQ(read_cpu_list(""), Cpus{});
  EXPECT_EQ(read_cpu_list("x,3,5-"), (Cpus{3}));
  EXPECT_EQ(cpu_list_text({0, 1, 2, 4, 7, 8}), "0-2,4,7-8");
  EXPECT_EQ(cpu_list_text({}), "");
}

TEST(Placement, CpuRanksGetWholeCoresInTheOrderOfNodes) {
  const Machine machine = read_big(all_of_big());
  const Placement four =
      plan_placement({.host = "h", .num_ranks = 4, .first_rank = 8}, {}, machine);
  EXPECT_EQ(cores(four), "0-3,16-19 | 4-7,20-23 | 8-11,24-27 | 12-15,28-31");
  EXPECT_EQ(four.ranks[1].rank, 9);
  EXPECT_EQ(four.ranks[1].local_rank, 1);
  EXPECT_EQ(four.ranks[1].numa_node, 1);
  EXPECT_EQ(four.ranks[1].device, "cpu");
  EXPECT_FALSE(four.ranks[1].bind);
  EXPECT_EQ(cores(plan_placement({.num_ranks = 3}, {}, machine)),
            "0-5,16-21 | 6-10,22-26 | 11-15,27-31");
  const Placement twenty = plan_placement({.num_ranks = 20}, {}, machine);
  EXPECT_EQ(twenty.ranks[0].cpus, (Cpus{0, 16}));
  EXPECT_EQ(twenty.ranks[19].cpus, (Cpus{31}));
  const Placement forty = plan_placement({.num_ranks = 40}, {}, machine);
  EXPECT_EQ(forty.ranks[39].cpus.size(), 1U);
}

TEST(Placement, MaskWithHolesKeepsSiblingsTogether) {
  const Machine machine = read_big(Cpus{1, 3, 6, 17, 19, 22});
  EXPECT_EQ(cores(plan_placement({.num_ranks = 3}, {}, machine)), "1,17 | 3,19 | 6,22");
  EXPECT_EQ(cores(plan_placement({.num_ranks = 2}, {}, machine)), "1,3,17,19 | 6,22");
}

TEST(Placement, GpuRanksGetCoresOfTheirNode) {
  const Machine machine = read_big(all_of_big());
  const Placement placement = plan_placement({.num_ranks = 4}, gpus_on({3, 0, 3, 1}), machine);
  EXPECT_EQ(cores(placement), "12-13,28-29 | 0-3,16-19 | 14-15,30-31 | 4-7,20-23");
  EXPECT_EQ(placement.ranks[2].device, "gpu 2");
  EXPECT_EQ(placement.ranks[2].device_uuid, "GPU-2");
  EXPECT_EQ(placement.ranks[2].visible_device, "");
  EXPECT_EQ(
      plan_placement({.num_ranks = 4, .virtual_local_rank = true}, gpus_on({3, 0, 3, 1}), machine)
          .ranks[2]
          .visible_device,
      "2");
}

std::string bound(NumaBinding binding, const std::vector<int>& nodes, const Machine& machine) {
  const Placement placement = plan_placement(
      {.num_ranks = static_cast<int>(nodes.size()), .binding = binding}, gpus_on(nodes), machine);
  for (const RankPlacement& each : placement.ranks) EXPECT_TRUE(each.bind);
  return cores(placement);
}

TEST(NumaBinding, AsTorchDefinesIt) {
  const Machine machine = read_big(all_of_big());
  EXPECT_EQ(bound(NumaBinding::Node, {1, 1, 2}, machine), "4-7,20-23 | 4-7,20-23 | 8-11,24-27");
  EXPECT_EQ(bound(NumaBinding::Socket, {1, 3}, machine), "0-7,16-23 | 8-15,24-31");
  EXPECT_EQ(bound(NumaBinding::Exclusive, {1, 1, 1, 0}, machine),
            "4-5,20-21 | 6,22 | 7,23 | 0-3,16-19");
  EXPECT_EQ(bound(NumaBinding::CoreComplex, {1, 1, 1}, machine),
            "4-5,20-21 | 6-7,22-23 | 4-5,20-21");
  // The cache with more usable CPUs is taken first.
  const Machine holes = read_big(Cpus{4, 6, 7, 22, 23});
  EXPECT_EQ(bound(NumaBinding::CoreComplex, {1, 1}, holes), "6-7,22-23 | 4");
}

TEST(NumaBinding, WhatCanNotBeDoneIsNamed) {
  const Machine machine = read_big(Cpus{0, 1, 16});
  const auto plan = [&](NumaBinding binding, const std::vector<int>& nodes) {
    return plan_placement({.num_ranks = static_cast<int>(nodes.size()), .binding = binding},
                          gpus_on(nodes), machine);
  };
  EXPECT_THROW(plan(NumaBinding::Exclusive, {0, 0, 0}), ConfigError);
  EXPECT_THROW(plan(NumaBinding::Node, {2}), ConfigError);
  EXPECT_EQ(cores(plan(NumaBinding::None, {2})), "0-1,16");
  const Placement unknown = plan_placement({.num_ranks = 1, .binding = NumaBinding::Node},
                                           gpus_on({-1}), read_big(all_of_big()));
  EXPECT_FALSE(unknown.ranks[0].bind);
  EXPECT_NE(unknown.notes.at(0).find("local rank 0 is not bound"), std::string::npos);
  const Placement many =
      plan_placement({.num_ranks = 3, .binding = NumaBinding::Node}, gpus_on({-1, 0, -1}), machine);
  ASSERT_EQ(many.notes.size(), 1u) << fmt::format("{}", fmt::join(many.notes, "; "));
  EXPECT_NE(many.notes[0].find("local ranks 0, 2 are not bound"), std::string::npos)
      << many.notes[0];
  const auto notes_of_adopted = [&](int local_rank) {
    return plan_placement({.num_ranks = 1,
                           .first_rank = local_rank,
                           .adopted = AdoptedRank{local_rank, 3},
                           .binding = NumaBinding::Node},
                          gpus_on({-1, 0, -1}), machine)
        .notes.size();
  };
  EXPECT_EQ(notes_of_adopted(0), 1u);
  EXPECT_EQ(notes_of_adopted(1), 0u);
  EXPECT_THROW(numa_binding_of("nodes"), ConfigError);
  EXPECT_EQ(numa_binding_of("core-complex"), NumaBinding::CoreComplex);
}

TEST(NumaBinding, OneNodeNeedsNoWordOfTheSlot) {
  FakeMachine fake;
  fake.add_node(0, "0-3");
  EXPECT_EQ(bound(NumaBinding::Node, {-1}, fake.read(Cpus{0, 1, 2, 3})), "0-3");
}

TEST(NumaBinding, CpuRanksAreSpreadOverNodes) {
  const Machine machine = read_big(all_of_big());
  EXPECT_EQ(cores(plan_placement({.num_ranks = 2, .binding = NumaBinding::Node}, {}, machine)),
            "0-3,16-19 | 8-11,24-27");
  EXPECT_EQ(cores(plan_placement({.num_ranks = 8, .binding = NumaBinding::Exclusive}, {}, machine)),
            "0-1,16-17 | 2-3,18-19 | 4-5,20-21 | 6-7,22-23 | 8-9,24-25 | 10-11,26-27 | 12-13,28-29 "
            "| 14-15,30-31");
}

int threads(const PlacementRequest& request, const Machine& machine) {
  return plan_placement(request, {}, machine).ranks[0].threads;
}

TEST(Threads, OwnWorkersGetTheirCoresForeignOnesTorchrunsRule) {
  const Machine machine = read_big(all_of_big());
  EXPECT_EQ(threads({.num_ranks = 1, .threads = ThreadRule::OwnWorker}, machine), 16);
  EXPECT_EQ(threads({.num_ranks = 4, .threads = ThreadRule::OwnWorker}, machine), 4);
  EXPECT_EQ(threads({.num_ranks = 64, .threads = ThreadRule::OwnWorker}, machine), 1);
  EXPECT_EQ(
      threads({.num_ranks = 4, .threads = ThreadRule::OwnWorker, .omp_num_threads = "3"}, machine),
      0);
  EXPECT_EQ(threads({.num_ranks = 4,
                     .threads = ThreadRule::OwnWorker,
                     .omp_num_threads = "3",
                     .asked_threads = 5},
                    machine),
            5);
  EXPECT_EQ(threads({.num_ranks = 2}, machine), 1);
  EXPECT_EQ(threads({.num_ranks = 1}, machine), 0);
  EXPECT_EQ(threads({.num_ranks = 2, .omp_num_threads = "8"}, machine), 0);
  // Two ranks share one node of four cores.
  const Placement node = plan_placement(
      {.num_ranks = 2, .binding = NumaBinding::Node, .threads = ThreadRule::OwnWorker},
      gpus_on({1, 1}), machine);
  EXPECT_EQ(node.ranks[0].threads, 2);
}

TEST(Threads, QuotaCounts) {
  const FakeMachine fake;
  fake.write("proc/self/cgroup", "0::/");
  fake.write("sys/fs/cgroup/cpu.max", "600000 100000");
  const Machine machine = fake.read(all_of_big());
  EXPECT_EQ(machine.usable_cpus, 6);
  EXPECT_TRUE(machine.limited_by_quota);
  const Placement placement =
      plan_placement({.num_ranks = 2, .threads = ThreadRule::OwnWorker}, {}, machine);
  EXPECT_EQ(placement.ranks[0].threads, 3);
  EXPECT_NE(placement.notes.back().find("6 of 32"), std::string::npos);
}

TEST(Placement, AdoptedRankKeepsItsPlaceAmongTheOthers) {
  const PlacementRequest third = {.num_ranks = 1,
                                  .first_rank = 6,
                                  .adopted = AdoptedRank{2, 4},
                                  .threads = ThreadRule::OwnWorker};
  const Placement unbound = plan_placement(third, gpus_on({0, 1, 2, 3}), read_big(all_of_big()));
  ASSERT_EQ(unbound.ranks.size(), 1U);
  EXPECT_EQ(unbound.ranks[0].rank, 6);
  EXPECT_EQ(unbound.ranks[0].local_rank, 2);
  EXPECT_EQ(unbound.ranks[0].device, "gpu 2");
  EXPECT_EQ(unbound.ranks[0].threads, 4);
  EXPECT_EQ(cores(unbound), "8-11,24-27");
  // srun gave this task four cores and one GPU, which no other task uses.
  const Placement own =
      plan_placement(third, gpus_on({1}), read_big(Cpus{4, 5, 6, 7, 20, 21, 22, 23}));
  EXPECT_EQ(own.ranks[0].device, "gpu 0");
  EXPECT_EQ(own.ranks[0].threads, 4);
  EXPECT_EQ(cores(own), "4-7,20-23");
}

TEST(Placement, LauncherBoundToFewCpusIsTold) {
  const Machine one = read_big(Cpus{3});
  EXPECT_NE(plan_placement({.num_ranks = 4}, {}, one).notes.back().find("4 ranks on 1 CPU: "),
            std::string::npos);
  EXPECT_TRUE(plan_placement({.num_ranks = 1}, {}, one).notes.empty());
}

TEST(Placement, GpusWithoutARankAreAnnounced) {
  const Machine machine = read_big(all_of_big());
  const Placement one = plan_placement({.num_ranks = 1}, gpus_on({0, 0, 1, 1}), machine);
  ASSERT_EQ(one.notes.size(), 1U);
  EXPECT_EQ(one.notes[0],
            "4 GPUs are visible and 1 rank is planned: use --ranks gpu for a rank on each");
  EXPECT_NE(plan_placement({.num_ranks = 2}, gpus_on({0, 0, 1}), machine)
                .notes.at(0)
                .find("3 GPUs are visible and 2 ranks are planned"),
            std::string::npos);
  EXPECT_TRUE(plan_placement({.num_ranks = 4}, gpus_on({0, 0, 1, 1}), machine).notes.empty());
  EXPECT_TRUE(
      plan_placement({.num_ranks = 1, .adopted = AdoptedRank{0, 1}}, gpus_on({0, 1}), machine)
          .notes.empty())
      << "whoever started the rank decided";
}

// A process with several replicas has a GPU for each replica.
TEST(Placement, ARankThatTakesSeveralGpusHasThem) {
  const Machine machine = read_big(all_of_big());
  const DeviceSelection four = gpus_on({0, 0, 1, 1});
  const Placement all = plan_placement({.num_ranks = 1, .devices_of_rank = 0}, four, machine);
  EXPECT_EQ(all.ranks[0].device, "gpu 0, gpu 1, gpu 2, gpu 3");
  EXPECT_TRUE(all.notes.empty());
  const Placement two = plan_placement({.num_ranks = 1, .devices_of_rank = 2}, four, machine);
  EXPECT_EQ(two.ranks[0].device, "gpu 0, gpu 1");
  EXPECT_EQ(two.notes.at(0), "4 GPUs are visible and 2 replicas are planned (parallel.replicas)");
  EXPECT_EQ(plan_placement({.num_ranks = 2, .devices_of_rank = 0}, four, machine).ranks[1].device,
            "gpu 1");
  EXPECT_EQ(plan_placement({.num_ranks = 1, .devices_of_rank = 0}, {}, machine).ranks[0].device,
            "cpu");
}

TEST(Placement, TableAndJson) {
  Machine machine = read_big(all_of_big());
  DeviceSelection mig = gpus_on({0, 0, 0});
  mig.one_device_per_rank = true;
  mig.devices[1].mig = true;
  mig.devices[1].gpu_instance = 7;
  mig.devices[1].compute_instance = 0;
  const Placement placement = plan_placement(
      {.host = "n1", .num_ranks = 4, .threads = ThreadRule::OwnWorker}, mig, machine);
  EXPECT_EQ(placement.notes.at(0), "4 ranks share 3 devices");
  const std::string table = placement_table(placement.ranks);
  EXPECT_EQ(table.substr(0, table.find('\n')),
            "rank  local  host  device     cores  bound  numa  threads  uuid");
  EXPECT_NE(table.find("\n1     1      n1    mig 1/7/0  1,17   no     0     1        GPU-1\n"),
            std::string::npos)
      << table;
  const auto json = nlohmann::json::parse(placement_json(placement.ranks));
  EXPECT_EQ(json[1]["cpus"], "1,17");
  EXPECT_EQ(json[1]["visible_device"], "1");
  EXPECT_EQ(json[3]["device"], "gpu 0");
}

}  // namespace
}  // namespace convoy::launch
