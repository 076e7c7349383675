// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/nvidia/cuda_context.h"

#include <array>

#include "convoy/core/base/error.h"

namespace convoy::nvidia {
namespace {

// Values of CUdevice_attribute.
constexpr int kClockRate = 13;  // kHz
constexpr int kMultiprocessorCount = 16;
constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;

}  // namespace

Context::Context(std::shared_ptr<const Driver> driver, int number) : driver_(std::move(driver)) {
  if (!driver_->problem().empty())
    throw ConfigError(fmt::format("{}", driver_->problem()),
                      {.hint = "install the GPU's driver, or compute on CPUs: --devices cpu"});
  if (number < 0 || number >= driver_->device_count())
    throw ConfigError(fmt::format("wanted GPU {}, found {} that this process may use", number,
                                  driver_->device_count()),
                      {.hint = "name a GPU that there is; CUDA_VISIBLE_DEVICES may hide some"});
  driver_->check(call().DeviceGet(&device_, number), "the GPU cannot be queried");
  int clock = 0;
  if (call().DeviceGetAttribute(&clock, kClockRate, device_) == 0 && clock > 0)
    clock_hertz_ = clock * 1e3;
  driver_->check(call().DeviceGetAttribute(&multiprocessors_, kMultiprocessorCount, device_),
                 "the GPU's size cannot be read");
  int major = 0, minor = 0;
  if (call().DeviceGetAttribute(&major, kComputeCapabilityMajor, device_) == 0 &&
      call().DeviceGetAttribute(&minor, kComputeCapabilityMinor, device_) == 0)
    compute_capability_ = 10 * major + minor;
  driver_->check(call().DevicePrimaryCtxRetain(&context_, device_), "the GPU cannot be opened");
}

Context::~Context() { call().DevicePrimaryCtxRelease(device_); }

void Context::make_current() const {
  driver_->check(call().CtxSetCurrent(context_), "the GPU cannot be used");
}

std::string Context::gpu_name() const {
  std::array<char, 256> text{};
  driver_->check(call().DeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device_),
                 "the GPU's name cannot be read");
  return text.data();
}

}  // namespace convoy::nvidia
