// SPDX-License-Identifier: Apache-2.0
//
// Hints for a user's file or folder that cannot be opened: the files or folders that exist beside
// it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace convoy {

// The hint for `code`, the errno of an open() for reading. For a missing file it names the files of
// the same kind (the same ending, or an ending that may replace it) in its folder: at most five,
// the nearest spelling first.
std::string unreadable_file_hint(const std::filesystem::path& path, int code);

// The hint for a missing folder: it names the folders beside it that hold a file `inside`, in the
// same order. Returns `otherwise` when there are no such folders.
std::string missing_folder_hint(const std::filesystem::path& path, std::string_view inside,
                                const std::string& otherwise);

}  // namespace convoy
