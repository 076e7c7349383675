// SPDX-License-Identifier: Apache-2.0
//
// Tests the host's counters for a job's report: processes, the CPU's energy, the memory's traffic.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "convoy/machine/monitor/host/cpu_energy.h"
#include "convoy/machine/monitor/host/job_processes.h"
#include "convoy/machine/monitor/host/memory_traffic.h"
#include "files/temporary_folder.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class HostCounters : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // Writes the files of a process that used `ticks` of CPU time and holds `pages`, and whose ended
  // children used `children` ticks.
  void process(int number, const std::string& children_list, int ticks, int children, int pages) {
    const std::string folder = "proc/" + std::to_string(number);
    write(folder + "/stat", std::to_string(number) + " (a) b) S 1 1 1 0 0 0 0 0 0 0 " +
                                std::to_string(ticks) + " 0 " + std::to_string(children) +
                                " 0 20 0 1 0\n");
    write(folder + "/statm", "1000 " + std::to_string(pages + 5) + " 5 1 0 1 0\n");
    write(folder + "/task/" + std::to_string(number) + "/children", children_list);
  }

  testing::TemporaryFolder root_;
};

TEST_F(HostCounters, AJobIsWhatItsLauncherStartedAndWhatThatStarted) {
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double page_mib = static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
  process(1, "2 3 ", 5000, 100, 9999);  // the launcher's own time is not the job's
  process(2, "4 ", 300, 10, 256);
  process(3, "", 200, 0, 256);
  process(4, "", 50, 0, 512);
  JobProcesses job(root_ / "proc", 1);
  const auto use = job.read();
  ASSERT_TRUE(use);
  EXPECT_DOUBLE_EQ(use->cpu_seconds, (100 + 310 + 200 + 50) / ticks);
  EXPECT_DOUBLE_EQ(use->memory_mib, 1024 * page_mib);
}

TEST_F(HostCounters, TheTimeOfAJobNeverGoesBack) {
  process(1, "2 ", 0, 0, 1);
  process(2, "", 300, 0, 1);
  JobProcesses job(root_ / "proc", 1);
  const double before = job.read()->cpu_seconds;
  fs::remove_all(root_ / "proc/2");  // process 2 has ended, its parent has not reaped it yet
  EXPECT_EQ(job.read()->cpu_seconds, before);
  process(1, "", 0, 310, 1);
  EXPECT_GT(job.read()->cpu_seconds, before);
}

TEST_F(HostCounters, WithoutListsOfChildrenNothingIsKnown) {
  process(1, "", 0, 0, 1);
  fs::remove_all(root_ / "proc/1/task");
  JobProcesses job(root_ / "proc", 1);
  EXPECT_FALSE(job.read());
  EXPECT_NE(job.reason().find("CONFIG_PROC_CHILDREN"), std::string::npos);
}

TEST(Job, ARealChildIsSeenAndCountedWhenItHasEnded) {
  JobProcesses job;
  const auto before = job.read();
  if (!before) GTEST_SKIP() << job.reason();
  const pid_t child = ::fork();
  if (child == 0) {
    volatile double sum = 0;
    const auto end = std::chrono::steady_clock::now() + 300ms;
    while (std::chrono::steady_clock::now() < end) sum = sum + std::sqrt(sum + 1);
    ::_exit(0);
  }
  std::this_thread::sleep_for(100ms);
  EXPECT_GT(job.read()->memory_mib, 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_GE(job.read()->cpu_seconds - before->cpu_seconds, 0.02);
}

TEST_F(HostCounters, EnergyIsThatOfPackagesAndMemory) {
  const std::string zones = "sys/class/powercap/";
  const auto zone = [&](const std::string& name, const std::string& what, int64_t energy_uj) {
    write(zones + name + "/name", what + "\n");
    write(zones + name + "/max_energy_range_uj", "65000000000\n");
    write(zones + name + "/energy_uj", std::to_string(energy_uj) + "\n");
  };
  zone("intel-rapl:0", "package-0", 10'000'000);
  zone("intel-rapl:0:0", "core", 9'000'000);  // included in package-0
  zone("intel-rapl:0:1", "dram", 1'000'000);
  zone("intel-rapl:1", "package-1", 64'999'000'000);
  zone("intel-rapl-mmio:0", "package-0", 10'000'000);  // package-0 a second time
  CpuEnergy energy(root_ / "sys");
  const CpuEnergy::Clock::time_point begin{};
  EXPECT_EQ(energy.read(begin), 0.0);
  zone("intel-rapl:0", "package-0", 12'000'000);
  zone("intel-rapl:0:0", "core", 11'000'000);
  zone("intel-rapl:0:1", "dram", 1'500'000);
  zone("intel-rapl:1", "package-1", 1'000'000);  // the counter wrapped
  EXPECT_DOUBLE_EQ(energy.read(begin + 5s).value_or(-1), 2 + 0.5 + 2);
  EXPECT_EQ(energy.reason(), "");
  // At 1000 W the counter may have wrapped twice since the last reading.
  EXPECT_EQ(energy.read(begin + 200s), std::nullopt);
  EXPECT_NE(energy.reason().find("may have wrapped twice"), std::string::npos);
}

TEST_F(HostCounters, EnergyThatIsNotThereHasAReason) {
  CpuEnergy none(root_ / "sys");
  EXPECT_EQ(none.read(), std::nullopt);
  EXPECT_NE(none.reason().find("shows no energy counter"), std::string::npos);
  write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "65000000000\n");
  CpuEnergy hidden(root_ / "sys");  // no energy_uj that this user may read
  EXPECT_EQ(hidden.read(), std::nullopt);
  EXPECT_NE(hidden.reason().find("root alone"), std::string::npos);
}

class Traffic : public HostCounters {
 protected:
  void intel(const std::string& unit) {
    const std::string folder = "sys/bus/event_source/devices/" + unit + "/";
    write(folder + "type", "14\n");
    write(folder + "cpumask", "0,32\n");
    write(folder + "format/event", "config:0-7\n");
    write(folder + "format/umask", "config:8-15\n");
    write(folder + "events/cas_count_read", "event=0x04,umask=0x03\n");
    write(folder + "events/cas_count_read.scale", "6.103515625e-5\n");
    write(folder + "events/cas_count_read.unit", "MiB\n");
    write(folder + "events/cas_count_write", "event=0x04,umask=0x0c\n");
    write(folder + "events/cas_count_write.scale", "6.103515625e-5\n");
    write(folder + "events/cas_count_write.unit", "MiB\n");
  }
};

TEST_F(Traffic, CountersOfIntelsControllersAreThoseTheKernelDescribes) {
  intel("uncore_imc_0");
  write("sys/bus/event_source/devices/uncore_cha_0/type", "9\n");
  const std::vector<TrafficCounter> counters = traffic_counters(root_ / "sys");
  ASSERT_EQ(counters.size(), 4U);  // reads and writes of two sockets
  EXPECT_EQ(counters[0], (TrafficCounter{14, 0x0304, 0, 6.103515625e-5, false}));
  EXPECT_EQ(counters[3], (TrafficCounter{14, 0x0c04, 32, 6.103515625e-5, true}));
}

TEST_F(Traffic, CountersOfAmdsControllersCountLines) {
  const std::string folder = "sys/bus/event_source/devices/amd_umc_3/";
  write(folder + "type", "20\n");
  write(folder + "cpumask", "1\n");
  write(folder + "format/event", "config:0-7\n");
  write(folder + "format/rdwrmask", "config:8-9\n");
  const std::vector<TrafficCounter> counters = traffic_counters(root_ / "sys");
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters[0], (TrafficCounter{20, 0x10a, 1, 64.0 / (1 << 20), false}));
  EXPECT_EQ(counters[1].event, 0x20aU);
}

TEST_F(Traffic, IsTheSumOfTheCounters) {
  intel("uncore_imc_0");
  const std::string counts = root_ / "counts";
  const uint64_t count = 1 << 20;
  std::ofstream(counts, std::ios::binary).write(reinterpret_cast<const char*>(&count), 8);
  MemoryTrafficReader reader(traffic_counters(root_ / "sys"), [&](const TrafficCounter&) {
    return ::open(counts.c_str(), O_RDONLY | O_CLOEXEC);
  });
  const auto traffic = reader.read();
  ASSERT_TRUE(traffic) << reader.reason();
  EXPECT_DOUBLE_EQ(traffic->read_mib, 2 * 64);
  EXPECT_DOUBLE_EQ(traffic->written_mib, 2 * 64);
}

TEST_F(Traffic, ThatMayNotBeReadHasAReason) {
  EXPECT_NE(MemoryTrafficReader(root_ / "sys").reason().find("shows no counters"),
            std::string::npos);
  intel("uncore_imc_0");
  MemoryTrafficReader refused(traffic_counters(root_ / "sys"), [](const TrafficCounter&) {
    errno = EACCES;
    return -1;
  });
  EXPECT_EQ(refused.read(), std::nullopt);
  EXPECT_NE(refused.reason().find("CAP_PERFMON"), std::string::npos);
}

}  // namespace
}  // namespace convoy::monitor
