// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/cpu_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

using CpuSet = std::vector<int>;
using Groups = std::vector<CpuSet>;  // the CPUs of each core or core complex

// Groups the CPUs by key. The groups are in the order of their keys.
template <class Key>
Groups grouped(const std::vector<Cpu>& cpus, Key key) {
  std::map<decltype(key(cpus[0])), CpuSet> by_key;
  for (const Cpu& cpu : cpus) by_key[key(cpu)].push_back(cpu.id);
  Groups groups;
  for (auto& [unused, group] : by_key) groups.push_back(std::move(group));
  return groups;
}

Groups cores_of(const std::vector<Cpu>& cpus) {
  return grouped(cpus,
                 [](const Cpu& cpu) { return std::tuple(cpu.socket, cpu.numa_node, cpu.core); });
}

// Returns part `index` of `count` parts. When the groups do not divide evenly, the first parts have
// one group more.
CpuSet slice(const Groups& groups, size_t index, size_t count) {
  const size_t each = groups.size() / count;
  const size_t extra = groups.size() % count;
  const size_t begin = index * each + std::min(index, extra);
  const size_t end = begin + each + (index < extra ? 1 : 0);
  CpuSet part;
  for (size_t at = begin; at < end; ++at)
    part.insert(part.end(), groups[at].begin(), groups[at].end());
  std::sort(part.begin(), part.end());
  return part;
}

// Whole cores if every rank gets one, else single CPUs, else CPUs that several ranks share.
CpuSet fair_share(const std::vector<Cpu>& cpus, size_t index, size_t count) {
  const Groups cores = cores_of(cpus);
  if (cores.size() >= count) return slice(cores, index, count);
  const Groups singles =
      grouped(cpus, [](const Cpu& cpu) { return std::tuple(cpu.numa_node, cpu.core, cpu.id); });
  if (singles.size() >= count) return slice(singles, index, count);
  return singles[index % singles.size()];
}

class Sharing {
 public:
  Sharing(const Machine& machine, NumaBinding binding, const std::vector<int>& nodes)
      : machine_(machine), binding_(binding), nodes_(nodes) {}

  CpuSet of_rank(size_t rank) const {
    const int node = nodes_[rank];
    if (node == kUnknownNode) {
      if (binding_ != NumaBinding::None) return all();
      return fair_share(machine_.cpus, rank, nodes_.size());
    }
    const std::vector<Cpu> near = cpus_near(node);
    const auto peers = static_cast<size_t>(std::count(nodes_.begin(), nodes_.end(), node));
    const auto before = static_cast<size_t>(
        std::count(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(rank), node));
    // Without a binding the plan must not fail: ranks of a node without usable CPUs run on other
    // nodes.
    if (near.empty() && binding_ == NumaBinding::None)
      return fair_share(machine_.cpus, rank, nodes_.size());
    if (near.empty())
      throw ConfigError(
          fmt::format(
              "--numa-binding: this process may use no CPU of NUMA node {}, where the device of "
              "local rank {} is",
              node, rank),
          {.hint = "start it with a wider CPU mask, or leave --numa-binding out"});
    switch (binding_) {
      case NumaBinding::None:
        return fair_share(near, before, peers);
      case NumaBinding::Node:
      case NumaBinding::Socket:
        return ids(near);
      case NumaBinding::Exclusive:
        return exclusive(near, node, before, peers);
      case NumaBinding::CoreComplex:
        return complex(near, before);
    }
    throw StateError("a NUMA binding without a rule");
  }

 private:
  static CpuSet ids(const std::vector<Cpu>& cpus) {
    CpuSet found;
    for (const Cpu& cpu : cpus) found.push_back(cpu.id);
    return found;
  }

  CpuSet all() const { return ids(machine_.cpus); }

  std::vector<Cpu> cpus_near(int node) const {
    const auto socket = machine_.socket_of_node.find(node);
    const bool by_socket =
        binding_ == NumaBinding::Socket && socket != machine_.socket_of_node.end();
    std::vector<Cpu> near;
    for (const Cpu& cpu : machine_.cpus) {
      const auto other = machine_.socket_of_node.find(cpu.numa_node);
      const bool same_socket =
          by_socket && other != machine_.socket_of_node.end() && other->second == socket->second;
      if (cpu.numa_node == node || same_socket) near.push_back(cpu);
    }
    return near;
  }

  static CpuSet exclusive(const std::vector<Cpu>& near, int node, size_t before, size_t peers) {
    const Groups cores = cores_of(near);
    if (cores.size() < peers)
      throw ConfigError(
          fmt::format("--numa-binding exclusive: NUMA node {} has {} usable cores for {} ranks",
                      node, cores.size(), peers),
          {.hint = "start fewer ranks, or take --numa-binding node"});
    return slice(cores, before, peers);
  }

  // Complexes with more CPUs come first, as in torch: an affinity mask may have left few in some.
  static CpuSet complex(const std::vector<Cpu>& near, size_t before) {
    Groups complexes = grouped(near, [](const Cpu& cpu) { return cpu.complex; });
    std::stable_sort(complexes.begin(), complexes.end(),
                     [](const CpuSet& one, const CpuSet& two) { return one.size() > two.size(); });
    return complexes[before % complexes.size()];
  }

  const Machine& machine_;
  NumaBinding binding_;
  const std::vector<int>& nodes_;
};

}  // namespace

std::vector<CpuSet> share_cpus(const Machine& machine, NumaBinding binding,
                               const std::vector<int>& nodes) {
  std::vector<CpuSet> shares;
  const Sharing sharing(machine, binding, nodes);
  for (size_t rank = 0; rank < nodes.size(); ++rank) shares.push_back(sharing.of_rank(rank));
  return shares;
}

std::vector<int> spread_over_nodes(const Machine& machine, int num_ranks) {
  std::vector<int> with_cpus;
  for (const auto& [node, socket] : machine.socket_of_node) {
    const bool usable = std::any_of(machine.cpus.begin(), machine.cpus.end(),
                                    [&](const Cpu& cpu) { return cpu.numa_node == node; });
    if (usable) with_cpus.push_back(node);
  }
  std::vector<int> nodes;
  const auto count = static_cast<int64_t>(with_cpus.size());
  for (int64_t rank = 0; rank < num_ranks; ++rank)
    nodes.push_back(count == 0 ? kUnknownNode
                               : with_cpus[static_cast<size_t>(rank * count / num_ranks)]);
  return nodes;
}

int common_node(const Machine& machine, const CpuSet& cpus) {
  int node = kUnknownNode;
  for (const Cpu& cpu : machine.cpus) {
    if (!std::binary_search(cpus.begin(), cpus.end(), cpu.id)) continue;
    if (node != kUnknownNode && node != cpu.numa_node) return kUnknownNode;
    node = cpu.numa_node;
  }
  return node;
}

}  // namespace convoy::launch
