// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/nvidia/kernels.h"

#include <algorithm>
#include <array>

#include "convoy/core/base/error.h"

namespace convoy::nvidia {
namespace {

// Values of CUjit_option.
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferSize = 6;

constexpr std::string_view kEntry = ".visible .entry ";

}  // namespace

std::string kernel_text_of(KernelTexts texts, std::string_view name) {
  for (const std::string_view all : texts) {
    const size_t begin = all.find(fmt::format("{}{}(", kEntry, name));
    if (begin == std::string_view::npos) continue;
    // All kernels share the lines before the first one.
    std::string text(all.substr(0, all.find(kEntry)));
    return text.append(all.substr(begin, all.find("\n}", begin) + 3 - begin));
  }
  throw StateError(fmt::format("no kernel {}", name));
}

Kernels::Kernels(const Context& context, KernelTexts texts, uint32_t block_threads)
    : context_(context), texts_(texts), block_threads_(block_threads) {
  CONVOY_CHECK(!texts_.empty(), ConfigError,
               "this Convoy was built without its kernels for GPUs: there was no clang++");
}

Kernels::~Kernels() {
  try {
    context_.make_current();
    for (void* module : modules_) context_.call().ModuleUnload(module);
  } catch (const Error&) {
    // They went with the device.
  }
}

const Kernel& Kernels::find(std::string_view name) {
  if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
  return kernels_.emplace(name, compile(name)).first->second;
}

Kernel Kernels::compile(std::string_view name) {
  const Driver& driver = context_.driver();
  const DriverFunctions& call = context_.call();
  const std::string text = kernel_text_of(texts_, name);
  std::array<char, 4096> log{};
  std::array<int, 2> options = {kJitErrorLogBuffer, kJitErrorLogBufferSize};
  // The driver takes the size as a number in place of a pointer.
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  void* module = nullptr;
  const int code =
      call.ModuleLoadDataEx(&module, text.c_str(), options.size(), options.data(), values.data());
  driver.check(code, fmt::format("the driver could not compile {}{}{}", name,
                                 log[0] == 0 ? "" : ": ", log.data())
                         .c_str());
  modules_.push_back(module);
  Kernel kernel;
  driver.check(call.ModuleGetFunction(&kernel.function, module, std::string(name).c_str()),
               "a kernel is missing");
  int blocks = 0;
  driver.check(call.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function,
                                                              static_cast<int>(block_threads_), 0),
               "a kernel does not fit on the GPU");
  kernel.resident_blocks = static_cast<uint64_t>(std::max(1, blocks)) *
                           static_cast<uint64_t>(context_.multiprocessors());
  return kernel;
}

void Kernels::launch(const Kernel& kernel, uint64_t blocks, void* stream,
                     const void* parameters) const {
  const auto started =
      static_cast<unsigned>(std::clamp<uint64_t>(blocks, 1, kernel.resident_blocks));
  void* list[] = {const_cast<void*>(parameters)};
  context_.driver().check(
      context_.call().LaunchKernel(kernel.function, started, 1, 1, block_threads_, 1, 1, 0, stream,
                                   list, nullptr),
      "a kernel could not be started");
}

}  // namespace convoy::nvidia
