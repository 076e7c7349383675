// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/ops/cuda_devices.h"

#include <atomic>

namespace convoy::kernels {
namespace {

std::atomic<bool> private_device_is_as_cuda{false};

}  // namespace

bool takes_cuda_ops(at::Device device) {
  return device.is_cuda() ||
         (device.is_privateuseone() && private_device_is_as_cuda.load(std::memory_order_relaxed));
}

void use_cuda_ops_on_private_device() { private_device_is_as_cuda = true; }

}  // namespace convoy::kernels
