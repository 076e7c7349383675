// SPDX-License-Identifier: Apache-2.0
//
// A libcuda.so.1 for machines without a GPU: the part of the driver that Convoy calls, with kernels
// run from their PTX on the CPU. FAKE_CUDA describes the GPUs by these words:
//   devices=2            GPUs, default 1; CUDA_VISIBLE_DEVICES shows as many as it names
//   memory=1000000       memory of each GPU in bytes
//   version=12040        result of cuDriverGetVersion
//   capability=90        compute capability of each GPU, here 9.0
//   fail=NAME:CODE:N     the Nth call of the function, and all after it, return CODE
//   once=PATH            `fail` acts only if PATH does not exist, and creates PATH
//   slow_load=2500       milliseconds that loading a module takes, as compiling its kernels does
//   races=watched        kernels are run by PtxEntry::run_watched()
//   without_barrier=2    each module lacks its third barrier
//   results=bounded      kernels may use approximate operations (PtxResults::WithinBounds)
// Memory of the host becomes memory of the GPU by fake_cuda_host_memory(). Like a GPU, the fake one
// cannot be used any more after a kernel has failed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "fake_cuda/ptx_program.h"

namespace convoy::testing {
namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101, kInvalidContext = 201;
constexpr int kInvalidPtx = 218, kNotFound = 500, kIllegalAddress = 700;

struct Module {
  std::map<std::string, PtxEntry> entries;
};

class FakeDriver {
 public:
  FakeDriver() {
    const char* described = std::getenv("FAKE_CUDA");
    std::istringstream words(described == nullptr ? "" : described);
    for (std::string word; words >> word;) {
      const size_t sign = word.find('=');
      const std::string name = word.substr(0, sign), value = word.substr(sign + 1);
      if (name == "devices") devices = std::stoi(value);
      if (name == "memory") free_bytes = std::stoull(value);
      if (name == "version") version = std::stoi(value);
      if (name == "capability") capability = std::stoi(value);
      if (name == "fail") read_failure(value);
      if (name == "once") once_ = value;
      if (name == "slow_load") load_time = std::chrono::milliseconds(std::stoi(value));
      if (name == "races") watches = true;
      if (name == "without_barrier") missing_barrier = std::stoi(value);
      if (name == "results" && value == "bounded") results = PtxResults::WithinBounds;
    }
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
      const std::string list = visible;
      const auto named = list.empty() ? 0 : 1 + std::count(list.begin(), list.end(), ',');
      devices = std::min(devices, static_cast<int>(named));
    }
  }

  // Every function calls this first. Returns the result that the function is to return at once, or
  // 0.
  int enter(const char* name) {
    if (broken != 0) return broken;
    if (failing_ != name || ++calls_ < failing_call_) return 0;
    if (!once_.empty() && calls_ == failing_call_) {
      if (std::filesystem::exists(once_)) {
        failing_.clear();
        return 0;
      }
      std::ofstream(once_) << name << "\n";
    }
    return code_;
  }

  int devices = 1;
  uint64_t free_bytes = uint64_t{1} << 30;
  int version = 12'040;
  int capability = 90;
  int broken = 0;
  std::chrono::milliseconds load_time{0};
  bool watches = false;
  int missing_barrier = -1;
  PtxResults results = PtxResults::Exact;
  PtxAllocations allocations;
  std::mutex mutex;  // guards the allocations

 private:
  void read_failure(const std::string& text) {
    std::istringstream parts(text);
    std::string code, call;
    std::getline(parts, failing_, ':');
    std::getline(parts, code, ':');
    std::getline(parts, call, ':');
    code_ = std::stoi(code);
    failing_call_ = call.empty() ? 1 : std::stoi(call);
  }

  std::string failing_, once_;
  int code_ = 0, failing_call_ = 1, calls_ = 0;
};

FakeDriver& driver() {
  static FakeDriver one;
  return one;
}

// Returns the kernel's text without the barrier that FAKE_CUDA names.
std::string loaded_text(const char* image) {
  std::string text(image);
  int left = driver().missing_barrier;
  for (size_t at = text.find("bar.sync"); left >= 0 && at != std::string::npos;
       at = text.find("bar.sync", at + 1))
    if (left-- == 0) text.erase(at, text.find(';', at) + 1 - at);
  return text;
}

thread_local void* current_context = nullptr;

}  // namespace
}  // namespace convoy::testing

using convoy::testing::current_context;
using convoy::testing::driver;
using convoy::testing::Module;
using convoy::testing::PtxEntry;
using convoy::testing::PtxError;

#define ENTER(name) \
  if (const int code = driver().enter(name); code != 0) return code
#define ENTER_CONTEXT(name) \
  ENTER(name);              \
  if (current_context == nullptr) return convoy::testing::kInvalidContext

extern "C" {

int cuInit(unsigned) {
  ENTER("cuInit");
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = driver().version;
  return 0;
}

int cuGetErrorName(int code, const char** name) {
  *name = code == convoy::testing::kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}

int cuGetErrorString(int code, const char** text) {
  *text = code == convoy::testing::kOutOfMemory ? "out of memory" : "fake error";
  return 0;
}

int cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = driver().devices;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  ENTER("cuDeviceGet");
  if (ordinal < 0 || ordinal >= driver().devices) return convoy::testing::kInvalidDevice;
  *device = 7 + ordinal;  // a handle is no ordinal
  return 0;
}

int cuDeviceGetName(char* name, int bytes, int device) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU %d", device - 7);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 13:
      *value = 10;
      return 0;  // clock rate: low, so that first ranges are short
    case 16:
      *value = 2;
      return 0;  // multiprocessors
    case 75:
      *value = driver().capability / 10;
      return 0;
    case 76:
      *value = driver().capability % 10;
      return 0;
    default:
      return convoy::testing::kInvalidValue;
  }
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  ENTER("cuDevicePrimaryCtxRetain");
  *context = &driver();
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int) { return 0; }

int cuCtxSetCurrent(void* context) {
  ENTER("cuCtxSetCurrent");
  current_context = context;
  return 0;
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options,
                       void** values) {
  ENTER_CONTEXT("cuModuleLoadDataEx");
  std::this_thread::sleep_for(driver().load_time);
  constexpr int kErrorLogBuffer = 5;
  try {
    const std::string text = convoy::testing::loaded_text(static_cast<const char*>(image));
    *module = new Module{convoy::testing::read_ptx(text, driver().results)};
    return 0;
  } catch (const PtxError& error) {
    for (unsigned at = 0; at < count; ++at)
      if (options[at] == kErrorLogBuffer)
        std::snprintf(static_cast<char*>(values[at]), 512, "%s", error.what());
    return convoy::testing::kInvalidPtx;
  }
}

int cuModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  return 0;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER_CONTEXT("cuModuleGetFunction");
  auto& entries = static_cast<Module*>(module)->entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return convoy::testing::kNotFound;
  *function = &found->second;
  return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) {
  ENTER_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *blocks = 4;
  return 0;
}

// Lets kernels use these bytes. With bytes = 0, the memory at `address` may no longer be used.
void fake_cuda_host_memory(const void* address, size_t bytes) {
  const std::lock_guard lock(driver().mutex);
  const auto key = reinterpret_cast<uint64_t>(address);
  if (bytes > 0)
    driver().allocations[key] = bytes;
  else
    driver().allocations.erase(key);
}

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  ENTER_CONTEXT("cuMemAlloc_v2");
  if (bytes == 0) return convoy::testing::kInvalidValue;
  if (bytes > driver().free_bytes) return convoy::testing::kOutOfMemory;
  constexpr size_t kAlignment = 256;
  void* const memory =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  // As on a GPU, the content of new memory is undefined.
  std::memset(memory, 0xA5, std::min<size_t>(bytes, 1 << 20));
  *address = reinterpret_cast<uint64_t>(memory);
  fake_cuda_host_memory(memory, bytes);
  driver().free_bytes -= bytes;
  return 0;
}

int cuMemFree_v2(uint64_t address) {
  const auto found = driver().allocations.find(address);
  if (found == driver().allocations.end()) return convoy::testing::kInvalidValue;
  driver().free_bytes += found->second;
  driver().allocations.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  ENTER_CONTEXT("cuMemcpyHtoD_v2");
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}

int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  ENTER_CONTEXT("cuMemcpyDtoH_v2");
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void*) {
  ENTER_CONTEXT("cuMemsetD8Async");
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned,
                   unsigned, unsigned, void*, void** parameters, void**) {
  ENTER_CONTEXT("cuLaunchKernel");
  const std::lock_guard lock(driver().mutex);
  try {
    const auto* entry = static_cast<PtxEntry*>(function);
    const auto run = driver().watches ? &PtxEntry::run_watched : &PtxEntry::run;
    (entry->*run)(grid_x, block_x, parameters[0], driver().allocations);
    return 0;
  } catch (const PtxError& error) {
    std::fprintf(stderr, "fake_cuda: %s\n", error.what());
    return driver().broken = convoy::testing::kIllegalAddress;
  }
}

// These structs have the layout of CUlaunchAttribute and CUlaunchConfig.
struct FakeLaunchAttribute {
  int id;
  alignas(8) int value[16];
};
struct FakeLaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const FakeLaunchAttribute* attributes;
  unsigned num_attributes;
};

int cuLaunchKernelEx(const FakeLaunchConfig* config, void* function, void** parameters,
                     void** extra) {
  constexpr int kStartsEarly = 6, kHopper = 90;
  if (driver().capability < kHopper) return convoy::testing::kInvalidValue;
  for (unsigned at = 0; at < config->num_attributes; ++at) {
    const FakeLaunchAttribute& attribute = config->attributes[at];
    // A kernel that starts before the previous kernel ends must wait, since its inputs may not be
    // complete.
    if (attribute.id != kStartsEarly || attribute.value[0] != 1 ||
        !static_cast<PtxEntry*>(function)->waits())
      return convoy::testing::kInvalidValue;
  }
  return cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2],
                        config->block[0], config->block[1], config->block[2], config->shared_bytes,
                        config->stream, parameters, extra);
}

}  // extern "C"
