// SPDX-License-Identifier: Apache-2.0
//
// Returns the whole lines added to a growing file since the last call. It keeps at most a block of
// the file and the longest line in memory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace convoy::page {

class LineTail {
 public:
  explicit LineTail(std::filesystem::path path) : path_(std::move(path)) {}

  // Passes new lines to `take`. When the file was replaced or shortened, calls `begin_again` first
  // and passes all lines again. A missing file has no lines; an incomplete line waits for the next
  // call. Stops at most one block after `deadline`; returns false when there is more.
  bool read(const std::function<void()>& begin_again,
            const std::function<void(const std::string& line)>& take,
            std::chrono::steady_clock::time_point deadline =
                std::chrono::steady_clock::time_point::max());

  // Share of the bytes that the file had at the last call.
  double share_read() const;

 private:
  std::filesystem::path path_;
  ino_t inode_ = 0;
  int64_t offset_bytes_ = 0;
  int64_t size_bytes_ = 0;
  std::string rest_;  // start of the incomplete line
};

}  // namespace convoy::page
