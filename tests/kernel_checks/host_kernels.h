// SPDX-License-Identifier: Apache-2.0
//
// Runs Convoy's CUDA kernels on CPU tensors, with the PTX interpreter of tests/fake_cuda. Each CPU
// tensor is exactly one allocation of that GPU, and is filled with NaN at first.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "convoy/model/kernels/cuda/launch.h"

namespace convoy::testing {

class GpuMemoryOnHost : public c10::Allocator {
 public:
  using Announce = void (*)(const void* address, size_t bytes);

  // Installs the allocator for the rest of the process. `announce` is fake_cuda_host_memory().
  static void install(Announce announce) {
    announce_ = announce;
    constexpr uint8_t kBeforeOthers = 200;
    c10::SetCPUAllocator(new GpuMemoryOnHost, kBeforeOthers);
  }

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, at::kCPU};
    constexpr size_t kAlignment = 64;
    void* const memory =
        std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0xff, bytes);
    announce_(memory, bytes);
    return {memory, memory, release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void release(void* memory) {
    announce_(memory, 0);
    std::free(memory);
  }

  static inline Announce announce_ = nullptr;
};

// Call this before any CPU tensor is made that kernels are to use. `binaries` is the folder of
// libfake_cuda.so.
inline std::unique_ptr<kernels::HostKernels> host_kernels(const std::filesystem::path& binaries) {
  const std::filesystem::path library = binaries / "libfake_cuda.so";
  ::setenv("FAKE_CUDA", "results=bounded", 0);
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(::dlerror());
  GpuMemoryOnHost::install(
      reinterpret_cast<GpuMemoryOnHost::Announce>(::dlsym(opened, "fake_cuda_host_memory")));
  return std::make_unique<kernels::HostKernels>(library);
}

}  // namespace convoy::testing
