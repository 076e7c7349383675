// SPDX-License-Identifier: Apache-2.0
//
// AMD's GPUs as the kernel shows them: KFD's list of computing devices, and the files of the amdgpu
// driver. No ROCm needed.
#pragma once

#include <vector>

#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/monitor/gpus/devices.h"

namespace convoy::monitor {

// The GPUs in KFD's order, which is the order of HIP_VISIBLE_DEVICES' numbers. Empty without KFD.
// Reads a few files.
std::vector<Gpu> list_amd_gpus(const DeviceSources& sources);

DeviceReading read_amd_gpu(const DeviceSources& sources, const Device& device);
bool amd_supports(Metric metric);  // true when read_amd_gpu() supports it

}  // namespace convoy::monitor
