// SPDX-License-Identifier: Apache-2.0
//
// The private folder of one launch: rendezvous file and error files. Mode 0700, gone with the
// object. When launcher and guard were killed together, as a job system does at the end of a job's
// time, the next launch of the same user on this machine removes the folder. A lock, which the
// kernel releases when its holder ends, marks a folder that is in use.
#pragma once

#include <filesystem>

#include "convoy/core/base/descriptor.h"

namespace convoy::processes {

class ScratchFolder {
 public:
  // Chooses an unused name in TMPDIR, or in /tmp when TMPDIR is not writable. The folder does not
  // exist yet, but a guard can get the name already.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  void make();  // call it before the other functions; throws IoError

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path store_file() const { return path_ / "store"; }
  std::filesystem::path error_file(int attempt, int local_rank) const;  // makes the file's folder

 private:
  std::filesystem::path path_;
  Descriptor owner_;  // holds the lock
};

}  // namespace convoy::processes
