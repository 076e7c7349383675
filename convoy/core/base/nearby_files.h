// SPDX-License-Identifier: Apache-2.0
//
// Names what is there instead of a file or folder of a user that cannot be opened.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace convoy {

// For the errno of an open() for reading. A missing file: the files of its kind (the same ending,
// or one that is read in its place) that lie in its folder, at most five, the nearest spelling
// first.
std::string unreadable_file_hint(const std::filesystem::path& path, int code);

// For a missing folder: the folders beside it that hold a file `inside`, in the same order; or
// `otherwise` where there are none.
std::string missing_folder_hint(const std::filesystem::path& path, std::string_view inside,
                                const std::string& otherwise);

}  // namespace convoy
