// SPDX-License-Identifier: Apache-2.0
//
// The control groups (v1 and v2) that this process is in.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace convoy {

// The folders where the kernel shows control groups. Tests use folders of their own.
struct KernelFolders {
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
};

// Calls the visitor with the folder of each group that counts `controller` ("cpu", "memory") for
// this process, from its own group to the outermost. `unified`: the folder belongs to version 2.
void visit_cgroups(
    const std::string& controller, const KernelFolders& kernel,
    const std::function<void(const std::filesystem::path& folder, bool unified)>& visit);

}  // namespace convoy
