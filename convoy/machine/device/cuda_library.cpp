// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/cuda_library.h"

#include <ATen/Context.h>
#include <dlfcn.h>

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
    throw DeviceError(fmt::format("{} can not be opened: {}", library.string(), dlerror()),
                      {.hint = "it comes with the CUDA libraries that it names: install torch "
                               "2.11 with all it depends on, or use --devices cpu"});
}

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
  void* const driver = dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return 0;
  const auto device_of =
      reinterpret_cast<int (*)(int* device, int ordinal)>(dlsym(driver, "cuDeviceGet"));
  const auto attribute_of = reinterpret_cast<int (*)(int* value, int attribute, int device)>(
      dlsym(driver, "cuDeviceGetAttribute"));
  int device = 0;
  int major = 0;
  if (device_of == nullptr || attribute_of == nullptr || device_of(&device, index) != 0 ||
      attribute_of(&major, kMajor, device) != 0)
    return 0;
  return major;
}

}  // namespace convoy::device
