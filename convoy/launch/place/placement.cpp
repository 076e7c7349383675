// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/launch/place/cpu_shares.h"

namespace convoy::launch {
namespace {

class Planner {
 public:
  Planner(const PlacementRequest& request, const DeviceSelection& devices, const Machine& machine)
      : request_(request), devices_(devices), machine_(machine) {
    ranks_on_host_ = request.adopted ? request.adopted->ranks_on_host : request.num_ranks;
    CONVOY_INVARIANT(ranks_on_host_ >= 1, "{} ranks on this host", ranks_on_host_);
  }

  Placement plan() {
    const std::vector<int> nodes = device_nodes();
    const std::vector<std::vector<int>> shares = share_cpus(machine_, request_.binding, nodes);
    const int first = request_.adopted ? request_.adopted->local_rank : 0;
    const int count = request_.adopted ? 1 : request_.num_ranks;
    for (int index = 0; index < count; ++index)
      placement_.ranks.push_back(place(first + index, request_.first_rank + index, shares, nodes));
    add_notes();
    return placement_;
  }

 private:
  const Device* device_of(int local_rank) const {
    if (devices_.devices.empty()) return nullptr;
    return &devices_.devices[static_cast<size_t>(local_rank) % devices_.devices.size()];
  }

  static std::string name_of(const Device& device) {
    return device.mig ? fmt::format("mig {}/{}/{}", device.gpu, device.gpu_instance,
                                    device.compute_instance)
                      : fmt::format("gpu {}", device.gpu);
  }

  // The number of devices that the first rank computes on, if it is the only rank.
  int devices_of_single_rank() const {
    const auto all = static_cast<int>(devices_.devices.size());
    return request_.devices_of_rank == 0 ? all : std::min(all, request_.devices_of_rank);
  }

  std::vector<int> device_nodes() {
    const bool bound = request_.binding != NumaBinding::None;
    if (devices_.devices.empty())
      return bound ? spread_over_nodes(machine_, ranks_on_host_)
                   : std::vector<int>(static_cast<size_t>(ranks_on_host_), kUnknownNode);
    std::vector<int> nodes;
    std::vector<int> unbound;
    for (int rank = 0; rank < ranks_on_host_; ++rank) {
      int node = device_of(rank)->numa_node;
      // On a machine with one node, kernels report node -1 for every slot.
      if (machine_.socket_of_node.count(node) == 0) node = kUnknownNode;
      if (node == kUnknownNode && machine_.socket_of_node.size() == 1)
        node = machine_.socket_of_node.begin()->first;
      if (node == kUnknownNode && bound) unbound.push_back(rank);
      nodes.push_back(node);
    }
    const bool is_first = !request_.adopted || request_.adopted->local_rank == 0;
    if (!unbound.empty() && is_first) note_unbound(unbound);
    return nodes;
  }

  // One note for the host, as one for each rank would hide the others. When another launcher
  // started the ranks, the first of them notes it.
  void note_unbound(const std::vector<int>& local_ranks) {
    std::vector<std::string> devices;
    for (const int rank : local_ranks)
      if (const std::string& address = device_of(rank)->pci_address;
          std::find(devices.begin(), devices.end(), address) == devices.end())
        devices.push_back(address);
    const bool is_one = local_ranks.size() == 1;
    placement_.notes.push_back(fmt::format(
        "local rank{} {} {} not bound: the NUMA node of {} is not known", is_one ? "" : "s",
        fmt::join(local_ranks, ", "), is_one ? "is" : "are", fmt::join(devices, ", ")));
  }

  RankPlacement place(int local_rank, int rank, const std::vector<std::vector<int>>& shares,
                      const std::vector<int>& nodes) const {
    const auto index = static_cast<size_t>(local_rank);
    RankPlacement placed;
    placed.rank = rank;
    placed.local_rank = local_rank;
    placed.host = request_.host;
    placed.device = "cpu";
    if (const Device* const device = device_of(local_rank)) {
      placed.device = name_of(*device);
      for (int more = 1; ranks_on_host_ == 1 && more < devices_of_single_rank(); ++more)
        placed.device += ", " + name_of(devices_.devices[static_cast<size_t>(more)]);
      placed.device_uuid = device->uuid;
      if (request_.virtual_local_rank || devices_.one_device_per_rank)
        placed.visible_device = devices_.tokens[index % devices_.tokens.size()];
    }
    placed.cpus = shares[index];
    if (shared_by_others(placed)) placed.cpus = all_cpus();
    placed.bind = request_.binding != NumaBinding::None && nodes[index] != kUnknownNode;
    placed.numa_node = common_node(machine_, placed.cpus);
    placed.threads = threads_of(placed, shares);
    return placed;
  }

  // True when the launcher that started and bound this rank has divided the CPUs already.
  bool shared_by_others(const RankPlacement& placed) const {
    return request_.adopted && machine_.bound && request_.binding == NumaBinding::None &&
           !placed.bind;
  }

  std::vector<int> all_cpus() const {
    std::vector<int> ids;
    for (const Cpu& cpu : machine_.cpus) ids.push_back(cpu.id);
    return ids;
  }

  int cores_in(const std::vector<int>& cpus) const {
    std::set<int> cores;
    for (const Cpu& cpu : machine_.cpus)
      if (std::binary_search(cpus.begin(), cpus.end(), cpu.id)) cores.insert(cpu.core);
    return static_cast<int>(cores.size());
  }

  // One thread per physical core: a second thread on a core does not make arithmetic faster.
  int threads_of(const RankPlacement& placed, const std::vector<std::vector<int>>& shares) const {
    if (request_.asked_threads > 0) return request_.asked_threads;
    if (!request_.omp_num_threads.empty()) return 0;
    if (request_.threads == ThreadRule::Torchrun) return ranks_on_host_ > 1 ? 1 : 0;
    const int cores = cores_in(placed.cpus);
    if (shared_by_others(placed)) return std::max(1, std::min(cores, machine_.usable_cpus));
    const auto same = static_cast<int>(
        std::count(shares.begin(), shares.end(), shares[static_cast<size_t>(placed.local_rank)]));
    const int of_quota = machine_.usable_cpus / ranks_on_host_;
    return std::max(1, std::min(cores / same, of_quota));
  }

  void add_notes() {
    const auto num_devices = static_cast<int>(devices_.devices.size());
    if (num_devices > 0 && !request_.adopted && ranks_on_host_ > num_devices)
      placement_.notes.push_back(
          fmt::format("{} ranks share {}", ranks_on_host_, counted(num_devices, "device")));
    if (request_.devices_of_rank != 1 && ranks_on_host_ == 1) {
      if (devices_of_single_rank() < num_devices)
        placement_.notes.push_back(
            fmt::format("{} visible and {} planned (parallel.replicas)",
                        counted(num_devices, "GPU is", "GPUs are"),
                        counted(devices_of_single_rank(), "replica is", "replicas are")));
    } else if (request_.announce_idle_devices && !request_.adopted && ranks_on_host_ < num_devices)
      placement_.notes.push_back(
          fmt::format("{} visible and {} planned: use --ranks gpu for a rank on each",
                      devices_.one_device_per_rank
                          ? counted(num_devices, "MIG instance is", "MIG instances are")
                          : counted(num_devices, "GPU is", "GPUs are"),
                      counted(ranks_on_host_, "rank is", "ranks are")));
    const auto num_cpus = static_cast<int>(machine_.cpus.size());
    if (!request_.adopted && machine_.bound && request_.num_ranks > num_cpus)
      placement_.notes.push_back(
          fmt::format("{} ranks on {}: the program that started this launcher bound it to them; "
                      "`mpirun --bind-to none` or `srun --cpus-per-task` give more",
                      request_.num_ranks, counted(num_cpus, "CPU")));
    if (machine_.limited_by_quota)
      placement_.notes.push_back(fmt::format("a cgroup quota allows {} of {}", machine_.usable_cpus,
                                             counted(std::ssize(machine_.cpus), "CPU")));
  }

  const PlacementRequest& request_;
  const DeviceSelection& devices_;
  const Machine& machine_;
  int ranks_on_host_ = 1;
  Placement placement_;
};

}  // namespace

NumaBinding numa_binding_of(const std::string& word) {
  if (word == "node") return NumaBinding::Node;
  if (word == "socket") return NumaBinding::Socket;
  if (word == "exclusive") return NumaBinding::Exclusive;
  if (word == "core-complex" || word == "core_complex") return NumaBinding::CoreComplex;
  throw ConfigError(
      fmt::format("--numa-binding: wanted node, socket, exclusive or core-complex, found `{}`{}",
                  word, did_you_mean(word, {"node", "socket", "exclusive", "core-complex"})),
      {.hint = "such as --numa-binding node"});
}

Placement plan_placement(const PlacementRequest& request, const DeviceSelection& devices,
                         const Machine& machine) {
  return Planner(request, devices, machine).plan();
}

}  // namespace convoy::launch
