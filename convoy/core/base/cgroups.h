// SPDX-License-Identifier: Apache-2.0
//
// The control groups (v1 and v2) that this process is in.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace convoy {

// Where the kernel shows them; tests have folders of their own.
struct KernelFolders {
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
};

// Visits the folder of each group that counts `controller` ("cpu", "memory") for this process, the
// groups around it included. `unified`: of v2.
void visit_cgroups(
    const std::string& controller, const KernelFolders& kernel,
    const std::function<void(const std::filesystem::path& folder, bool unified)>& visit);

}  // namespace convoy
