// SPDX-License-Identifier: Apache-2.0
//
// Kernels as PTX texts inside this program (cmake/CudaKernels.cmake), compiled by the GPU's driver.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/machine/nvidia/cuda_context.h"

namespace convoy::nvidia {

// Each text is the PTX of several kernels.
using KernelTexts = std::span<const std::string_view>;

// Returns the module with one kernel only, since a driver takes seconds to compile all kernels.
// Throws StateError for an unknown name.
std::string kernel_text_of(KernelTexts texts, std::string_view name);

// The `text` of one kernel for GPUs from Hopper on. The kernel lets the next kernel start on the
// GPU before it has ended itself. It waits until the kernels before it in its stream have ended and
// their writes are visible: at its beginning, or where it calls wait_for_kernels_before().
// (Programmatic dependent launch: PTX ISA 7.8, griddepcontrol.)
std::string early_text_of(std::string text);

// A kernel that takes one struct.
struct Kernel {
  void* function = nullptr;
  uint64_t resident_blocks = 1;  // blocks that the GPU holds at once
};

// Kernels in one context, which the caller has made current. Only launch() is thread-safe.
class Kernels {
 public:
  // Every kernel is started with blocks of `block_threads` threads. `context` must outlive this
  // object.
  Kernels(const Context& context, KernelTexts texts, uint32_t block_threads);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // The kernel is valid as long as this object. Blocks while the driver compiles it, the first
  // time. Throws what Driver::check does.
  const Kernel& find(std::string_view name);

  // Async, in the order of `stream` (null: the default stream). From Hopper on the GPU prepares the
  // kernel while the one before it ends. Starts `blocks` blocks, but not more than the GPU holds at
  // once: a block goes on until all work is done. The struct is copied. Throws what Driver::check
  // does.
  void launch(const Kernel& kernel, uint64_t blocks, void* stream, const void* parameters) const;

 private:
  Kernel compile(std::string_view name);

  const Context& context_;
  KernelTexts texts_;
  uint32_t block_threads_;
  bool starts_early_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::vector<void*> modules_;
};

}  // namespace convoy::nvidia
