// SPDX-License-Identifier: Apache-2.0
//
// Where a command writes: nothing that is there is written over or mixed with.
#pragma once

#include <filesystem>

namespace convoy::recipes {

// Throws ConfigError when there is something at `file`.
void require_new_file(const std::filesystem::path& file);

// An empty folder may be there. Throws ConfigError for anything else.
void require_new_folder(const std::filesystem::path& folder);

}  // namespace convoy::recipes
