// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/run_fault.h"

#include <c10/util/Exception.h>

#include <new>
#include <system_error>

namespace convoy::recipes {
namespace {

bool holds_any(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (message.find(word) != std::string::npos) return true;
  return false;
}

// c10::alloc_cpu throws an untyped error: "not enough memory" in some versions, "can't allocate
// memory" in others.
bool is_out_of_memory(const std::string& message) {
  return holds_any(message, {"DefaultCPUAllocator", "not enough memory"});
}

// Error texts of CUDA's libraries; only its runtime's errors have a type.
bool is_of_device(const std::string& message) {
  return holds_any(message, {"CUDA error", "CUBLAS_STATUS", "cuBLAS", "cuDNN", "no kernel image"});
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Error failed_device(const std::string& message) {
  return DeviceError(fmt::format("the GPU refused: {}", first_line(message)),
                     {.hint = "nvidia-smi shows its state; tools/gpu_check.sh tests it"});
}

Error bug(const std::string& message) {
  return StateError(fmt::format("a bug in Convoy: {}", message),
                    {.hint = "please report it with the command line"});
}

Error fault_of_libtorch(const std::string& message, const std::string& memory_hint) {
  if (holds_any(message, {"does not have a deterministic implementation",
                          "Deterministic behavior was enabled"}))
    return ConfigError(fmt::format("deterministic: LibTorch cannot: {}", first_line(message)),
                       {.key = "deterministic", .hint = "leave it out, or use --devices cpu"});
  if (is_of_device(message)) return failed_device(message);
  if (is_out_of_memory(message)) return IoError("out of memory", {.hint = memory_hint});
  return bug(message);
}

}  // namespace

Error fault_of(const std::exception& error, const std::string& memory_hint) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return *own;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return IoError("out of memory", {.hint = memory_hint});
  if (const auto* full = dynamic_cast<const c10::OutOfMemoryError*>(&error))
    // The text contains the device's capacity and the requested size.
    return IoError(fmt::format("out of memory: {}", full->what_without_backtrace()),
                   {.hint = memory_hint});
  if (const auto* device = dynamic_cast<const c10::AcceleratorError*>(&error))
    return failed_device(device->what_without_backtrace());
  if (const auto* libtorch = dynamic_cast<const c10::Error*>(&error))
    return fault_of_libtorch(libtorch->what_without_backtrace(), memory_hint);
  if (dynamic_cast<const std::system_error*>(&error) != nullptr)
    return IoError(fmt::format("the system refused: {}", error.what()),
                   {.hint = "raise the limits of memory and processes (ulimit -v, -u)"});
  return bug(error.what());
}

}  // namespace convoy::recipes
