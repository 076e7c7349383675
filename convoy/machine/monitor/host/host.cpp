// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/host/host.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "convoy/core/base/cpu_name.h"
#include "convoy/core/base/printable_text.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/core/base/usable_memory.h"
#include "convoy/machine/monitor/host/machine.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

constexpr double kMib = 1 << 20;
constexpr double kSectorBytes = 512;  // the unit of /proc/diskstats, whatever the disk has

// Returns the KiB of a line "Name:   12 kB" of /proc/meminfo. In a node's file the line begins with
// "Node 0 ".
std::optional<int64_t> memory_line(const std::string& text, const std::string& name) {
  const size_t at = text.find(name + ":");
  if (at == std::string::npos || (at > 0 && text[at - 1] != '\n' && text[at - 1] != ' ')) return {};
  int64_t number = 0;
  const size_t begin = text.find_first_of("0123456789", at + name.size());
  if (begin == std::string::npos) return {};
  std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_real(const DeviceSources& sources) { return sources.sys == "/sys"; }

}  // namespace

HostFacts read_host_facts(const DeviceSources& sources) {
  HostFacts facts;
  facts.cpu_model = printable_text(cpu_name(sources.proc));
  const std::vector<int> online = read_cpu_list(text_of(sources.sys / "devices/system/cpu/online"));
  facts.cpus = static_cast<int>(online.size());
  // Another host's files do not show what this process may use.
  const Machine machine =
      read_machine({.sys = sources.sys,
                    .proc = sources.proc,
                    .allowed_cpus = is_real(sources) ? allowed_cpus() : online});
  facts.usable_cpus = machine.usable_cpus;
  const Machine all =
      read_machine({.sys = sources.sys, .proc = sources.proc, .allowed_cpus = online});
  facts.cores = all.num_cores();
  std::set<int> sockets;
  for (const Cpu& cpu : all.cpus) sockets.insert(cpu.socket);
  facts.sockets = std::max(1, static_cast<int>(sockets.size()));
  const std::string memory = text_of(sources.proc / "meminfo");
  facts.memory_mib = memory_line(memory, "MemTotal").value_or(0) >> 10;
  facts.available_mib = memory_line(memory, "MemAvailable").value_or(0) >> 10;
  facts.swap_mib = memory_line(memory, "SwapTotal").value_or(0) >> 10;
  facts.usable_mib = usable_memory_bytes({.sys = sources.sys, .proc = sources.proc}) >> 20;
  for (int id = 0;; ++id) {
    const fs::path folder = sources.sys / "devices/system/node" / ("node" + std::to_string(id));
    std::error_code absent;
    if (!fs::exists(folder, absent)) break;
    NumaNode node{.id = id};
    node.cpus = cpu_list_text(read_cpu_list(text_of(folder / "cpulist")));
    const std::string text = text_of(folder / "meminfo");
    if (const auto kib = memory_line(text, "MemTotal")) node.memory_mib = *kib >> 10;
    if (const auto kib = memory_line(text, "MemFree")) node.free_mib = *kib >> 10;
    facts.nodes.push_back(node);
  }
  return facts;
}

const std::array<HostMetricFacts, kNumHostMetrics>& host_metric_table() {
  using M = HostMetric;
  static const std::array<HostMetricFacts, kNumHostMetrics> table = {{
      {M::CpuBusy, "host_cpu_pct", "convoy_host_cpu_percent", 1,
       "share of all CPUs' time in which they worked"},
      {M::Load, "host_load1", "convoy_host_load1", 2,
       "threads that ran or waited for a CPU, mean over a minute"},
      {M::MemUsed, "host_mem_used_mib", "convoy_host_memory_used_mib", 0,
       "memory that is not available for new programs"},
      {M::MemTotal, "host_mem_total_mib", "convoy_host_memory_mib", 0, "memory of the host"},
      {M::SwapUsed, "host_swap_used_mib", "convoy_host_swap_used_mib", 0, "swap in use"},
      {M::DiskRead, "host_disk_read_mib_s", "convoy_host_disk_read_mib_per_second", 2,
       "read from all disks"},
      {M::DiskWrite, "host_disk_write_mib_s", "convoy_host_disk_write_mib_per_second", 2,
       "written to all disks"},
      {M::NetReceived, "host_net_rx_mib_s", "convoy_host_network_received_mib_per_second", 2,
       "received by all network interfaces but the loopback; InfiniBand verbs pass it by"},
      {M::NetSent, "host_net_tx_mib_s", "convoy_host_network_sent_mib_per_second", 2,
       "sent by them"},
      {M::CpuEnergy, "host_cpu_energy_j", "convoy_host_cpu_energy_joules", 3,
       "energy of the CPU packages and their memory since the first reading (RAPL), a counter"},
      {M::MemRead, "host_mem_read_mib_s", "convoy_host_memory_read_mib_per_second", 1,
       "read from memory, by the counters of its controllers"},
      {M::MemWritten, "host_mem_write_mib_s", "convoy_host_memory_written_mib_per_second", 1,
       "written to it"},
      {M::JobCores, "job_cpu_cores", "convoy_job_cpu_cores", 2,
       "CPUs that the job's processes use on this host, mean since the previous reading"},
      {M::JobMem, "job_mem_mib", "convoy_job_memory_mib", 0,
       "memory that these processes hold, without the files that they map"},
  }};
  return table;
}

HostReader::HostReader(const DeviceSources& sources, WatchedJob job)
    : sources_(sources), energy_(sources.sys), memory_traffic_(sources.sys) {
  // Even when another host's files are read, the job is on this host.
  if (job == WatchedJob::OwnChildren) job_.emplace();
}

std::vector<HostGap> HostReader::gaps() const {
  std::vector<HostGap> all;
  if (!energy_.reason().empty()) all.push_back({HostMetric::CpuEnergy, energy_.reason()});
  if (!memory_traffic_.reason().empty())
    for (const HostMetric metric : {HostMetric::MemRead, HostMetric::MemWritten})
      all.push_back({metric, memory_traffic_.reason()});
  const std::string no_job = job_ ? job_->reason() : "no job is watched";
  if (!no_job.empty())
    for (const HostMetric metric : {HostMetric::JobCores, HostMetric::JobMem})
      all.push_back({metric, no_job});
  return all;
}

HostValues HostReader::read() {
  HostValues values;
  read_memory(values);
  values[HostMetric::CpuEnergy] = energy_.read();
  std::ifstream load(sources_.proc / "loadavg");
  std::string load1;
  load >> load1;
  if (const auto number = text_as<double>(load1)) values[HostMetric::Load] = *number;
  const auto now = std::chrono::steady_clock::now();
  const Counters counters = read_counters();
  if (before_) {
    const double seconds = std::chrono::duration<double>(now - time_).count();
    const auto rate = [&](HostMetric metric, double before, double after) {
      // A sum is smaller than before when a disk or an interface went away.
      if (after >= before && seconds > 0) values[metric] = (after - before) / kMib / seconds;
    };
    const double ticks = counters.cpu_all - before_->cpu_all;
    if (ticks > 0)
      values[HostMetric::CpuBusy] =
          std::clamp(100 * (counters.cpu_busy - before_->cpu_busy) / ticks, 0.0, 100.0);
    rate(HostMetric::DiskRead, before_->disk_read, counters.disk_read);
    rate(HostMetric::DiskWrite, before_->disk_written, counters.disk_written);
    rate(HostMetric::NetReceived, before_->received, counters.received);
    rate(HostMetric::NetSent, before_->sent, counters.sent);
    if (counters.memory && before_->memory && seconds > 0) {
      values[HostMetric::MemRead] =
          (counters.memory->read_mib - before_->memory->read_mib) / seconds;
      values[HostMetric::MemWritten] =
          (counters.memory->written_mib - before_->memory->written_mib) / seconds;
    }
    if (counters.job && before_->job && seconds > 0)
      values[HostMetric::JobCores] =
          (counters.job->cpu_seconds - before_->job->cpu_seconds) / seconds;
  }
  // Before its first process and after its last one a job has no memory that would count.
  if (counters.job && counters.job->memory_mib > 0)
    values[HostMetric::JobMem] = counters.job->memory_mib;
  before_ = counters;
  time_ = now;
  return values;
}

void HostReader::read_memory(HostValues& values) const {
  const std::string text = text_of(sources_.proc / "meminfo");
  const auto total = memory_line(text, "MemTotal");
  const auto available = memory_line(text, "MemAvailable");
  if (total) values[HostMetric::MemTotal] = static_cast<double>(*total >> 10);
  if (total && available)
    values[HostMetric::MemUsed] = static_cast<double>((*total - *available) >> 10);
  const auto swap = memory_line(text, "SwapTotal"), free = memory_line(text, "SwapFree");
  if (swap && free) values[HostMetric::SwapUsed] = static_cast<double>((*swap - *free) >> 10);
}

HostReader::Counters HostReader::read_counters() {
  if (!disks_known_) {
    disks_known_ = true;
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(sources_.sys / "block", absent)) {
      const std::string name = entry.path().filename().string();
      // Devices on top of other disks would count twice.
      const bool stacked = name.starts_with("loop") || name.starts_with("ram") ||
                           name.starts_with("dm-") || name.starts_with("md") ||
                           name.starts_with("zram");
      if (!stacked) disks_.push_back(name);
    }
  }
  Counters counters;
  std::ifstream stat(sources_.proc / "stat");
  std::string word;
  // user nice system idle iowait irq softirq steal; guest time is in user already.
  stat >> word;
  double ticks = 0;
  for (int column = 0; column < 8 && stat >> ticks; ++column) {
    counters.cpu_all += ticks;
    if (column != 3 && column != 4) counters.cpu_busy += ticks;
  }
  std::ifstream disks(sources_.proc / "diskstats");
  for (std::string line; std::getline(disks, line);) {
    std::istringstream fields(line);
    std::string major, minor, name;
    double reads = 0, merged = 0, sectors_read = 0, ms = 0, writes = 0, merged_writes = 0,
           sectors_written = 0;
    if (!(fields >> major >> minor >> name >> reads >> merged >> sectors_read >> ms >> writes >>
          merged_writes >> sectors_written))
      continue;
    if (std::find(disks_.begin(), disks_.end(), name) == disks_.end()) continue;
    counters.disk_read += sectors_read * kSectorBytes;
    counters.disk_written += sectors_written * kSectorBytes;
  }
  std::ifstream network(sources_.proc / "net/dev");
  for (std::string line; std::getline(network, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name =
        line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '));
    if (name == "lo") continue;
    std::istringstream fields(line.substr(colon + 1));
    double received = 0, other = 0, sent = 0;
    fields >> received;
    for (int skipped = 0; skipped < 7; ++skipped) fields >> other;
    if (!(fields >> sent)) continue;
    counters.received += received;
    counters.sent += sent;
  }
  counters.memory = memory_traffic_.read();
  if (job_) counters.job = job_->read();
  return counters;
}

}  // namespace convoy::monitor
