// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's allocators for device memory and for the pinned host memory beside it.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Allocator.h>

namespace convoy::simulated {

// Allocates memory of the current device; its data pointers are addresses in the host's view.
c10::Allocator& device_allocator();
at::HostAllocator& pinned_allocator();

// Registers both allocators, and a CPU allocator that serves kernels while they run for a device
// (see KernelMemory).
void register_allocators();

// While an object exists, CPU memory that this thread allocates is memory of the device, used
// through the device's view. CPU kernels thus write results to the device's memory without a copy.
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

// Returns the result of a kernel as memory of the device. The memory is taken over, or copied if
// the kernel allocated it elsewhere.
c10::DataPtr adopt(c10::DataPtr result, size_t bytes, c10::Device device);

}  // namespace convoy::simulated
