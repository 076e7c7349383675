// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/rank_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/cuda_library.h"

namespace convoy::device {

int count_devices(const std::string& devices) {
  if (devices == "cpu") return 1;
  if (devices == "cuda") open_cuda_library();
  return c10::impl::VirtualGuardImpl(at::Device(devices).type()).deviceCount();
}

RankDevice take_rank_device(const std::string& devices, int local_rank) {
  if (devices == "cpu") return {};
  const int count = count_devices(devices);
  const at::DeviceType type = at::Device(devices).type();
  const c10::impl::VirtualGuardImpl guard(type);
  if (count == 0)
    throw DeviceError(fmt::format("{} shows this process no device", devices),
                      {.hint = "CUDA 13 needs driver 580 or newer: check nvidia-smi and "
                               "CUDA_VISIBLE_DEVICES, or use --devices cpu"});
  const int index = count == 1 ? 0 : local_rank;
  if (index >= count)
    throw DeviceError(
        fmt::format("rank {} of this host needs a device of its own, found {}", local_rank, count),
        {.hint = "use --ranks gpu, or --devices cpu"});
  const at::Device device(type, static_cast<at::DeviceIndex>(index));
  guard.setDevice(device);
  constexpr int kFirstWithBf16 = 8;  // Ampere
  const bool has_bf16 = type != at::kCUDA || cuda_compute_capability(index) >= kFirstWithBf16;
  return {.device = device, .has_bf16 = has_bf16};
}

void require_dtype(const RankDevice& rank_device, const std::string& dtype) {
  if (dtype != "bf16" || rank_device.has_bf16) return;
  throw DeviceError(
      fmt::format("{} has no bf16: its compute capability is below 8.0", rank_device.device.str()),
      {.hint = "use fp32 (--dtype fp32, train.bf16: false), or --devices cpu"});
}

}  // namespace convoy::device
