// SPDX-License-Identifier: Apache-2.0
//
// The short files in which a kernel tells one figure or word each.
#pragma once

#include <filesystem>
#include <string>

namespace convoy {

// Without its line break; empty where the file is not, or cannot be read.
std::string first_line(const std::filesystem::path& path);

}  // namespace convoy
