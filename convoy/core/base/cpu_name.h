// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace convoy {

// The kernel's name for the model of the first CPU, such as "AMD EPYC 9654"; empty when the kernel
// has none. Tests pass a folder with another machine's files as `proc`.
std::string cpu_name(const std::filesystem::path& proc = "/proc");

}  // namespace convoy
