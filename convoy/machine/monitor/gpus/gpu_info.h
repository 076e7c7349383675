// SPDX-License-Identifier: Apache-2.0
//
// The output of `convoy gpus show`: the GPUs with their current load, the driver, the host around
// them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/monitor/gpus/devices.h"
#include "convoy/machine/monitor/host/host.h"

namespace convoy::monitor {

struct GpuInfo {
  int num_gpus = 0;            // GPUs that are shown
  int num_hidden = 0;          // further GPUs of the host
  std::string hidden_by = {};  // "CUDA_VISIBLE_DEVICES"
  std::string why_none = {};
  std::vector<Nvml::Broken> broken = {};
  std::vector<Device> devices = {};          // instances after their GPU
  std::vector<DeviceReading> readings = {};  // readings of `devices`
  NvmlVersions versions = {};
  HostFacts host = {};
};

// `uuids`: only these devices; nothing = all.
GpuInfo read_gpu_info(const DeviceSources& sources,
                      const std::optional<std::set<std::string>>& uuids);

std::string gpu_info_text(const GpuInfo& info);
std::string gpu_info_json(const GpuInfo& info);

// 12080 -> "12.8"; empty for 0.
std::string cuda_version_text(int version);

}  // namespace convoy::monitor
