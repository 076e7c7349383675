// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/byte_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/base/error.h"

namespace convoy::data {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;

}  // namespace

ByteReader::ByteReader(std::filesystem::path path)
    : path_(std::move(path)), buffer_(kPieceBytes, '\0') {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path_, code))
    throw DataError(
        code ? fmt::format("cannot read the file: {}", code.message()) : "wanted a regular file",
        {.file = path_.string()});
  file_.open(path_, std::ios::binary);
  if (!file_)
    throw DataError(fmt::format("cannot read the file: {}", std::strerror(errno)),
                    {.file = path_.string()});
  refill();
  if (std::string_view(buffer_.data(), filled_).starts_with("\xef\xbb\xbf")) {
    position_ = 3;
    offset_ = 3;
  }
}

bool ByteReader::refill() {
  file_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  filled_ = static_cast<size_t>(file_.gcount());
  position_ = 0;
  if (file_.bad())
    throw DataError("reading the file failed", {.file = path_.string(), .line = line_});
  return filled_ > 0;
}

int ByteReader::get() {
  const int byte = peek();
  if (byte == kEnd) return kEnd;
  ++position_;
  ++offset_;
  if (byte == '\n') ++line_;
  return byte;
}

bool ByteReader::read_line(std::string& line, size_t max_bytes) {
  bool fits = true;
  while (peek() != kEnd) {
    const std::string_view rest(buffer_.data() + position_, filled_ - position_);
    const size_t newline = rest.find('\n');
    const size_t count = std::min(newline, rest.size());
    fits = fits && line.size() + count <= max_bytes;
    if (fits) line.append(rest.substr(0, count));
    position_ += count;
    offset_ += static_cast<int64_t>(count);
    if (newline != std::string_view::npos) {
      get();
      break;
    }
  }
  return fits;
}

}  // namespace convoy::data
