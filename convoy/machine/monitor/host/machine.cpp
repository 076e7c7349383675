// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/host/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>

#include "convoy/core/base/cgroups.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/usable_cpus.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

std::string trimmed_text_of(const fs::path& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

int number_of(const fs::path& path, int otherwise) {
  int number = otherwise;
  std::ifstream file(path);
  return file >> number ? number : otherwise;
}

int first_of_list(const fs::path& path, int otherwise) {
  const std::vector<int> cpus = read_cpu_list(trimmed_text_of(path));
  return cpus.empty() ? otherwise : *std::min_element(cpus.begin(), cpus.end());
}

int core_of(const fs::path& folder, int id) {
  const int sibling = first_of_list(folder / "topology/core_cpus_list", -1);
  // The file's name before Linux 5.
  return sibling >= 0 ? sibling : first_of_list(folder / "topology/thread_siblings_list", id);
}

// Without cache files (virtual machines may hide them) the NUMA node is taken for the complex.
int complex_of(const fs::path& folder, int otherwise) {
  int best_level = -1;
  int complex = otherwise;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder / "cache", absent)) {
    if (!entry.path().filename().string().starts_with("index")) continue;
    const std::string type = trimmed_text_of(entry.path() / "type");
    const int level = number_of(entry.path() / "level", -1);
    if ((type != "Unified" && type != "Data") || level <= best_level) continue;
    best_level = level;
    complex = first_of_list(entry.path() / "shared_cpu_list", otherwise);
  }
  return complex;
}

// The CPUs of the process's cgroup, from the innermost folder that lists them; else all CPUs that
// are online.
std::vector<int> cpus_of_cgroup(const MachineSources& sources) {
  std::vector<int> cpus;
  visit_cgroups("cpuset", {.sys = sources.sys, .proc = sources.proc},
                [&cpus](const fs::path& folder, bool unified) {
                  const char* const file =
                      unified ? "cpuset.cpus.effective" : "cpuset.effective_cpus";
                  if (cpus.empty()) cpus = read_cpu_list(trimmed_text_of(folder / file));
                });
  if (!cpus.empty()) return cpus;
  return read_cpu_list(trimmed_text_of(sources.sys / "devices/system/cpu/online"));
}

std::map<int, std::vector<int>> cpus_of_nodes(const fs::path& sys) {
  std::map<int, std::vector<int>> nodes;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(sys / "devices/system/node", absent)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("node")) continue;
    const auto number = text_as<int>(std::string_view(name).substr(4));
    if (!number) continue;
    const std::vector<int> cpus = read_cpu_list(trimmed_text_of(entry.path() / "cpulist"));
    if (!cpus.empty()) nodes[*number] = cpus;  // nodes of memory alone have no CPUs
  }
  return nodes;
}

}  // namespace

std::vector<int> read_cpu_list(const std::string& text) {
  constexpr int kMostCpus = 1 << 16;
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int low = -1;
    const auto [after, error] = std::from_chars(at, end, low);
    int high = low;
    at = error == std::errc() ? after : at + 1;
    if (error != std::errc()) continue;
    if (at < end && *at == '-') {
      const auto [last, wrong] = std::from_chars(at + 1, end, high);
      if (wrong != std::errc()) continue;
      at = last;
    }
    for (int cpu = low; cpu >= 0 && cpu <= std::min(high, kMostCpus); ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (size_t first = 0; first < cpus.size();) {
    size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[first]);
    if (last > first) text += fmt::format("-{}", cpus[last]);
    first = last + 1;
  }
  return text;
}

int Machine::num_cores() const {
  std::set<int> cores;
  for (const Cpu& cpu : cpus) cores.insert(cpu.core);
  return static_cast<int>(cores.size());
}

Machine read_machine(const MachineSources& sources) {
  Machine machine;
  std::map<int, int> node_of_cpu;
  const auto socket_of = [&](int cpu) {
    const fs::path folder = sources.sys / "devices/system/cpu" / fmt::format("cpu{}", cpu);
    return std::max(0, number_of(folder / "topology/physical_package_id", 0));
  };
  for (const auto& [node, cpus] : cpus_of_nodes(sources.sys)) {
    machine.socket_of_node[node] = socket_of(cpus[0]);
    for (const int cpu : cpus) node_of_cpu[cpu] = node;
  }
  for (const int id : sources.allowed_cpus ? *sources.allowed_cpus : allowed_cpus()) {
    const fs::path folder = sources.sys / "devices/system/cpu" / fmt::format("cpu{}", id);
    Cpu cpu;
    cpu.id = id;
    cpu.core = core_of(folder, id);
    cpu.socket = socket_of(id);
    const auto node = node_of_cpu.find(id);
    cpu.numa_node = node == node_of_cpu.end() ? 0 : node->second;
    cpu.complex = complex_of(folder, -1 - cpu.numa_node);
    machine.cpus.push_back(cpu);
  }
  if (machine.socket_of_node.empty()) machine.socket_of_node[0] = 0;
  machine.bound = machine.cpus.size() < cpus_of_cgroup(sources).size();
  const int quota = cpu_quota(sources.sys, sources.proc);
  machine.usable_cpus = std::max(1, static_cast<int>(machine.cpus.size()));
  machine.limited_by_quota = quota > 0 && quota < machine.usable_cpus;
  if (machine.limited_by_quota) machine.usable_cpus = quota;
  return machine;
}

}  // namespace convoy::monitor
