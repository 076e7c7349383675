// SPDX-License-Identifier: Apache-2.0
//
// Where a SQLite store lies, and on what kind of file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace convoy::jobs {

// The file that the store's name stands for: PATH or sqlite:PATH. Throws ConfigError for another
// scheme.
std::filesystem::path sqlite_path(const std::string& store);

// By the f_type of statfs(2). Only kinds known to be local count: SQLite's write-ahead log needs
// memory shared by all its users, which hosts of a network file system do not have.
bool is_local_file_system(int64_t type);

// Of the folder. Throws IoError when it can not be asked.
int64_t file_system_type(const std::filesystem::path& folder);

}  // namespace convoy::jobs
