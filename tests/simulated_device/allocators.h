// SPDX-License-Identifier: Apache-2.0
//
// Device memory, and the host memory beside it, as LibTorch's allocators.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Allocator.h>

namespace convoy::simulated {

// Memory of the current device; data pointers are the host's view.
c10::Allocator& device_allocator();
at::HostAllocator& pinned_allocator();

// Registers both, and a CPU allocator that serves kernels while they run for a device (see
// KernelMemory).
void register_allocators();

// While it lives, what this thread allocates as CPU memory is memory of the device, seen through
// the device's view: so that CPU kernels put their results where they belong, without a copy.
class KernelMemory {
 public:
  explicit KernelMemory(c10::DeviceIndex device);
  ~KernelMemory();
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;

  static c10::Allocator& allocator();

 private:
  c10::DeviceIndex outer_;
};

// The result of a kernel as memory of the device: taken over, or copied where the kernel had memory
// of its own.
c10::DataPtr adopt(c10::DataPtr result, size_t bytes, c10::Device device);

}  // namespace convoy::simulated
