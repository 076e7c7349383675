// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/byte_reader.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/wide_text.h"

namespace convoy::data {
namespace {

constexpr size_t kReadPieceBytes = size_t{1} << 18;

}  // namespace

ByteReader::ByteReader(std::filesystem::path path)
    : path_(std::move(path)), buffer_(kReadPieceBytes, '\0') {
  OpenBytes bytes = open_bytes(path_);
  stream_ = std::move(bytes.stream);
  compression_ = bytes.compression;
  refill();
  refuse_wide_text({buffer_.data(), filled_}, path_);
  if (std::string_view(buffer_.data(), filled_).starts_with("\xef\xbb\xbf")) {
    position_ = 3;
    offset_ = 3;
    line_start_ = 3;
  }
}

size_t ByteReader::read_into(std::span<char> free) {
  try {
    return stream_->read(free);
  } catch (DataError& error) {
    error.location().line = line_;
    throw;
  }
}

bool ByteReader::refill() {
  position_ = 0;
  filled_ = 0;
  if (buffer_.size() > kReadPieceBytes) buffer_ = std::string(kReadPieceBytes, '\0');
  filled_ = read_into(buffer_);
  return filled_ > 0;
}

std::string_view ByteReader::ahead(size_t bytes) {
  if (filled_ - position_ < bytes) {
    buffer_.erase(0, position_);
    filled_ -= position_;
    position_ = 0;
    buffer_.resize(std::max(bytes, kReadPieceBytes));
    while (filled_ < bytes) {
      const size_t count = read_into(std::span(buffer_).subspan(filled_));
      if (count == 0) break;
      filled_ += count;
    }
  }
  return std::string_view(buffer_).substr(position_, filled_ - position_);
}

int ByteReader::get() {
  const int byte = peek();
  if (byte == kEnd) return kEnd;
  ++position_;
  ++offset_;
  if (byte == '\n') {
    ++line_;
    line_start_ = offset_;
  }
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

void ByteReader::read_until(const ByteSet& stops, std::string& into, size_t max_bytes) {
  while (into.size() < max_bytes && peek() != kEnd && !stops[static_cast<uint8_t>(peek())]) {
    const size_t room = std::min(filled_ - position_, max_bytes - into.size());
    const auto begin = buffer_.begin() + static_cast<std::ptrdiff_t>(position_);
    const auto end = std::find_if(begin, begin + static_cast<std::ptrdiff_t>(room),
                                  [&](char byte) { return stops[static_cast<uint8_t>(byte)]; });
    into.append(begin, end);
    if (const auto lines = std::count(begin, end, '\n'); lines > 0) {
      line_ += lines;
      const auto last =
          std::find(std::make_reverse_iterator(end), std::make_reverse_iterator(begin), '\n');
      line_start_ = offset_ + (last.base() - begin);
    }
    position_ += static_cast<size_t>(end - begin);
    offset_ += end - begin;
  }
}

}  // namespace convoy::data
