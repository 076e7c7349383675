// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/line_tail.h"

#include <sys/stat.h>

#include <fstream>

namespace convoy::page {
namespace {

// Lines are read in blocks of this size. Parsing a block takes about 10 ms.
constexpr size_t kBlockBytes = 256 << 10;

}  // namespace

double LineTail::share_read() const {
  return offset_bytes_ >= size_bytes_
             ? 1
             : static_cast<double>(offset_bytes_) / static_cast<double>(size_bytes_);
}

bool LineTail::read(const std::function<void()>& begin_again,
                    const std::function<void(const std::string& line)>& take,
                    std::chrono::steady_clock::time_point deadline) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return true;
  if (status.st_ino != inode_ || status.st_size < offset_bytes_) {
    offset_bytes_ = 0;
    rest_.clear();
    begin_again();
  }
  inode_ = status.st_ino;
  size_bytes_ = status.st_size;
  if (status.st_size == offset_bytes_) return true;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_bytes_);
  std::string block(kBlockBytes, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    const auto count = static_cast<size_t>(file.gcount());
    offset_bytes_ += static_cast<int64_t>(count);
    size_t begin = 0;
    for (size_t end = 0; (end = block.find('\n', begin)) < count; begin = end + 1) {
      rest_.append(block, begin, end - begin);
      take(rest_);
      rest_.clear();
    }
    rest_.append(block, begin, count - begin);
    if (std::chrono::steady_clock::now() > deadline) return offset_bytes_ >= size_bytes_;
  }
  return true;
}

}  // namespace convoy::page
