// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/first_line.h"
#include "convoy/core/base/text_table.h"
#include "convoy/machine/monitor/gpus/amd.h"
#include "convoy/machine/monitor/gpus/nvml.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

// The CPUs near a device, from the list of the device, else from the list of its NUMA node.
std::string cpus_near(const fs::path& sys, const fs::path& device, int node) {
  const std::string own = first_line(device / "local_cpulist");
  if (!own.empty() || node < 0) return own;
  return first_line(sys / "devices/system/node" / fmt::format("node{}", node) / "cpulist");
}

// Bridges and device from the host bridge down: {"pci0000:10", "0000:10:01.0", ...}.
std::vector<std::string> pci_path(const fs::path& sys, const std::string& address) {
  std::error_code absent;
  const fs::path place = fs::canonical(sys / "bus/pci/devices" / address, absent);
  std::vector<std::string> parts;
  bool inside = false;
  for (const fs::path& part : place) {
    inside = inside || part.string().starts_with("pci");
    if (inside) parts.push_back(part.string());
  }
  return parts;
}

std::string word_of(const GpuLink& link) {
  if (link.nvlinks > 0) return fmt::format("NV{}", link.nvlinks);
  switch (link.kind) {
    case LinkKind::Internal:
    case LinkKind::OneSwitch:
      return "PIX";
    case LinkKind::SeveralSwitches:
      return "PXB";
    case LinkKind::HostBridge:
      return "PHB";
    case LinkKind::Node:
      return "NODE";
    case LinkKind::System:
      return "SYS";
    default:
      return "";
  }
}

// InfiniBand and RoCE cards; without any, network interfaces that are PCI devices.
void add_network_cards(const fs::path& sys, Topology& topology) {
  for (const char* const kind : {"class/infiniband", "class/net"}) {
    std::vector<fs::path> cards;
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(sys / kind, absent))
      if (fs::exists(entry.path() / "device", absent)) cards.push_back(entry.path());
    std::sort(cards.begin(), cards.end());
    int number = 0;
    for (const fs::path& card : cards) {
      const fs::path device = fs::canonical(card / "device", absent);
      const std::string address = device.filename().string();
      if (!fs::exists(sys / "bus/pci/devices" / address, absent)) continue;
      const int node = numa_node_of(sys, address);
      topology.nodes.push_back({.label = fmt::format("NIC{}", number++),
                                .name = card.filename().string(),
                                .pci_address = address,
                                .cpus = cpus_near(sys, device, node),
                                .numa_node = node,
                                .gpu = false});
    }
    if (number > 0) return;
  }
}

TopologyNode node_of(const fs::path& sys, const Device& gpu, size_t number) {
  const fs::path device = sys / "bus/pci/devices" / gpu.pci_address;
  const int node = numa_node_of(sys, gpu.pci_address);
  return {.label = fmt::format("GPU{}", number),
          .name = gpu.name,
          .pci_address = gpu.pci_address,
          .cpus = cpus_near(sys, device, node),
          .numa_node = node};
}

constexpr const char* kLegend =
    "\nLegend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., "
    "QPI/UPI)\n"
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
    "within a NUMA node\n"
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
    "Bridge)\n"
    "  PIX  = Connection traversing at most a single PCIe bridge\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n";

}  // namespace

std::string pci_link(const fs::path& sys, const TopologyNode& one, const TopologyNode& other) {
  const auto first = pci_path(sys, one.pci_address), second = pci_path(sys, other.pci_address);
  if (first.empty() || second.empty()) return "?";
  size_t shared = 0;
  while (shared < first.size() && shared < second.size() && first[shared] == second[shared])
    ++shared;
  if (shared == 0) return one.numa_node >= 0 && one.numa_node == other.numa_node ? "NODE" : "SYS";
  if (shared == 1) return "PHB";  // the host bridge alone
  // Two devices are behind one switch if, after the shared part, each path has at most the port of
  // the switch and the device.
  constexpr size_t kPortAndDevice = 2;
  return first.size() - shared <= kPortAndDevice && second.size() - shared <= kPortAndDevice
             ? "PIX"
             : "PXB";
}

Topology read_topology(const DeviceSources& sources,
                       const std::optional<std::set<std::string>>& uuids) {
  Topology topology;
  const Nvml nvml(sources.nvml_library);
  std::vector<Nvml::Handle> gpus;
  for (Nvml::Handle& handle : nvml.handles())
    if (handle.parent == nullptr && (!uuids || uuids->contains(handle.device.uuid)))
      gpus.push_back(std::move(handle));
  for (const Nvml::Handle& gpu : gpus)
    topology.nodes.push_back(node_of(sources.sys, gpu.device, static_cast<size_t>(gpu.device.gpu)));
  const auto links = nvml.links(gpus);
  if (gpus.empty())
    for (const Gpu& gpu : list_amd_gpus(sources))
      if (!uuids || uuids->contains(gpu.device.uuid))
        topology.nodes.push_back(
            node_of(sources.sys, gpu.device, static_cast<size_t>(gpu.device.gpu)));
  if (topology.nodes.empty()) {
    topology.why_no_gpu = nvml.problem();
    if (topology.why_no_gpu.empty())
      topology.why_no_gpu = "the NVIDIA driver shows no GPU to this process";
  }
  add_network_cards(sources.sys, topology);
  const size_t count = topology.nodes.size();
  topology.links.assign(count, std::vector<std::string>(count, "X"));
  for (size_t row = 0; row < count; ++row)
    for (size_t column = 0; column < count; ++column) {
      if (row == column) continue;
      std::string word;
      if (row < gpus.size() && column < gpus.size()) word = word_of(links[row][column]);
      if (word.empty()) word = pci_link(sources.sys, topology.nodes[row], topology.nodes[column]);
      topology.links[row][column] = word;
    }
  for (size_t row = 0; row < gpus.size(); ++row)
    for (size_t column = row + 1; column < gpus.size(); ++column) {
      ++topology.peers.pairs;
      if (!links[row][column].p2p_known) continue;
      ++topology.peers.known;
      if (links[row][column].p2p_ok) continue;
      const std::string &one = topology.nodes[row].label, &other = topology.nodes[column].label;
      topology.peers.refused.push_back(one + "-" + other);
      topology.notes.push_back(
          fmt::format("{} and {} cannot read each other's memory: their exchanges go through the "
                      "host's memory",
                      one, other));
    }
  return topology;
}

std::string topology_text(const Topology& topology) {
  std::string text;
  if (!topology.why_no_gpu.empty()) text += fmt::format("no GPU: {}\n", topology.why_no_gpu);
  if (topology.nodes.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const TopologyNode& node : topology.nodes) rows[0].push_back(node.label);
  rows[0].insert(rows[0].end(), {"CPU Affinity", "NUMA Affinity"});
  for (size_t at = 0; at < topology.nodes.size(); ++at) {
    const TopologyNode& node = topology.nodes[at];
    std::vector<std::string> row = {node.label};
    for (const std::string& word : topology.links[at]) row.push_back(word);
    row.push_back(node.gpu ? node.cpus : "");
    row.push_back(!node.gpu ? "" : node.numa_node < 0 ? "N/A" : std::to_string(node.numa_node));
    rows.push_back(std::move(row));
  }
  // An empty cell stays empty, as in nvidia-smi.
  text += text_table(rows, {.empty = ""});
  text += kLegend;
  const auto cards = std::count_if(topology.nodes.begin(), topology.nodes.end(),
                                   [](const TopologyNode& node) { return !node.gpu; });
  if (cards > 0) {
    text += "\nNIC Legend:\n\n";
    for (const TopologyNode& node : topology.nodes)
      if (!node.gpu) text += fmt::format("  {}: {}\n", node.label, node.name);
  }
  for (size_t at = 0; at < topology.notes.size(); ++at)
    text += fmt::format("{}{}\n", at == 0 ? "\n" : "", topology.notes[at]);
  return text;
}

std::string topology_json(const Topology& topology) {
  using nlohmann::ordered_json;
  ordered_json nodes = ordered_json::array();
  for (size_t at = 0; at < topology.nodes.size(); ++at) {
    const TopologyNode& node = topology.nodes[at];
    ordered_json links = ordered_json::object();
    for (size_t other = 0; other < topology.nodes.size(); ++other)
      if (other != at) links[topology.nodes[other].label] = topology.links[at][other];
    nodes.push_back(
        {{"label", node.label},
         {"kind", node.gpu ? "gpu" : "nic"},
         {"name", node.name},
         {"pci_address", node.pci_address},
         {"numa_node", node.numa_node < 0 ? ordered_json() : ordered_json(node.numa_node)},
         {"cpus", node.cpus.empty() ? ordered_json() : ordered_json(node.cpus)},
         {"links", links}});
  }
  const ordered_json whole = {
      {"schema", "convoy.topology.v1"},
      {"why_no_gpu",
       topology.why_no_gpu.empty() ? ordered_json() : ordered_json(topology.why_no_gpu)},
      {"nodes", nodes},
      {"notes", topology.notes}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace convoy::monitor
