// SPDX-License-Identifier: Apache-2.0
//
// The whole lines that a growing file has got since the last look. Memory: a block and the longest
// line.
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

  // `begin_again` is called first where the file was replaced or shortened: all lines come once
  // more. A file that is not there has no lines; a line that is still being written waits for the
  // next call. Stops within a block of `deadline`; false: there is more.
  bool read(const std::function<void()>& begin_again,
            const std::function<void(const std::string& line)>& take,
            std::chrono::steady_clock::time_point deadline =
                std::chrono::steady_clock::time_point::max());

  // Of the bytes that were there at the last call.
  double share_read() const;

 private:
  std::filesystem::path path_;
  ino_t inode_ = 0;
  int64_t offset_bytes_ = 0;
  int64_t size_bytes_ = 0;
  std::string rest_;  // of the line that is being written
};

}  // namespace convoy::page
