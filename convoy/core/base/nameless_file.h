// SPDX-License-Identifier: Apache-2.0
//
// Files without a name until they are complete. If the writer dies, nothing is left on disk.
#pragma once

#include <filesystem>

namespace convoy {

// Returns the descriptor of a new unnamed file in `folder`, for reading and writing, mode 0644 less
// the umask. Returns -1 when the file system supports no unnamed files (NFS), or when /proc, needed
// to name the file later, is missing.
int open_nameless(const std::filesystem::path& folder);

// Returns a name beside `path` that no other process uses, for the file that will replace `path`.
std::filesystem::path free_name_beside(const std::filesystem::path& path);

// Returns false, with errno set, when the name is taken or cannot be given.
bool give_name(int descriptor, const std::filesystem::path& name);

}  // namespace convoy
