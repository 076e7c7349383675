// SPDX-License-Identifier: Apache-2.0
//
// Files that have no name before they are whole: however their writer dies, nothing is left of
// them.
#pragma once

#include <filesystem>

namespace convoy {

// Descriptor of a file in `folder`, to read and write, 0644 less the umask. -1 where the file
// system has none without a name (NFS), or /proc is not there to name it later.
int open_nameless(const std::filesystem::path& folder);

// A name for what will take the place of `path`, that no other process has.
std::filesystem::path free_name_beside(const std::filesystem::path& path);

// False, with errno, where the name is taken or can not be given.
bool give_name(int descriptor, const std::filesystem::path& name);

}  // namespace convoy
