// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/doctor/memory_check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "files/temporary_folder.h"
#include "machines/machine.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMib = 1 << 20;

class RunMemoryFiles : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((run_ / path).parent_path());
    std::ofstream(run_ / path, std::ios::app) << text;
  }

  testing::TemporaryFolder run_;
};

TEST_F(RunMemoryFiles, TheLastStepAndThePlacements) {
  write(
      "events.jsonl",
      R"({"event":"start","time":1})"
      "\n"
      R"({"event":"step","step":1,"rank_memory_bytes":[1,2]})"
      "\n"
      R"({"event":"step","step":2,"rank_memory_bytes":[30,40],"rank_held_bytes":[10,20],"rank_reserved_bytes":[50,60]})"
      "\n"
      R"({"event":"eval","step":2})"
      "\n"
      R"({"event":"step","step":3,"rank_mem)");
  write("logs/placement-h-0.json",
        R"([{"rank":0,"host":"h","device":"gpu 3","device_uuid":"GPU-3"},{"rank":7,"host":"h"}])");
  write("logs/placement-torn.json", "[{");
  const RunMemory memory = read_run_memory(run_.path());
  EXPECT_EQ(memory.step, 2);
  EXPECT_FALSE(memory.running);
  ASSERT_EQ(memory.ranks.size(), 2U);
  EXPECT_EQ(memory.ranks[0].device_uuid, "GPU-3");
  EXPECT_EQ(memory.ranks[1].host, "");
  EXPECT_EQ(memory.ranks[1].held_bytes, 20);
  EXPECT_EQ(memory.ranks[1].peak_bytes, 40);
  EXPECT_EQ(memory.ranks[1].reserved_bytes, 60);
}

TEST_F(RunMemoryFiles, WithoutAStepItSaysSo) {
  write("events.jsonl", R"({"event":"start","time":1})"
                        "\n");
  EXPECT_THROW(read_run_memory(run_.path()), DataError);
}

DeviceReading device(int index, int64_t total, int64_t used) {
  DeviceReading reading{.index = index, .uuid = "GPU-" + std::to_string(index)};
  reading.values[Metric::MemTotal] = static_cast<double>(total);
  reading.values[Metric::MemUsed] = static_cast<double>(used);
  reading.values[Metric::MemReserved] = 500;
  return reading;
}

MemoryInputs two_gpus(int64_t peak0, int64_t peak1, bool running) {
  MemoryInputs inputs{.devices = {device(0, 80'000, 50'700), device(1, 80'000, 50'700)},
                      .host = "h"};
  RunMemory run{.name = "r", .running = running, .step = 5};
  for (int rank = 0; rank < 2; ++rank)
    run.ranks.push_back({.rank = rank,
                         .host = "h",
                         .device_uuid = "GPU-" + std::to_string(rank),
                         .held_bytes = 30'000 * kMib,
                         .peak_bytes = (rank == 0 ? peak0 : peak1) * kMib,
                         .reserved_bytes = 50'000 * kMib});
  inputs.run = run;
  return inputs;
}

TEST(MemoryFits, ARunningRunsOwnMemoryIsNotOthers) {
  const MemoryReport report = check_memory(two_gpus(48'000, 48'000, true));
  ASSERT_EQ(report.pools.size(), 2U);  // one for each GPU, none for the host
  EXPECT_EQ(report.pools[0].others_mib, 700);
  EXPECT_EQ(report.pools[0].headroom_mib, 80'000 - 500 - 700 - 50'000);
  EXPECT_EQ(report.pools[0].ranks, std::vector<int>{0});
  EXPECT_EQ(report.fit, MemoryFit::Fits);
  EXPECT_EQ(report.imbalance, "equal: the ranks' peaks are alike");
}

TEST(MemoryFits, OfAnEndedRunTheDevicesMemoryIsOthers) {
  const MemoryReport report = check_memory(two_gpus(48'000, 48'000, false));
  EXPECT_EQ(report.pools[0].others_mib, 50'700);
  EXPECT_EQ(report.fit, MemoryFit::TooMuch);
  EXPECT_TRUE(
      report.words.starts_with("does not fit beside the memory of other programs: gpu0 has -"))
      << report.words;
}

TEST(MemoryFits, TheFullestRankDecides) {
  const MemoryReport report = check_memory(two_gpus(50'000, 76'000, true));
  EXPECT_EQ(report.fit, MemoryFit::Tight);
  EXPECT_TRUE(report.words.starts_with("tight: gpu1 has 2800 MiB of 80000 left at the peak"))
      << report.words;
  EXPECT_EQ(report.imbalance, "unequal: rank 1's peak is 1.5 times rank 0's");
  const auto told = nlohmann::json::parse(memory_report_json(report));
  EXPECT_EQ(told["verdict"], "tight");
  EXPECT_EQ(told["run"]["ranks"][1]["peak_bytes"], 76'000 * kMib);
}

TEST(MemoryFits, RanksOnCpusShareTheHost) {
  MemoryInputs inputs{
      .facts = {.memory_mib = 32'000, .available_mib = 20'000, .usable_mib = 16'000}, .host = "h"};
  RunMemory run{.name = "r", .running = true};
  for (int rank = 0; rank < 2; ++rank)
    run.ranks.push_back({.rank = rank,
                         .host = "h",
                         .device = "cpu",
                         .held_bytes = 3'000 * kMib,
                         .peak_bytes = 4'000 * kMib});
  inputs.run = run;
  const MemoryReport report = check_memory(inputs);
  ASSERT_EQ(report.pools.size(), 1U);
  EXPECT_EQ(report.pools[0].headroom_mib, 16'000 + 6'000 - 8'000);
  EXPECT_EQ(report.fit, MemoryFit::Fits);
  EXPECT_NE(memory_report_text(report).find("0     h     cpu     3000      4000      -"),
            std::string::npos)
      << memory_report_text(report);
}

TEST(MemoryFits, RanksElsewhereAreUnknownHere) {
  MemoryInputs inputs = two_gpus(1, 1, true);
  inputs.host = "other";
  EXPECT_EQ(check_memory(inputs).fit, MemoryFit::Unknown);
}

TEST(MemoryFits, WithoutARunWhatIsFree) {
  const testing::FakeMachine machine("mig");
  DeviceReader reader(machine.sources());
  const MemoryReport report =
      check_memory({.devices = reader.read(), .facts = read_host_facts(machine.sources())});
  EXPECT_EQ(report.fit, MemoryFit::Tight);  // one MIG instance is nearly full
  EXPECT_TRUE(report.words.starts_with("tight: gpu0/mig13 has 228 MiB of 9728 left;"))
      << report.words;
  EXPECT_EQ(report.imbalance, "");
}

}  // namespace
}  // namespace convoy::monitor
