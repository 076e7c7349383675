// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/cuda/device.h"

#include <algorithm>
#include <array>

#include "convoy/base/error.h"
#include "convoy/sweep/cuda/guess_launch.h"

namespace convoy::sweep::cuda {
namespace {

// Of CUdevice_attribute.
constexpr int kClockRate = 13;  // kHz
constexpr int kMultiprocessorCount = 16;

// Of CUjit_option.
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferSize = 6;

constexpr std::string_view kEntry = ".visible .entry ";

}  // namespace

std::string kernel_text_of(const std::string& name) {
  const std::string_view all = kernel_text();
  const size_t begin = all.find(fmt::format("{}{}(", kEntry, name));
  CONVOY_INVARIANT(begin != std::string_view::npos, "no kernel {}", name);
  // What stands before the first kernel is for all of them.
  std::string text(all.substr(0, all.find(kEntry)));
  return text.append(all.substr(begin, all.find("\n}", begin) + 3 - begin));
}

Device::Device(std::shared_ptr<const Driver> driver, int number, const std::string& place)
    : driver_(std::move(driver)) {
  CONVOY_CHECK(driver_->problem().empty(), ConfigError, "{}", driver_->problem());
  CONVOY_CHECK(!kernel_text().empty(), ConfigError,
               "this Convoy was built without its kernels for GPUs: there was no clang++");
  CONVOY_CHECK(number >= 0 && number < driver_->device_count(), ConfigError,
               "wanted GPU {}, found {} that this process may use", number,
               driver_->device_count());
  const DriverFunctions& call = driver_->call();
  driver_->check(call.DeviceGet(&device_, number), "the GPU can not be asked for");
  std::array<char, 256> text{};
  driver_->check(call.DeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device_),
                 "the GPU's name can not be read");
  name_ = fmt::format("cuda:{} {}", place, text.data());
  int clock = 0;
  if (call.DeviceGetAttribute(&clock, kClockRate, device_) == 0 && clock > 0)
    clock_hertz_ = clock * 1e3;
  driver_->check(call.DeviceGetAttribute(&multiprocessors_, kMultiprocessorCount, device_),
                 "the GPU's size can not be read");
  driver_->check(call.DevicePrimaryCtxRetain(&context_, device_), "the GPU can not be opened");
}

Device::~Device() {
  const DriverFunctions& call = driver_->call();
  if (call.CtxSetCurrent(context_) == 0)
    for (void* module : modules_) call.ModuleUnload(module);
  call.DevicePrimaryCtxRelease(device_);
}

std::shared_ptr<Device> open_device(const std::filesystem::path& driver_library,
                                    const std::string& place) {
  const auto driver = std::make_shared<const Driver>(driver_library);
  const auto device = std::make_shared<Device>(driver, 0, place);
  DeviceUse(*device).kernel("ssm_test_exact_1");
  return device;
}

DeviceUse::DeviceUse(Device& device) : device_(device), lock_(device.mutex_) {
  driver().check(driver().call().CtxSetCurrent(device.context_), "the GPU can not be used");
}

const Kernel& DeviceUse::kernel(const std::string& name) const {
  if (const auto known = device_.kernels_.find(name); known != device_.kernels_.end())
    return known->second;
  const DriverFunctions& call = driver().call();
  const std::string text = kernel_text_of(name);
  std::array<char, 4096> log{};
  std::array<int, 2> options = {kJitErrorLogBuffer, kJitErrorLogBufferSize};
  // The driver takes the size as a number in place of a pointer.
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  void* module = nullptr;
  const int code =
      call.ModuleLoadDataEx(&module, text.c_str(), options.size(), options.data(), values.data());
  driver().check(code, fmt::format("the driver could not compile {}{}{}", name,
                                   log[0] == 0 ? "" : ": ", log.data())
                           .c_str());
  device_.modules_.push_back(module);
  Kernel kernel;
  driver().check(call.ModuleGetFunction(&kernel.function, module, name.c_str()),
                 "a kernel is missing");
  int blocks = 0;
  driver().check(
      call.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, kBlockThreads, 0),
      "a kernel does not fit on the GPU");
  kernel.resident_blocks =
      static_cast<uint64_t>(std::max(1, blocks)) * static_cast<uint64_t>(device_.multiprocessors());
  return device_.kernels_.emplace(name, kernel).first->second;
}

void DeviceUse::launch(const Kernel& kernel, uint64_t threads, const void* parameters) const {
  const uint64_t blocks = std::clamp<uint64_t>((threads + kBlockThreads - 1) / kBlockThreads, 1,
                                               kernel.resident_blocks);
  // The driver copies what it reads.
  void* list[] = {const_cast<void*>(parameters)};
  driver().check(driver().call().LaunchKernel(kernel.function, static_cast<unsigned>(blocks), 1, 1,
                                              kBlockThreads, 1, 1, 0, nullptr, list, nullptr),
                 "a kernel could not be started");
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
    // The memory went with the device.
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

}  // namespace convoy::sweep::cuda
