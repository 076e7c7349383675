// SPDX-License-Identifier: Apache-2.0
//
// Checks the place where a command writes: it neither replaces an existing file nor adds to an
// existing folder.
#pragma once

#include <filesystem>

namespace convoy::recipes {

// Throws ConfigError when `file` exists already.
void require_new_file(const std::filesystem::path& file);

// Throws ConfigError when `folder` exists already and is not an empty folder.
void require_new_folder(const std::filesystem::path& folder);

}  // namespace convoy::recipes
