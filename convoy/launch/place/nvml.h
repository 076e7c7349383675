// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's management library, opened at run time. The declarations are our own copy of its stable C interface
// (driver 450 and newer), so that nothing of NVIDIA is needed to build.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convoy/launch/place/device_reader.h"
#include "convoy/launch/place/devices.h"

namespace convoy::launch {

// Open from construction to destruction; opening costs tens of milliseconds where there are GPUs.
class Nvml {
 public:
  // `problem` of the result is empty when the library is open.
  explicit Nvml(const std::filesystem::path& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& problem() const { return problem_; }
  // In the order of PCI addresses, without those that this process may not open.
  std::vector<Gpu> gpus() const;
  std::vector<DeviceReading> readings() const;  // of the same GPUs

 private:
  struct Functions;
  std::vector<std::pair<int, void*>> handles() const;  // by index, of GPUs that may be opened
  Gpu read_gpu(void* handle, int index) const;
  void read_instances(void* handle, Gpu& gpu) const;

  void* library_ = nullptr;
  std::unique_ptr<Functions> call_;
  bool initialised_ = false;
  std::string problem_;
};

}  // namespace convoy::launch
