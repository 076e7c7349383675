// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/memory_kills.h"

#include <fstream>
#include <string>

namespace convoy::processes {
namespace {

namespace fs = std::filesystem;

// The number after `name` in a file of "name number" lines; 0 = there is none.
int64_t counter_in(const fs::path& file, const std::string& name) {
  std::ifstream lines(file);
  std::string key;
  for (int64_t value = 0; lines >> key >> value;)
    if (key == name) return value;
  return 0;
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

MemoryKills::MemoryKills(const fs::path& sys, const fs::path& proc)
    : machine_file_(proc / "vmstat") {
  std::ifstream groups(proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path folder = fs::path(line.substr(second + 1)).relative_path();
    const fs::path root = sys / "fs/cgroup";
    // In a container the path may be a path of the host, while only the container's root is
    // mounted.
    const auto add = [&](const fs::path& base, const char* name) {
      for (const fs::path& file : {base / folder / name, base / name})
        if (fs::exists(file)) {
          cgroup_files_.push_back(file);
          return;
        }
    };
    if (controllers.empty()) add(root, "memory.events");
    if (names_memory(controllers)) add(root / "memory", "memory.oom_control");
  }
  // The machine's counter includes the kills of other jobs.
  if (!cgroup_files_.empty()) machine_file_.clear();
  seen_ = count();
}

int64_t MemoryKills::count() const {
  int64_t kills = counter_in(machine_file_, "oom_kill");
  for (const fs::path& file : cgroup_files_) kills += counter_in(file, "oom_kill");
  return kills;
}

bool MemoryKills::happened() {
  const int64_t now = count();
  const bool more = now > seen_;
  seen_ = now;
  return more;
}

}  // namespace convoy::processes
