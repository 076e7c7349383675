// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/nvidia/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

namespace convoy::nvidia {
namespace {

// Values of CUresult.
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
// Errors that another process would get too: devices unavailable (taken by others), invalid image,
// no binary for the GPU, invalid PTX, no compiler beside the driver, unsupported PTX version,
// compiling disabled, driver mismatch.
constexpr std::array kHopeless = {46, 200, 209, 218, 221, 222, 223, 803};

// The first version with every function that is used. It is newer than the kernels' PTX 6.3.
constexpr int kLeastVersion = 11'000;

using VersionFunction = decltype(DriverFunctions::DriverGetVersion);

int version_by(VersionFunction function) {
  int version = 0;
  return function != nullptr && function(&version) == 0 ? version : 0;
}

}  // namespace

std::optional<int> driver_version(const std::filesystem::path& library) {
  void* const opened = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr) return std::nullopt;
  const int version =
      version_by(reinterpret_cast<VersionFunction>(::dlsym(opened, "cuDriverGetVersion")));
  ::dlclose(opened);
  return version;
}

std::string version_text(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

Driver::Driver(const std::filesystem::path& library) : problem_(open(library)) {}

Driver::~Driver() {
  if (library_ != nullptr) ::dlclose(library_);
}

std::string Driver::open(const std::filesystem::path& library) {
  library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr)
    return fmt::format("there is no NVIDIA driver ({} cannot be opened)", library.string());
  std::string missing;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library_, symbol));
    if (function == nullptr) missing = symbol;
  };
  find("cuInit", call_.Init);
  find("cuDriverGetVersion", call_.DriverGetVersion);
  find("cuGetErrorName", call_.GetErrorName);
  find("cuGetErrorString", call_.GetErrorString);
  find("cuDeviceGetCount", call_.DeviceGetCount);
  find("cuDeviceGet", call_.DeviceGet);
  find("cuDeviceGetName", call_.DeviceGetName);
  find("cuDeviceGetAttribute", call_.DeviceGetAttribute);
  find("cuDevicePrimaryCtxRetain", call_.DevicePrimaryCtxRetain);
  find("cuDevicePrimaryCtxRelease_v2", call_.DevicePrimaryCtxRelease);
  find("cuCtxSetCurrent", call_.CtxSetCurrent);
  find("cuModuleLoadDataEx", call_.ModuleLoadDataEx);
  find("cuModuleUnload", call_.ModuleUnload);
  find("cuModuleGetFunction", call_.ModuleGetFunction);
  find("cuOccupancyMaxActiveBlocksPerMultiprocessor",
       call_.OccupancyMaxActiveBlocksPerMultiprocessor);
  find("cuMemAlloc_v2", call_.MemAlloc);
  find("cuMemFree_v2", call_.MemFree);
  find("cuMemcpyHtoD_v2", call_.MemcpyHtoD);
  find("cuMemcpyDtoH_v2", call_.MemcpyDtoH);
  find("cuMemsetD8Async", call_.MemsetD8Async);
  find("cuLaunchKernel", call_.LaunchKernel);
  call_.LaunchKernelEx =
      reinterpret_cast<decltype(call_.LaunchKernelEx)>(::dlsym(library_, "cuLaunchKernelEx"));
  const int version = version_by(call_.DriverGetVersion);
  if (version > 0 && version < kLeastVersion)
    return fmt::format("the NVIDIA driver supports CUDA {}; wanted 11.0 or newer",
                       version_text(version));
  if (!missing.empty())
    return fmt::format("{} has no {}: it is no NVIDIA driver", library.string(), missing);
  const int code = call_.Init(0);
  if (code == 0) return "";
  if (code == kNoDevice) return "the NVIDIA driver shows no GPU";
  const char* text = nullptr;
  call_.GetErrorString(code, &text);
  return fmt::format("the NVIDIA driver does not start: {}", text == nullptr ? "" : text);
}

DeviceMemory::DeviceMemory(const std::string& message)
    : Error(ExitCode::Resources, "memory", message) {}

int Driver::version_number() const { return version_by(call_.DriverGetVersion); }

std::string Driver::version() const {
  const int version = version_number();
  return version > 0 ? version_text(version) : "unknown";
}

int Driver::device_count() const {
  int count = 0;
  return problem_.empty() && call_.DeviceGetCount(&count) == 0 ? count : 0;
}

void Driver::check(int code, const char* doing) const {
  if (code == 0) return;
  const char *name = nullptr, *text = nullptr;
  call_.GetErrorName(code, &name);
  call_.GetErrorString(code, &text);
  const std::string message = fmt::format("{}: {} ({}, {})", doing, text == nullptr ? "" : text,
                                          name == nullptr ? "" : name, code);
  if (code == kOutOfMemory) throw DeviceMemory(message);
  if (std::find(kHopeless.begin(), kHopeless.end(), code) != kHopeless.end())
    throw ConfigError(message, {.hint = "Convoy's kernels need a GPU of compute capability 7.5 or "
                                        "newer and a driver for it; CPUs need neither"});
  throw DeviceLost(message);
}

}  // namespace convoy::nvidia
