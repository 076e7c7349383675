// SPDX-License-Identifier: Apache-2.0
//
// One writer per run folder. The lock ends with its process, however that ends, so a stale one is
// simply taken over.
#pragma once

#include <filesystem>

namespace convoy::io {

class FolderLock {
 public:
  // Creates the folder if needed. Throws ConfigError naming the host and process that hold it,
  // IoError otherwise.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace convoy::io
