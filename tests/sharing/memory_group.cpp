// SPDX-License-Identifier: Apache-2.0
#include "sharing/memory_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

bool write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  return stream.good();
}

}  // namespace

// Version 1 of control groups has a separate tree for memory; version 2 has one tree.
MemoryGroup::MemoryGroup(int64_t limit_bytes) {
  const std::string name = fmt::format("convoy-test-{}", ::getpid());
  const std::string limit = std::to_string(limit_bytes);
  std::error_code error;
  for (const auto& [root, file] : {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                   std::pair{"/sys/fs/cgroup", "memory.max"}}) {
    const fs::path folder = fs::path(root) / name;
    if (!fs::is_directory(root, error) || !fs::create_directory(folder, error)) continue;
    if (fs::exists(folder / file) && write(folder / file, limit)) {
      folder_ = folder;
      // Without these settings, pages above the limit would be swapped out without an error.
      write(folder / "memory.swappiness", "0");
      write(folder / "memory.swap.max", "0");
      return;
    }
    fs::remove(folder, error);
  }
}

MemoryGroup::~MemoryGroup() {
  std::error_code ignored;
  for (int attempt = 0; works() && attempt < 100 && !fs::remove(folder_, ignored); ++attempt)
    ::usleep(20'000);  // the last process may still be ending
}

std::string MemoryGroup::around(const std::string& command) const {
  return fmt::format("echo $$ > '{}' && exec {}", (folder_ / "cgroup.procs").string(), command);
}

}  // namespace convoy::testing
