// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/fake_nccl_hooks.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>

#include "fake_nccl/fake_nccl.h"
#include "simulated_device/machine.h"

namespace convoy::simulated {
namespace {

void* begin(void* stream, const FakeNcclRange* ranges, size_t count) {
  std::vector<Use> uses;
  for (size_t at = 0; at < count; ++at) {
    const auto* const first = static_cast<const char*>(ranges[at].begin);
    uses.push_back({first, first + ranges[at].bytes, ranges[at].writes});
  }
  try {
    return new Moment(machine().hold(machine().stream_of(stream), uses));
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "%s\n", error.what_without_backtrace());
    return nullptr;
  }
}

bool is_reached(void* work) { return machine().is_reached(*static_cast<Moment*>(work)); }

void end(void* work) {
  machine().let_go(*static_cast<Moment*>(work));
  delete static_cast<Moment*>(work);
}

void* address(const void* device_address) { return machine().device_view(device_address); }

}  // namespace

void load_fake_nccl() {
  static const FakeNcclDevice hooks{begin, is_reached, end, address};
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  void* const library = dlopen((folder / "libfake_nccl.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  TORCH_CHECK(library != nullptr, dlerror());
  const auto use =
      reinterpret_cast<decltype(&fake_nccl_use_device)>(dlsym(library, "fake_nccl_use_device"));
  TORCH_CHECK(use != nullptr, dlerror());
  use(&hooks);
}

}  // namespace convoy::simulated
