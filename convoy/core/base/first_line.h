// SPDX-License-Identifier: Apache-2.0
//
// Reads the short files in which a kernel reports one number or word each.
#pragma once

#include <filesystem>
#include <string>

namespace convoy {

// The first line without its line break. Empty when the file is missing or cannot be read.
std::string first_line(const std::filesystem::path& path);

}  // namespace convoy
