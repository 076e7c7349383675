// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process as the kernel counts it, and of its devices as LibTorch does.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace convoy::device {

struct ProcessMemory {
  int64_t resident_bytes = 0;
  int64_t peak_resident_bytes = 0;  // since the start or the last reset_peak_memory()
  int64_t owned_bytes = 0;          // resident_bytes without mapped files
};

// Zeros where /proc is not readable.
ProcessMemory process_memory();

// Memory of a rank on its device: on the CPU the process's memory, elsewhere the device memory of
// its tensors.
struct RankMemory {
  int64_t held_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t reserved_bytes = -1;  // device memory held by the allocator; -1 on the CPU
};
RankMemory rank_memory(at::Device device);

// Bytes that a rank may still allocate on its device; `ranks_on_host` ranks share the memory of the
// CPU. 0 = unknown.
int64_t usable_rank_memory_bytes(at::Device device, int ranks_on_host);

// Returns the memory of the whole device; 0 = unknown, and for the CPU.
int64_t device_memory_bytes(at::Device device);

// Returns memory of freed tensors, which the device's allocator keeps, to the device.
void release_kept_memory(at::Device device);

// Resets the process's peak to its present size. Returns false where the kernel does not allow it.
bool reset_peak_memory();

}  // namespace convoy::device
