// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cuda/device.h"

#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/cuda/launch_parts.h"

namespace convoy::experiments::cuda {

Device::Device(std::shared_ptr<const nvidia::Driver> driver, int number, const std::string& place)
    : context_(std::move(driver), number),
      name_(fmt::format("cuda:{} {}", place, context_.gpu_name())),
      kernels_(context_, kernel_texts(), kBlockThreads) {}

std::filesystem::path driver_library(const std::map<std::string, std::string>& environment) {
  const auto named = environment.find("CONVOY_CUDA_LIBRARY");
  return named != environment.end() && !named->second.empty() ? named->second : "libcuda.so.1";
}

std::string why_no_gpus(const std::filesystem::path& driver_library) {
  if (kernel_texts().empty())
    return "this Convoy was built without its kernels for GPUs, which `./run build` makes with "
           "clang++";
  return nvidia::Driver(driver_library).problem();
}

std::shared_ptr<Device> open_device(const std::filesystem::path& driver_library,
                                    const std::string& place, int number) {
  const auto driver = std::make_shared<const nvidia::Driver>(driver_library);
  const auto device = std::make_shared<Device>(driver, number, place);
  // Compiles one kernel, whichever it is, so that a missing compiler shows now and not in the first
  // cell.
  DeviceUse(*device).kernel("ssm_test_exact_1");
  return device;
}

DeviceUse::DeviceUse(Device& device) : device_(device), lock_(device.mutex_) {
  device_.context_.make_current();
}

const nvidia::Kernel& DeviceUse::kernel(const std::string& name) const {
  return device_.kernels_.find(name);
}

void DeviceUse::launch(const nvidia::Kernel& kernel, uint64_t threads,
                       const void* parameters) const {
  device_.kernels_.launch(kernel, (threads + kBlockThreads - 1) / kBlockThreads, nullptr,
                          parameters);
}

Buffer::Buffer(std::shared_ptr<Device> device, size_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  const DeviceUse use(*device_);
  use.driver().check(use.driver().call().MemAlloc(&address_, bytes), "memory of the GPU");
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::move(other.device_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(other.bytes_) {}

Buffer::~Buffer() {
  if (address_ == 0) return;
  try {
    const DeviceUse use(*device_);
    use.driver().call().MemFree(address_);
  } catch (const std::exception&) {
    // The device is lost, and its memory with it.
  }
}

void Buffer::write(const DeviceUse& use, const void* from, size_t bytes) const {
  use.driver().check(use.driver().call().MemcpyHtoD(address_, from, bytes),
                     "a copy to the GPU failed");
}

void Buffer::read(const DeviceUse& use, void* to, size_t bytes) const {
  use.driver().check(use.driver().call().MemcpyDtoH(to, address_, bytes),
                     "a copy from the GPU failed");
}

void Buffer::clear(const DeviceUse& use) const {
  use.driver().check(use.driver().call().MemsetD8Async(address_, 0, bytes_, nullptr),
                     "memory of the GPU could not be cleared");
}

}  // namespace convoy::experiments::cuda
