// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/host/memory_traffic.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "convoy/core/base/first_line.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/machine/monitor/host/machine.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

constexpr double kTrafficMib = 1 << 20;
constexpr double kLineBytes = 64;  // bytes that one command of a controller moves

// Reads "0x04" or "255".
uint64_t number_of(const std::string& text) {
  const bool hexadecimal = text.starts_with("0x");
  uint64_t number = 0;
  std::from_chars(text.data() + (hexadecimal ? 2 : 0), text.data() + text.size(), number,
                  hexadecimal ? 16 : 10);
  return number;
}

// Encodes "event=0x04,umask=0x03", each field at the bits that the unit's format/FIELD gives
// ("config:8-15").
std::optional<uint64_t> config_of(const fs::path& unit, const std::string& event) {
  uint64_t config = 0;
  std::istringstream fields(event);
  for (std::string field; std::getline(fields, field, ',');) {
    const size_t equals = field.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string format = first_line(unit / "format" / field.substr(0, equals));
    if (!format.starts_with("config:")) return std::nullopt;
    config |= number_of(field.substr(equals + 1))
              << number_of(format.substr(std::strlen("config:")));
  }
  return config;
}

struct EventWords {
  const char* name;   // name of the file that describes the event
  const char* event;  // used when the kernel has no such file
  bool writes;
};

void add_counters(const fs::path& unit, const EventWords& words,
                  std::vector<TrafficCounter>& counters) {
  const fs::path file = unit / "events" / words.name;
  std::string event = first_line(file);
  double mib = kLineBytes / kTrafficMib;
  if (event.empty()) {
    event = words.event;
  } else {
    // The kernel gives a scale for each event that it names. Without a scale, the bytes of a count
    // are unknown.
    const auto scale = text_as<double>(trimmed(first_line(file.string() + ".scale"), " \t\r"));
    if (!scale || first_line(file.string() + ".unit") != "MiB") return;
    mib = *scale;
  }
  const std::optional<uint64_t> config = config_of(unit, event);
  if (event.empty() || !config) return;
  for (const int cpu : read_cpu_list(first_line(unit / "cpumask")))
    counters.push_back({.unit_type = static_cast<uint32_t>(number_of(first_line(unit / "type"))),
                        .event = *config,
                        .cpu = cpu,
                        .mib = mib,
                        .writes = words.writes});
}

int open_event(const TrafficCounter& counter) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = counter.unit_type;
  attributes.config = counter.event;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, -1, counter.cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

std::vector<TrafficCounter> traffic_counters(const fs::path& sys) {
  std::vector<TrafficCounter> counters;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(sys / "bus/event_source/devices", absent)) {
    const std::string name = entry.path().filename().string();
    // Free-running counters of client CPUs, which have no other counters.
    if (name.starts_with("uncore_imc_free_running")) {
      add_counters(entry.path(), {"data_read", "", false}, counters);
      add_counters(entry.path(), {"data_write", "", true}, counters);
    } else if (name.starts_with("uncore_imc")) {
      add_counters(entry.path(), {"cas_count_read", "", false}, counters);
      add_counters(entry.path(), {"cas_count_write", "", true}, counters);
    } else if (name.starts_with("amd_umc")) {
      // UMC_CAS_CMD of Zen 4 and newer (perf's events/arch/x86/amdzen4/memory-controller.json).
      add_counters(entry.path(), {"umc_cas_cmd.rd", "event=0x0a,rdwrmask=0x1", false}, counters);
      add_counters(entry.path(), {"umc_cas_cmd.wr", "event=0x0a,rdwrmask=0x2", true}, counters);
    }
  }
  return counters;
}

MemoryTrafficReader::MemoryTrafficReader(const fs::path& sys)
    : MemoryTrafficReader(traffic_counters(sys), open_event) {}

MemoryTrafficReader::MemoryTrafficReader(const std::vector<TrafficCounter>& counters,
                                         const Opener& open) {
  if (counters.empty()) reason_ = "the kernel shows no counters of the memory controllers";
  for (const TrafficCounter& counter : counters) {
    OpenCounter opened{Descriptor(open(counter)), counter.mib, counter.writes};
    if (!opened.descriptor.open()) {
      reason_ = errno == EACCES || errno == EPERM
                    ? "the kernel gives the counters of the memory controllers to root and "
                      "CAP_PERFMON alone (or sysctl kernel.perf_event_paranoid=0)"
                    : fmt::format("the counters of the memory controllers cannot be opened: {}",
                                  std::strerror(errno));
      counters_.clear();
      return;
    }
    counters_.push_back(std::move(opened));
  }
}

std::optional<MemoryTraffic> MemoryTrafficReader::read() {
  if (!reason_.empty()) return std::nullopt;
  MemoryTraffic traffic;
  for (const OpenCounter& counter : counters_) {
    uint64_t count = 0;
    if (::read(counter.descriptor.get(), &count, sizeof(count)) != sizeof(count)) {
      reason_ = "the counters of the memory controllers cannot be read any more";
      return std::nullopt;
    }
    (counter.writes ? traffic.written_mib : traffic.read_mib) +=
        static_cast<double>(count) * counter.mib;
  }
  return traffic;
}

}  // namespace convoy::monitor
