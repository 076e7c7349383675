// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/doctor/doctor.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/machine/monitor/gpus/topology.h"
#include "files/temporary_folder.h"
#include "machines/machine.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;
using testing::FakeMachine;

const Finding* find(const std::vector<Finding>& findings, const std::string& check) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& each) { return each.check == check; });
  return found == findings.end() ? nullptr : &*found;
}

FindingLevel level_of(const std::vector<Finding>& findings, const std::string& check) {
  const Finding* const found = find(findings, check);
  EXPECT_NE(found, nullptr) << check << " was not looked at";
  return found == nullptr ? FindingLevel::Fine : found->level;
}

std::vector<Finding> devices_of(const std::string& name, int looks = 1) {
  const FakeMachine machine(name);
  DeviceReader reader(machine.sources());
  DeviceFacts facts{.problem = reader.problem(),
                    .mismatch = reader.is_mismatched(),
                    .versions = reader.versions(),
                    .broken = reader.broken(),
                    .devices = reader.devices()};
  for (int look = 0; look < looks; ++look) facts.readings = reader.read();
  facts.gaps = reader.gaps();
  facts.peers = read_topology(machine.sources()).peers;
  return judge_devices(facts);
}

TEST(DoctorOfDevices, AWholeMachineIsFine) {
  const auto findings = devices_of("h200x8", 2);
  for (const Finding& finding : findings)
    EXPECT_EQ(finding.level, FindingLevel::Fine) << finding.check << ": " << finding.text;
  EXPECT_EQ(exit_code_of(findings, true), 0);
}

TEST(DoctorOfDevices, ARowThatWaitsAndMissingGpm) {
  const auto findings = devices_of("a100x4");
  EXPECT_EQ(level_of(findings, "row-remap"), FindingLevel::Warning);
  EXPECT_NE(find(findings, "row-remap")->text.find("gpu1"), std::string::npos);
  EXPECT_EQ(level_of(findings, "gpm"), FindingLevel::Note);
  EXPECT_EQ(exit_code_of(findings, false), 0);
  EXPECT_EQ(exit_code_of(findings, true), 14);
}

TEST(DoctorOfDevices, ALostGpuIsInTheWay) {
  EXPECT_EQ(level_of(devices_of("lost", 3), "xid"), FindingLevel::Warning);
  const auto findings = devices_of("lost", 4);
  EXPECT_EQ(level_of(findings, "gpu-answers"), FindingLevel::Blocking);
  EXPECT_EQ(exit_code_of(findings, false), 14);
}

TEST(DoctorOfDevices, AGpuThatWasLostBeforeIsInTheWay) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "m.json")
      << R"({"nvml": {"gpus": [{"uuid": "GPU-1", "name": "A", "pci": "0000:01:00.0", "memory_mib": 10},
             {"uuid": "GPU-2", "name": "A", "pci": "0000:02:00.0", "open_error": 15},
             {"uuid": "GPU-3", "name": "A", "pci": "0000:03:00.0", "denied": true}]}})";
  ::setenv("FAKE_NVML_SCENARIO", (folder / "m.json").c_str(), 1);
  DeviceReader reader({.nvml_library = FakeMachine::library(), .sys = folder / "sys"});
  ::unsetenv("FAKE_NVML_SCENARIO");
  const auto findings = judge_devices({.broken = reader.broken(), .devices = reader.devices()});
  ASSERT_EQ(level_of(findings, "gpu-answers"), FindingLevel::Blocking);
  EXPECT_EQ(find(findings, "gpu-answers")->text, "gpu1 cannot be opened: GPU is lost");
}

TEST(DoctorOfDevices, ADriverOfAnotherVersionIsInTheWayNoDriverIsNot) {
  EXPECT_EQ(level_of(devices_of("mismatch"), "driver"), FindingLevel::Blocking);
  EXPECT_EQ(level_of(devices_of("cpus"), "driver"), FindingLevel::Note);
  EXPECT_EQ(level_of(devices_of("mi300x8"), "driver"), FindingLevel::Warning);
}

TEST(DoctorOfDevices, OldAndHotGpus) {
  DeviceFacts facts{.devices = {{.gpu = 0, .name = "Tesla P100", .compute_major = 6}}};
  DeviceReading reading{.index = 0};
  reading.values[Metric::Temperature] = 91;
  reading.values[Metric::EccUncorrected] = 2;
  reading.throttle_reasons = 0x44;
  facts.readings = {reading};
  const auto findings = judge_devices(facts);
  EXPECT_EQ(level_of(findings, "architecture"), FindingLevel::Warning);
  EXPECT_EQ(level_of(findings, "temperature"), FindingLevel::Warning);
  EXPECT_EQ(level_of(findings, "ecc"), FindingLevel::Warning);
  EXPECT_EQ(find(findings, "throttle")->text, "gpu0 is slowed now: hw_thermal");
}

TEST(DoctorOfDevices, PeerAccessByPairs) {
  const auto all = devices_of("a100x4");
  EXPECT_EQ(level_of(all, "peer-access"), FindingLevel::Fine);
  EXPECT_EQ(find(all, "peer-access")->text, "6 pairs of GPUs read each other's memory");
  DeviceFacts facts{.devices = {{.gpu = 0}, {.gpu = 1}}};
  EXPECT_EQ(find(judge_devices(facts), "peer-access"), nullptr) << "one GPU has no peer";
  facts.peers = {.pairs = 6};
  EXPECT_EQ(level_of(judge_devices(facts), "peer-access"), FindingLevel::Note);
  facts.peers = {.pairs = 6, .known = 6, .refused = {"GPU0-GPU1", "GPU0-GPU2"}};
  const auto findings = judge_devices(facts);
  EXPECT_EQ(level_of(findings, "peer-access"), FindingLevel::Warning);
  EXPECT_NE(find(findings, "peer-access")->text.find("2 of 6 pairs"), std::string::npos);
}

TEST(DoctorOfHosts, Limits) {
  const auto low = judge_limits({.files = {.soft = 1024, .hard = 1024},
                                 .locked_bytes = {.soft = 65'536},
                                 .processes = {.soft = 100},
                                 .has_fast_network = true});
  EXPECT_EQ(level_of(low, "nofile"), FindingLevel::Warning);
  EXPECT_EQ(level_of(low, "memlock"), FindingLevel::Warning);
  EXPECT_EQ(level_of(low, "nproc"), FindingLevel::Warning);
  EXPECT_EQ(level_of(judge_limits({.files = {.soft = 1024, .hard = 1 << 20}}), "nofile"),
            FindingLevel::Note);
  for (const Finding& finding : judge_limits({})) EXPECT_EQ(finding.level, FindingLevel::Fine);
  EXPECT_EQ(judge_kernel({.release = "6.1.0"})[0].level, FindingLevel::Fine);
  const Finding kernel =
      judge_kernel({.release = "4.18.0", .cannot_watch = "pidfd_open is refused (x)"})[0];
  EXPECT_EQ(kernel.level, FindingLevel::Blocking);
  EXPECT_EQ(kernel.fix.find("use Linux 5.3 or newer"), 0U) << kernel.fix;
}

TEST(DoctorOfHosts, SharedMemoryClockAndMemory) {
  EXPECT_EQ(judge_shared_memory({.bytes = 64 << 20, .free_bytes = 64 << 20})[0].level,
            FindingLevel::Warning);
  EXPECT_EQ(
      judge_shared_memory({.bytes = int64_t{8} << 30, .free_bytes = int64_t{8} << 30})[0].level,
      FindingLevel::Fine);
  EXPECT_EQ(judge_clock({.known = true})[0].level, FindingLevel::Note);
  HostValues values;
  values[HostMetric::Load] = 40;
  values[HostMetric::SwapUsed] = 5000;
  const auto findings =
      judge_host({.cpus = 8, .usable_cpus = 8, .memory_mib = 8000, .usable_mib = 200}, values);
  EXPECT_EQ(level_of(findings, "load"), FindingLevel::Warning);
  EXPECT_EQ(level_of(findings, "memory"), FindingLevel::Warning);
  EXPECT_EQ(level_of(findings, "swap"), FindingLevel::Warning);
}

TEST(DoctorOfHosts, DisksAreTriedAndLeftAsTheyWere) {
  const testing::TemporaryFolder folder;
  const DiskFacts facts = read_disk(folder.path());
  EXPECT_EQ(facts.problem, "");
  EXPECT_GT(facts.mib_per_s.value_or(0), 0);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_EQ(judge_disk(read_disk(folder / "none"))[0].level, FindingLevel::Blocking);
  EXPECT_EQ(exit_code_of(judge_disk(read_disk(folder / "none")), false), 12);
  const auto slow = judge_disk({.folder = "/x",
                                .file_system = "nfs",
                                .remote = true,
                                .mib_per_s = 5,
                                .free_bytes = 1,
                                .locks = false});
  EXPECT_EQ(level_of(slow, "disk"), FindingLevel::Warning);
  EXPECT_EQ(level_of(slow, "disk-space"), FindingLevel::Warning);
  EXPECT_EQ(level_of(slow, "locks"), FindingLevel::Warning);
}

TEST(DoctorOfHosts, PortsInUse) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  socklen_t bytes = sizeof(address);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes);
  const int port = ntohs(address.sin_port);
  EXPECT_FALSE(read_port(port).is_free);
  ::close(listener);
  EXPECT_TRUE(read_port(port).is_free);
}

class DoctorOfRuns : public ::testing::Test {
 protected:
  void event(const std::string& row) const {
    std::ofstream(run_ / "events.jsonl", std::ios::app) << row << '\n';
  }
  testing::TemporaryFolder run_;
};

TEST_F(DoctorOfRuns, ReadsStepsWaitsAndTheEnd) {
  event(R"({"event":"start","time":1,"resume_step":-1,"total_steps":100})");
  for (int step = 1; step <= 30; ++step)
    event(R"({"event":"step","time":2,"seconds":2.0,"rank_wait_seconds":[0.1,1.5],"step":)" +
          std::to_string(step) + "}");
  event(R"({"event":"warning","time":3,"message":"w"})");
  const RunFacts facts = read_run_facts(run_.path());
  EXPECT_FALSE(facts.held);
  EXPECT_EQ(facts.step, 30);
  EXPECT_EQ(facts.total_steps, 100);
  EXPECT_EQ(facts.step_seconds, 2);
  EXPECT_EQ(facts.window_seconds, 40);
  ASSERT_EQ(facts.rank_wait_seconds.size(), 2U);
  EXPECT_NEAR(facts.rank_wait_seconds[1], 30, 1e-9);
  EXPECT_EQ(facts.warnings, std::vector<std::string>{"w"});
  EXPECT_EQ(judge_run(facts)[0].level, FindingLevel::Blocking) << "its process was killed";
  EXPECT_NE(judge_run(facts)[0].text.find("failed at step 30 of 100"), std::string::npos);
  event(R"({"event":"end","time":4,"status":"finished"})");
  const Finding ended = judge_run(read_run_facts(run_.path()))[0];
  EXPECT_EQ(ended.level, FindingLevel::Note);
  EXPECT_NE(ended.text.find("finished at step 30"), std::string::npos);
}

TEST_F(DoctorOfRuns, AFailedRunIsInTheWayWithTheCodeThatItEndedWith) {
  EXPECT_EQ(judge_run(read_run_facts(run_.path()))[0].level, FindingLevel::Note)
      << "it has not begun";
  event(R"({"event":"start","time":1,"resume_step":-1,"total_steps":100})");
  event(R"({"event":"failure","time":2,"code":15,"message":"the loss is NaN"})");
  const std::vector<Finding> findings = judge_run(read_run_facts(run_.path()));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].level, FindingLevel::Blocking);
  EXPECT_NE(findings[0].text.find("failed at its start: the loss is NaN"), std::string::npos)
      << findings[0].text;
  EXPECT_EQ(exit_code_of(findings, false), 15);
  event(R"({"event":"start","time":3,"resume_step":-1,"total_steps":100})");
  event(R"({"event":"end","time":4,"status":"stopped"})");
  EXPECT_EQ(judge_run(read_run_facts(run_.path()))[0].level, FindingLevel::Note) << "it went on";
}

TEST(DoctorOfRunsJudges, SilenceSlowRanksAndMemory) {
  RunFacts facts{.name = "r",
                 .held = true,
                 .step = 7,
                 .seconds_since_event = 3,
                 .step_seconds = 2,
                 .rank_wait_seconds = {1, 30, 31},
                 .window_seconds = 40};
  auto findings = judge_run(facts);
  EXPECT_EQ(level_of(findings, "progress"), FindingLevel::Fine);
  EXPECT_EQ(level_of(findings, "slow-rank"), FindingLevel::Warning);
  EXPECT_TRUE(find(findings, "slow-rank")->text.starts_with("the others wait for rank 0"));
  facts.seconds_since_event = 600;
  facts.rank_wait_seconds = {4, 5, 4};
  MemoryReport memory;
  memory.fit = MemoryFit::Tight;
  memory.words = "tight: gpu0";
  facts.memory = memory;
  findings = judge_run(facts);
  EXPECT_EQ(level_of(findings, "progress"), FindingLevel::Warning);
  EXPECT_EQ(level_of(findings, "slow-rank"), FindingLevel::Fine);
  EXPECT_EQ(level_of(findings, "run-memory"), FindingLevel::Warning);
  EXPECT_EQ(exit_code_of(findings, true), 13);
}

TEST(Findings, EachHasAMarkAndAtMostOneFix) {
  const std::vector<Finding> findings = {{FindingLevel::Fine, "a", "one", "not shown"},
                                         {FindingLevel::Warning, "long-name", "two", "do it"}};
  EXPECT_EQ(findings_text(findings, false),
            "ok    a          one\nWARN  long-name  two\n                 -> do it\n\nnothing is "
            "in the way, 1 warning\n");
  const auto told = nlohmann::json::parse(findings_json(findings));
  EXPECT_EQ(told["schema"], "convoy.doctor.v1");
  EXPECT_EQ(told["findings"][1]["mark"], "warning");
}

}  // namespace
}  // namespace convoy::monitor
