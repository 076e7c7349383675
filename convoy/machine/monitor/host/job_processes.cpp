// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/host/job_processes.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <vector>

#include "convoy/core/base/descriptor.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

// Reads a file of /proc, which is small and which the kernel writes for each reader.
std::optional<std::string> text_if_there(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return std::nullopt;
  std::string text;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 0; (count = ::read(file.get(), bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<size_t>(count));
  return text;
}

struct CpuTicks {
  int64_t own = 0;
  int64_t ended_children = 0;  // ended children that were waited for
};

// The name in /proc/PID/stat may hold any byte, so fields are counted from its end: the state is
// the third.
std::optional<CpuTicks> ticks_of(const fs::path& process) {
  const std::optional<std::string> text = text_if_there(process / "stat");
  if (!text || text->rfind(')') == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(text->rfind(')') + 1));
  constexpr int kFieldsBeforeTimes = 11;
  std::string skipped;
  for (int field = 0; field < kFieldsBeforeTimes; ++field) fields >> skipped;
  int64_t user = 0, system = 0, children_user = 0, children_system = 0;
  if (!(fields >> user >> system >> children_user >> children_system)) return std::nullopt;
  return CpuTicks{user + system, children_user + children_system};
}

// Resident pages that belong to no file and are not shared.
int64_t own_pages(const fs::path& process) {
  std::istringstream fields(text_if_there(process / "statm").value_or(""));
  int64_t size = 0, resident = 0, shared = 0;
  return fields >> size >> resident >> shared ? resident - shared : 0;
}

}  // namespace

std::optional<JobUsage> JobProcesses::read() {
  // When a child ends during this function, its times go to its parent, which was read before: for
  // a moment they are missing, but they never count twice.
  const std::optional<CpuTicks> root = ticks_of(proc_ / std::to_string(root_));
  int64_t ticks = root ? root->ended_children : 0;
  int64_t pages = 0;
  bool listed = false;
  std::vector<pid_t> open = {root_};
  while (!open.empty()) {
    const std::string number = std::to_string(open.back());
    open.pop_back();
    const std::optional<std::string> text =
        text_if_there(proc_ / number / "task" / number / "children");
    listed = listed || text.has_value();
    std::istringstream children(text.value_or(""));
    for (pid_t child = 0; children >> child;) {
      const fs::path process = proc_ / std::to_string(child);
      const std::optional<CpuTicks> times = ticks_of(process);
      if (!times) continue;
      ticks += times->own + times->ended_children;
      pages += own_pages(process);
      open.push_back(child);
    }
  }
  if (!root || !listed) {
    reason_ = "the kernel does not list the children of processes (CONFIG_PROC_CHILDREN)";
    return std::nullopt;
  }
  static const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const auto page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
  most_cpu_seconds_ = std::max(most_cpu_seconds_, static_cast<double>(ticks) / ticks_per_second);
  return JobUsage{most_cpu_seconds_, static_cast<double>(pages) * page_bytes / (1 << 20)};
}

}  // namespace convoy::monitor
