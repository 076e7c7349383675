// SPDX-License-Identifier: Apache-2.0
//
// Selects the GPUs of this host that the ranks get, by CUDA_VISIBLE_DEVICES and the flags.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/machine/monitor/gpus/devices.h"

namespace convoy::launch {

using monitor::Device;
using monitor::device_sources;
using monitor::Gpu;
using monitor::GpuList;
using monitor::list_gpus;

struct DeviceSelection {
  std::vector<Device> devices = {};  // by local rank
  // The value for the ranks, with the user's own spelling of each device kept (indices, UUIDs,
  // prefixes); nothing = leave the variable alone.
  std::optional<std::string> cuda_visible_devices = {};
  // CUDA shows a process only one MIG instance, so each rank must see its own alone, as
  // --virtual-local-rank does.
  bool one_device_per_rank = false;
  // The variable that names devices to these: CUDA_VISIBLE_DEVICES, or HIP_VISIBLE_DEVICES of
  // AMD's.
  std::string variable = "CUDA_VISIBLE_DEVICES";
  // By local rank: how CUDA_VISIBLE_DEVICES names that device alone.
  std::vector<std::string> tokens;
  std::vector<std::string> notes = {};  // entries that were cut off or are uncertain
};

struct SelectionRequest {
  std::optional<std::string> cuda_visible_devices = {};  // as found; nothing = unset
  std::string cuda_device_order = {};                    // CUDA_DEVICE_ORDER as found
  std::optional<std::string> hip_visible_devices = {};   // AMD's variable, as found
  std::optional<std::string> rocr_visible_devices = {};
  std::string gpu_ids = {};  // --gpu-ids 0,2: positions among the visible; or UUIDs
};

// With CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES of the
// environment.
SelectionRequest selection_request(const std::map<std::string, std::string>& environment,
                                   const std::string& gpu_ids);

// The devices CUDA would show, in its order: a list ends at the first invalid entry, an empty list
// or "-1" hides everything, an entry named twice hides everything. AMD's GPUs are filtered twice:
// by ROCR_VISIBLE_DEVICES, then by HIP_VISIBLE_DEVICES, or without it by CUDA_VISIBLE_DEVICES,
// whose numbers count the devices left by the first. Throws ConfigError when gpu_ids names one not
// visible.
DeviceSelection select_devices(const std::vector<Gpu>& gpus, const SelectionRequest& request);

// Why convoy-workers cannot compute on these, whatever LibTorch there is; empty = they may.
std::string why_not_for_workers(const std::vector<Gpu>& gpus);

struct CountFacts {
  int num_devices = 0;        // devices that the selection allows
  int usable_cpus = 1;        // affinity and cgroup quota
  std::string why_none = {};  // GpuList::why_none
};

// --nproc-per-node: a number, `gpu`, `cpu`, or `auto` = devices, else CPUs. Throws ConfigError:
// `gpu` without one, a number below 1, another word.
int rank_count(const std::string& wanted, const CountFacts& facts);

}  // namespace convoy::launch
