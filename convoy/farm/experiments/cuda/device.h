// SPDX-License-Identifier: Apache-2.0
//
// One NVIDIA GPU of this process: its context, and the sweep kernels that are loaded into it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "convoy/machine/nvidia/kernels.h"

namespace convoy::experiments::cuda {

// PTX of every sweep kernel; empty in a build without clang.
nvidia::KernelTexts kernel_texts();

class Device {
 public:
  // `number`: index among the GPUs that this process may use. `place`: the GPU's name in messages.
  // Creates the GPU's context, which takes about 300 MB of its memory. Throws ConfigError,
  // DeviceMemory, DeviceLost.
  Device(std::shared_ptr<const nvidia::Driver> driver, int number, const std::string& place);

  const std::string& name() const { return name_; }  // such as "cuda:PLACE NVIDIA H100"
  int multiprocessors() const { return context_.multiprocessors(); }
  double clock_hertz() const { return context_.clock_hertz(); }

 private:
  friend class DeviceUse;

  nvidia::Context context_;
  std::string name_;
  std::mutex mutex_;
  nvidia::Kernels kernels_;
};

// Path of the CUDA driver's library: "libcuda.so.1", or the value of CONVOY_CUDA_LIBRARY.
std::filesystem::path driver_library(const std::map<std::string, std::string>& environment);

// The reason why this process cannot compute sweeps on any GPU, as half a sentence. Empty if the
// driver is installed and this build has kernels for it.
std::string why_no_gpus(const std::filesystem::path& driver_library);

// Opens GPU `number` among the GPUs that this process sees. Compiles one kernel for it, so that a
// missing compiler is found at once. Throws ConfigError, DeviceMemory, DeviceLost.
std::shared_ptr<Device> open_device(const std::filesystem::path& driver_library,
                                    const std::string& place, int number = 0);

// Gives one thread at a time the use of the device, until this object is destroyed. Every call
// throws what Driver::check() throws.
class DeviceUse {
 public:
  explicit DeviceUse(Device& device);

  const nvidia::Driver& driver() const { return device_.context_.driver(); }
  // Blocks on the first use of a kernel, while the driver compiles it.
  const nvidia::Kernel& kernel(const std::string& name) const;
  // Starts as many threads as the GPU runs at once, but at most `threads`. Does not wait for their
  // end.
  void launch(const nvidia::Kernel& kernel, uint64_t threads, const void* parameters) const;

 private:
  Device& device_;
  std::unique_lock<std::mutex> lock_;
};

// A block of memory on a GPU.
class Buffer {
 public:
  Buffer(std::shared_ptr<Device> device, size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(address_);
  }
  size_t bytes() const { return bytes_; }
  void write(const DeviceUse& use, const void* from, size_t bytes) const;
  // Blocks until all work that was started before is done.
  void read(const DeviceUse& use, void* to, size_t bytes) const;
  void clear(const DeviceUse& use) const;  // sets every byte to 0; ordered with launches

 private:
  std::shared_ptr<Device> device_;
  nvidia::DeviceAddress address_ = 0;
  size_t bytes_ = 0;
};

// A buffer that holds `values`, or has room for one value if there are none.
template <class T>
Buffer filled(const std::shared_ptr<Device>& device, const std::vector<T>& values) {
  Buffer buffer(device, std::max<size_t>(1, values.size()) * sizeof(T));
  if (!values.empty()) buffer.write(DeviceUse(*device), values.data(), values.size() * sizeof(T));
  return buffer;
}

}  // namespace convoy::experiments::cuda
