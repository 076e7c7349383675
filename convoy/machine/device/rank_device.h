// SPDX-License-Identifier: Apache-2.0
//
// The device a rank computes on. LibTorch's CUDA library is opened at run time, so the same program
// runs on machines with and without it.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace convoy::device {

struct RankDevice {
  at::Device device = at::kCPU;
  bool has_bf16 = true;  // the device multiplies bf16 itself (CUDA: compute capability 8.0 and up)
};

// `devices`: "cpu", "cuda", or another device type that is registered with LibTorch. Takes the
// device with index `local_rank` among the devices of this process, or the only device, and makes
// it current in this thread. Opens the library that "cuda" needs. Throws DeviceError, naming what
// is missing.
RankDevice take_rank_device(const std::string& devices, int local_rank);

// Number of devices of that kind that this process sees; 1 for "cpu". Opens the library that "cuda"
// needs.
int count_devices(const std::string& devices);

// Throws DeviceError where the device does not multiply numbers of this type ("bf16") itself.
void require_dtype(const RankDevice& rank_device, const std::string& dtype);

}  // namespace convoy::device
