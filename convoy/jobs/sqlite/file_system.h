// SPDX-License-Identifier: Apache-2.0
//
// What kind of file system a store lies on.
#pragma once

#include <cstdint>
#include <filesystem>

namespace convoy::jobs {

// By the f_type of statfs(2). Only kinds known to be local count: SQLite's write-ahead log needs memory shared by all
// its users, which hosts of a network file system do not have.
bool is_local_file_system(int64_t type);

// Of the folder. Throws IoError when it can not be asked.
int64_t file_system_type(const std::filesystem::path& folder);

}  // namespace convoy::jobs
