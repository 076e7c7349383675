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
  // CUDA_VISIBLE_DEVICES for the ranks, with each device in the user's own spelling (index, UUID,
  // prefix); nothing = leave the variable alone.
  std::optional<std::string> cuda_visible_devices = {};
  // CUDA shows a process only one MIG instance, so each rank must see only its own instance, as
  // with --virtual-local-rank.
  bool one_device_per_rank = false;
  // The variable that selects `devices`: CUDA_VISIBLE_DEVICES, or HIP_VISIBLE_DEVICES for AMD's
  // GPUs.
  std::string variable = "CUDA_VISIBLE_DEVICES";
  // The name of each device in CUDA_VISIBLE_DEVICES, by local rank.
  std::vector<std::string> tokens;
  std::vector<std::string> notes = {};  // entries that were cut off or are uncertain
};

struct SelectionRequest {
  std::optional<std::string> cuda_visible_devices = {};  // as found; nothing = unset
  std::string cuda_device_order = {};                    // CUDA_DEVICE_ORDER as found
  std::optional<std::string> hip_visible_devices = {};   // AMD's variable, as found
  std::optional<std::string> rocr_visible_devices = {};
  std::string gpu_ids = {};  // --gpu-ids 0,2: positions among the visible devices, or UUIDs
};

// Takes CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES from
// the environment.
SelectionRequest selection_request(const std::map<std::string, std::string>& environment,
                                   const std::string& gpu_ids);

// The devices that CUDA would show, in its order. A list ends at the first invalid entry. An empty
// list, "-1" or an entry that occurs twice hides every device. AMD's GPUs are filtered twice: by
// ROCR_VISIBLE_DEVICES, then by HIP_VISIBLE_DEVICES (CUDA_VISIBLE_DEVICES if it is unset), whose
// numbers count the devices that the first filter left. Throws ConfigError when gpu_ids names a
// device that is not visible.
DeviceSelection select_devices(const std::vector<Gpu>& gpus, const SelectionRequest& request);

// The reason why convoy-workers cannot compute on `gpus` with any LibTorch; empty = they may.
std::string why_not_for_workers(const std::vector<Gpu>& gpus);

struct CountFacts {
  int num_devices = 0;        // devices that the selection allows
  int usable_cpus = 1;        // affinity and cgroup quota
  std::string why_none = {};  // GpuList::why_none
};

// --nproc-per-node: a number, `gpu`, `cpu`, or `auto` = devices, else CPUs. Throws ConfigError for
// `gpu` without a device, a number below 1, or another word.
int rank_count(const std::string& wanted, const CountFacts& facts);

}  // namespace convoy::launch
