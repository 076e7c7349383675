// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/cuda_library.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <mutex>

#include "convoy/core/base/error.h"

namespace convoy::device {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDriver = "libcuda.so.1";

// The folder of the LibTorch that this process runs with.
fs::path libtorch_folder() {
  Dl_info found{};
  // Any function that libtorch_cpu exports will do.
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &found) == 0) return {};
  return fs::path(found.dli_fname).parent_path();
}

void open() {
  if (dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL) == nullptr)
    throw DeviceError(fmt::format("no NVIDIA driver is here: {}", dlerror()),
                      {.hint = "install the GPU's driver, or use --devices cpu"});
  const fs::path library = libtorch_folder() / "libtorch_cuda.so";
  if (!fs::exists(library))
    throw DeviceError(fmt::format("this LibTorch has no CUDA: {} is missing", library.string()),
                      {.hint = "name a torch 2.11 with CUDA in CONVOY_TORCH (pip install "
                               "torch==2.11.0), or use --devices cpu"});
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw DeviceError(fmt::format("{} cannot be opened: {}", library.string(), dlerror()),
                      {.hint = "it comes with the CUDA libraries that it names: install torch "
                               "2.11 with all it depends on, or use --devices cpu"});
}

// One of the driver's devices.
class DriverDevice {
 public:
  explicit DriverDevice(int index) : driver_(dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL)) {
    const auto device_of = function<int (*)(int* device, int ordinal)>("cuDeviceGet");
    if (device_of == nullptr || device_of(&number_, index) != 0) driver_ = nullptr;
  }
  int number() const { return number_; }
  // Null when the driver lacks the function or the device.
  template <class Function>
  Function function(const char* name) const {
    return driver_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver_, name));
  }

 private:
  void* driver_;
  int number_ = 0;
};

}  // namespace

// LibTorch looks for its CUDA half once, at the first call that needs it (at::hasCUDA(), seeds): no
// such call may come before this one.
void open_cuda_library() {
  static std::once_flag opened;
  std::call_once(opened, open);
}

int cuda_compute_capability(int index) {
  // cuda.h: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR.
  constexpr int kMajor = 75;
  const DriverDevice device(index);
  const auto attribute_of =
      device.function<int (*)(int* value, int attribute, int device)>("cuDeviceGetAttribute");
  int major = 0;
  if (attribute_of == nullptr || attribute_of(&major, kMajor, device.number()) != 0) return 0;
  return major;
}

std::string cuda_uuid(int index) {
  const DriverDevice device(index);
  // The second version gives parts of a GPU UUIDs of their own.
  const auto uuid_of =
      device.function<int (*)(unsigned char* bytes, int device)>("cuDeviceGetUuid_v2");
  std::array<unsigned char, 16> bytes{};
  if (uuid_of == nullptr || uuid_of(bytes.data(), device.number()) != 0) return {};
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace convoy::device
