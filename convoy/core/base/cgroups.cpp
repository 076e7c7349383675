// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/cgroups.h"

#include <fstream>

namespace convoy {
namespace {

namespace fs = std::filesystem;

// True for "cpu" in "cpu,cpuacct", false for "cpu" in "cpuset".
bool names(const std::string& controllers, const std::string& controller) {
  return ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
}

}  // namespace

void visit_cgroups(const std::string& controller, const KernelFolders& kernel,
                   const std::function<void(const fs::path& folder, bool unified)>& visit) {
  std::ifstream groups(kernel.proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !names(controllers, controller)) continue;
    fs::path root = kernel.sys / "fs/cgroup";
    if (!unified) root /= fs::exists(root / controllers) ? controllers : controller;
    // In a container this may be a path of the host, of which only a part is mounted. So every
    // level of the path is visited, up to the root.
    fs::path folder = fs::path(line.substr(second + 1)).relative_path();
    while (true) {
      visit(root / folder, unified);
      if (folder.empty()) break;
      folder = folder.parent_path();
    }
  }
}

}  // namespace convoy
