// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/usable_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace convoy {
namespace {

namespace fs = std::filesystem;

// Returns the number after `name` in a file of lines "NAME NUMBER", or 0 when `name` is missing.
int64_t number_after(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  for (int64_t number = 0; file >> word;) {
    if (word != name) continue;
    return file >> number ? number : 0;
  }
  return 0;
}

int64_t number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : 0;  // "max" is no number
}

// Bytes that the group may have; -1 = no limit.
int64_t limit_of_group(const fs::path& folder, bool unified) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;  // version 1 shows "no limit" as about 2^63
  const int64_t limit = number_in(folder / (unified ? "memory.max" : "memory.limit_in_bytes"));
  return limit <= 0 || limit > kNoLimit ? -1 : limit;
}

// Bytes left in the group; -1 = no limit.
int64_t left_in_group(const fs::path& folder, bool unified) {
  const int64_t limit = limit_of_group(folder, unified);
  if (limit < 0) return -1;
  const int64_t used = number_in(folder / (unified ? "memory.current" : "memory.usage_in_bytes"));
  const int64_t cached =
      number_after(folder / "memory.stat", unified ? "inactive_file" : "total_inactive_file");
  return std::max<int64_t>(limit - used + cached, 1);
}

}  // namespace

int64_t usable_memory_bytes(const KernelFolders& kernel) {
  int64_t usable = number_after(kernel.proc / "meminfo", "MemAvailable:") * 1024;
  visit_cgroups("memory", kernel, [&](const fs::path& folder, bool unified) {
    const int64_t left = left_in_group(folder, unified);
    if (left > 0 && (usable == 0 || left < usable)) usable = left;
  });
  return usable;
}

int64_t total_memory_bytes(const KernelFolders& kernel) {
  int64_t total = number_after(kernel.proc / "meminfo", "MemTotal:") * 1024;
  visit_cgroups("memory", kernel, [&](const fs::path& folder, bool unified) {
    const int64_t limit = limit_of_group(folder, unified);
    if (limit > 0 && (total == 0 || limit < total)) total = limit;
  });
  return total;
}

}  // namespace convoy
