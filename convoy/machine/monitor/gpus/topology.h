// SPDX-License-Identifier: Apache-2.0
//
// The links between the GPUs and network cards of this host, in the terms of `nvidia-smi topo -m`.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convoy/machine/monitor/gpus/devices.h"

namespace convoy::monitor {

struct TopologyNode {
  std::string label;  // "GPU0", "NIC0"
  std::string name;   // "NVIDIA H200", "mlx5_0"
  std::string pci_address;
  std::string cpus;  // CPUs near this device: "0-47,96-143"; empty = unknown
  int numa_node = -1;
  bool gpu = true;
};

// Peer access: pairs of GPUs that read each other's memory directly, not through the host's memory.
struct PeerAccess {
  int pairs = 0;
  int known = 0;                          // reported by the driver
  std::vector<std::string> refused = {};  // "GPU0-GPU1"
};

struct Topology {
  std::vector<TopologyNode> nodes;              // GPUs, then network cards
  std::vector<std::vector<std::string>> links;  // "X", "NV18", "PIX", ...; "?" = not known
  std::vector<std::string> notes;               // "GPU0 cannot read GPU1's memory directly"
  PeerAccess peers;
  std::string why_no_gpu;
};

// `uuids`: only these GPUs; nothing = all.
Topology read_topology(const DeviceSources& sources,
                       const std::optional<std::set<std::string>>& uuids = {});

std::string pci_link(const std::filesystem::path& sys, const TopologyNode& one,
                     const TopologyNode& other);

std::string topology_text(const Topology& topology);
std::string topology_json(const Topology& topology);

}  // namespace convoy::monitor
