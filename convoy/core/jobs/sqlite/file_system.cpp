// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sqlite/file_system.h"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "convoy/core/base/error.h"

namespace convoy::jobs {
namespace {

// The numbers of local file systems, from linux/magic.h and from their sources. An overlay counts
// as local for locks and mmap: containers use it.
constexpr std::array<int64_t, 13> kLocal = {
    0xEF53,      // ext2, ext3, ext4
    0x58465342,  // xfs
    0x9123683E,  // btrfs
    0x01021994,  // tmpfs
    0x794C7630,  // overlayfs
    0xF2F52010,  // f2fs
    0x2FC12FC1,  // zfs
    0xCA451A4E,  // bcachefs
    0x858458F6,  // ramfs
    0x3153464A,  // jfs
    0x52654973,  // reiserfs
    0x3434,      // nilfs
    0x7366746E,  // ntfs3
};

}  // namespace

std::filesystem::path sqlite_path(const std::string& store) {
  constexpr std::string_view kScheme = "sqlite:";
  if (store.starts_with(kScheme)) return store.substr(kScheme.size());
  const size_t scheme = store.find("://");
  if (scheme != std::string::npos)
    throw ConfigError(
        fmt::format("job store: wanted a path, sqlite:PATH, postgresql://... or \"host=... "
                    "dbname=...\", found '{}://...'",
                    store.substr(0, scheme)),
        {.hint = "name a file such as runs.db, or a PostgreSQL server"});
  return store;
}

bool is_local_file_system(int64_t type) {
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

int64_t file_system_type(const std::filesystem::path& folder) {
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0)
    throw IoError(fmt::format("cannot use the folder of the job store: {}", std::strerror(errno)),
                  {.file = folder.string(), .hint = "make the folder, or name another"});
  return static_cast<int64_t>(info.f_type);
}

}  // namespace convoy::jobs
