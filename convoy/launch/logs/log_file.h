// SPDX-License-Identifier: Apache-2.0
//
// A log file on a disk that may be full or failing. The caller shows elsewhere what cannot be
// stored. Storing is tried again from time to time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "convoy/core/base/descriptor.h"

namespace convoy::launch {

enum class FileStart { Append, Anew };

class LogFile {
 public:
  using Clock = std::chrono::steady_clock;

  LogFile() = default;  // stores nothing and reports no failure
  // Makes the folder of `path` too. Throws nothing: see failure(). After a failure, write() tries
  // again once `retry_wait` has passed.
  LogFile(std::filesystem::path path, FileStart start, std::chrono::milliseconds retry_wait);

  // Writes the bytes of `first`, then of `second`. Returns false when some of them were not stored.
  // Blocks on the disk.
  bool write(std::string_view first, std::string_view second = {});

  bool wanted() const { return !path_.empty(); }
  int failure() const { return failure_; }      // errno of the last failure; 0 = works
  bool exists() const { return file_.open(); }  // the file could be made
  uint64_t stored_bytes() const { return stored_bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  bool write_all(std::string_view first, std::string_view second);

  std::filesystem::path path_;
  Descriptor file_;
  int failure_ = 0;
  std::chrono::milliseconds retry_wait_{0};
  Clock::time_point retry_at_;
  uint64_t missing_bytes_ = 0;
  uint64_t stored_bytes_ = 0;
};

}  // namespace convoy::launch
