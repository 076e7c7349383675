// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's driver library, opened at run time. The declarations are our own copy of the part of its
// stable C interface that Convoy uses, so that nothing of NVIDIA is needed to build or to start.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "convoy/core/base/error.h"

namespace convoy::nvidia {

// Thrown when this process can no longer use the GPU. Another process may be able to.
class DeviceLost : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Thrown when a call needs more memory than the GPU has left. Its kind is "memory".
class DeviceMemory : public Error {
 public:
  explicit DeviceMemory(const std::string& message);
};

using DeviceAddress = uint64_t;

// LaunchAttribute and LaunchConfig have the layout of CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id = 0;
  alignas(8) std::array<char, 64> value{};
};
struct LaunchConfig {
  std::array<unsigned, 3> grid = {1, 1, 1};
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared_bytes = 0;
  void* stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  unsigned num_attributes = 0;
};

// The driver's functions, under its names without "cu" and "_v2". They return its error codes, 0 =
// success.
struct DriverFunctions {
  int (*Init)(unsigned flags) = nullptr;
  int (*DriverGetVersion)(int* version) = nullptr;
  int (*GetErrorName)(int code, const char** name) = nullptr;
  int (*GetErrorString)(int code, const char** text) = nullptr;
  int (*DeviceGetCount)(int* count) = nullptr;
  int (*DeviceGet)(int* device, int ordinal) = nullptr;
  int (*DeviceGetName)(char* name, int bytes, int device) = nullptr;
  int (*DeviceGetAttribute)(int* value, int attribute, int device) = nullptr;
  int (*DevicePrimaryCtxRetain)(void** context, int device) = nullptr;
  int (*DevicePrimaryCtxRelease)(int device) = nullptr;
  int (*CtxSetCurrent)(void* context) = nullptr;
  int (*ModuleLoadDataEx)(void** module, const void* image, unsigned count, int* options,
                          void** values) = nullptr;
  int (*ModuleUnload)(void* module) = nullptr;
  int (*ModuleGetFunction)(void** function, void* module, const char* name) = nullptr;
  int (*OccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, void* function, int threads,
                                                   size_t shared_bytes) = nullptr;
  int (*MemAlloc)(DeviceAddress* address, size_t bytes) = nullptr;
  int (*MemFree)(DeviceAddress address) = nullptr;
  int (*MemcpyHtoD)(DeviceAddress to, const void* from, size_t bytes) = nullptr;
  int (*MemcpyDtoH)(void* to, DeviceAddress from, size_t bytes) = nullptr;
  int (*MemsetD8Async)(DeviceAddress to, unsigned char value, size_t bytes, void* stream) = nullptr;
  int (*LaunchKernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      void* stream, void** parameters, void** extra) = nullptr;
  // Null in drivers before CUDA 11.8.
  int (*LaunchKernelEx)(const LaunchConfig* config, void* function, void** parameters,
                        void** extra) = nullptr;
};

// The newest CUDA version that the driver supports: 13000 for 13.0; 0 = unknown. Nothing if the
// library cannot be opened. Starts nothing on a GPU.
std::optional<int> driver_version(const std::filesystem::path& library);
std::string version_text(int version);  // "CUDA 13.0"

// The library is open from construction on. Thread-safe.
class Driver {
 public:
  // Never throws for a host without a driver: `problem` gives the reason; empty = it is open.
  explicit Driver(const std::filesystem::path& library);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const std::string& problem() const { return problem_; }
  std::string version() const;  // "CUDA 13.0": the newest that the driver supports
  int version_number() const;   // 13000; 0 = unknown
  int device_count() const;     // GPUs that this process may use
  const DriverFunctions& call() const { return call_; }
  // Throws DeviceMemory when memory is short, ConfigError for an error that another process would
  // get too, and DeviceLost for any other error.
  void check(int code, const char* doing) const;

 private:
  std::string open(const std::filesystem::path& library);

  void* library_ = nullptr;
  DriverFunctions call_;
  std::string problem_;
};

}  // namespace convoy::nvidia
