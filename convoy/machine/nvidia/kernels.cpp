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

// From CUDA 12.3 on, a recorded graph keeps the early start of launches
// (cudaGraphKernelNodePortProgrammatic).
constexpr int kEarlyVersion = 12'030;
constexpr int kHopper = 90;
// The mark of wait_for_kernels_before() in device_functions.cuh. Older GPUs ignore it.
constexpr std::string_view kWaitsHere = ".pragma \"kernels before\";";
// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION; its value is an int, 1 = allowed.
constexpr int kStartsEarly = 6;

bool starts_early(const Context& context) {
  return context.compute_capability() >= kHopper && context.call().LaunchKernelEx != nullptr &&
         context.driver().version_number() >= kEarlyVersion;
}

// Replaces the rest of the line of `text` that begins with `begin` by `to`.
void replace_line(std::string& text, std::string_view begin, std::string_view to) {
  const size_t at = text.find(begin);
  CONVOY_INVARIANT(at != std::string::npos, "PTX without {}", begin);
  text.replace(at, text.find('\n', at) - at, fmt::format("{} {}", begin, to));
}

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

std::string early_text_of(std::string text) {
  replace_line(text, ".version", "7.8");
  replace_line(text, ".target", "sm_90");
  constexpr std::string_view kWait = "griddepcontrol.wait;",
                             kStartNext = "griddepcontrol.launch_dependents;";
  const size_t marked = text.find(kWaitsHere);
  for (size_t at = marked; at != std::string::npos; at = text.find(kWaitsHere, at))
    text.replace(at, kWaitsHere.size(), kWait);
  // Begin after the declarations at the beginning of the body.
  size_t line = text.find("\n{\n", text.find(kEntry)) + 3;
  const auto is_declaration = [&] {
    const char first = text[text.find_first_not_of(" \t", line)];
    return first == '.' || first == '/' || first == '\n';
  };
  while (is_declaration()) line = text.find('\n', line) + 1;
  return text.insert(
      line, fmt::format("\t{}\n\t{}\n", marked == std::string::npos ? kWait : "", kStartNext));
}

Kernels::Kernels(const Context& context, KernelTexts texts, uint32_t block_threads)
    : context_(context),
      texts_(texts),
      block_threads_(block_threads),
      starts_early_(starts_early(context)) {
  if (texts_.empty())
    throw ConfigError("this Convoy was built without its kernels for GPUs",
                      {.hint = "`./run build` makes them where clang is installed; or compute on "
                               "CPUs: --devices cpu"});
}

Kernels::~Kernels() {
  try {
    context_.make_current();
    for (void* module : modules_) context_.call().ModuleUnload(module);
  } catch (const Error&) {
    // The modules were lost together with the device.
  }
}

const Kernel& Kernels::find(std::string_view name) {
  if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
  return kernels_.emplace(name, compile(name)).first->second;
}

Kernel Kernels::compile(std::string_view name) {
  const Driver& driver = context_.driver();
  const DriverFunctions& call = context_.call();
  std::string text = kernel_text_of(texts_, name);
  if (starts_early_) text = early_text_of(std::move(text));
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
  const DriverFunctions& call = context_.call();
  const auto start = [&] {
    if (!starts_early_)
      return call.LaunchKernel(kernel.function, started, 1, 1, block_threads_, 1, 1, 0, stream,
                               list, nullptr);
    LaunchAttribute early = {.id = kStartsEarly};
    early.value[0] = 1;
    const LaunchConfig config = {.grid = {started, 1, 1},
                                 .block = {block_threads_, 1, 1},
                                 .stream = stream,
                                 .attributes = &early,
                                 .num_attributes = 1};
    return call.LaunchKernelEx(&config, kernel.function, list, nullptr);
  };
  context_.driver().check(start(), "a kernel could not be started");
}

}  // namespace convoy::nvidia
