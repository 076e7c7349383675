// SPDX-License-Identifier: Apache-2.0
//
// One NVIDIA GPU of this process: its context, and the kernels of sweeps in it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/sweep/cuda/driver.h"

namespace convoy::sweep::cuda {

// PTX of every kernel of guess_kernels.cu; empty where it was built without clang.
std::string_view kernel_text();
// The module of one of them alone: a driver takes seconds to compile all. Throws StateError for a name
// that is not there.
std::string kernel_text_of(const std::string& name);

// One that takes one struct; good as long as its device.
struct Kernel {
  void* function = nullptr;
  uint64_t resident_blocks = 1;  // that the GPU holds at once
};

class Device {
 public:
  // `number`: among those that this process may use. `place` is what others call it. Takes the GPU's
  // context, about 300 MB of its memory. Throws ConfigError, DeviceMemory, DeviceLost.
  Device(std::shared_ptr<const Driver> driver, int number, const std::string& place);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }  // "cuda:PLACE NVIDIA H100"
  int multiprocessors() const { return multiprocessors_; }
  double clock_hertz() const { return clock_hertz_; }

 private:
  friend class DeviceUse;

  std::shared_ptr<const Driver> driver_;
  int device_ = 0;
  void* context_ = nullptr;
  std::string name_;
  int multiprocessors_ = 1;
  double clock_hertz_ = 1e9;
  std::mutex mutex_;
  std::map<std::string, Kernel> kernels_;
  std::vector<void*> modules_;
};

// The first GPU that this process sees, after one kernel was compiled for it: what no sweep could do without is known at
// once. Throws ConfigError, DeviceMemory, DeviceLost.
std::shared_ptr<Device> open_device(const std::filesystem::path& driver_library,
                                    const std::string& place);

// The device for one thread at a time, for as long as this lives. Every call throws what Driver::check
// does.
class DeviceUse {
 public:
  explicit DeviceUse(Device& device);

  const Driver& driver() const { return *device_.driver_; }
  // Blocks while the driver compiles it, the first time.
  const Kernel& kernel(const std::string& name) const;
  // Starts as many threads as the GPU holds at once, but not more than `threads`. Returns at once.
  void launch(const Kernel& kernel, uint64_t threads, const void* parameters) const;

 private:
  Device& device_;
  std::unique_lock<std::mutex> lock_;
};

// Memory of a GPU.
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
  // Blocks until everything before it is done.
  void read(const DeviceUse& use, void* to, size_t bytes) const;
  void clear(const DeviceUse& use) const;  // to 0; in order with launches

 private:
  std::shared_ptr<Device> device_;
  DeviceAddress address_ = 0;
  size_t bytes_ = 0;
};

}  // namespace convoy::sweep::cuda
