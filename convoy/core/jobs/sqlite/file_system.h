// SPDX-License-Identifier: Apache-2.0
//
// The location of a SQLite store, and the kind of its file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace convoy::jobs {

// The path in the name of a store, PATH or sqlite:PATH. Throws ConfigError for another scheme.
std::filesystem::path sqlite_path(const std::string& store);

// `type`: the f_type of statfs(2). Only kinds known to be local count: SQLite's write-ahead log
// needs memory shared by all its users, which a network file system does not give to several hosts.
bool is_local_file_system(int64_t type);

// The f_type of the folder's file system. Throws IoError when it cannot be read.
int64_t file_system_type(const std::filesystem::path& folder);

}  // namespace convoy::jobs
