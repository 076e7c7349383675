// SPDX-License-Identifier: Apache-2.0
//
// A file, compressed or not, as a stream of bytes with its offset and line. Reads ahead in pieces:
// a file is never in memory whole, and a file that shrinks meanwhile only ends early.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "convoy/data/datasets/formats/byte_stream.h"

namespace convoy::data {

using ByteSet = std::array<bool, 256>;

constexpr ByteSet byte_set(std::string_view bytes) {
  ByteSet set{};
  for (const char byte : bytes) set[static_cast<uint8_t>(byte)] = true;
  return set;
}

class ByteReader {
 public:
  static constexpr int kEnd = -1;

  // Skips a UTF-8 byte order mark. Throws DataError when the file cannot be read, or is UTF-16.
  explicit ByteReader(std::filesystem::path path);

  int peek() {
    return position_ < filled_ || refill() ? static_cast<uint8_t>(buffer_[position_]) : kEnd;
  }
  int get();  // reads one byte; counts lines and bytes
  // Returns the next bytes without consuming them: at least `bytes`, or fewer at the end of the
  // file. All of these bytes are in memory. The view is valid until the next call. Throws
  // DataError.
  std::string_view ahead(size_t bytes);
  // Appends the bytes up to the next '\n' to `line`, at most `max_bytes`. The '\n' is consumed and
  // not appended; the rest of a longer line is skipped. Returns false when the line was longer.
  bool read_line(std::string& line, size_t max_bytes);
  // Appends bytes to `into` until the next byte is one of `stops`, the file ends, or `into` holds
  // `max_bytes`.
  void read_until(const ByteSet& stops, std::string& into, size_t max_bytes);
  int64_t line() const { return line_; }  // 1-based line of the next byte
  // 1-based column of the next byte, in bytes.
  int64_t column() const { return offset_ - line_start_ + 1; }
  int64_t offset_bytes() const { return offset_; }  // uncompressed offset of the next byte
  const std::filesystem::path& path() const { return path_; }
  Compression compression() const { return compression_; }  // compression of the file

 private:
  bool refill();
  size_t read_into(std::span<char> free);

  std::filesystem::path path_;
  std::unique_ptr<ByteStream> stream_;
  Compression compression_ = Compression::None;
  std::string buffer_;
  size_t position_ = 0;
  size_t filled_ = 0;
  int64_t line_ = 1;
  int64_t offset_ = 0;
  int64_t line_start_ = 0;  // offset of the first byte of the current line
};

}  // namespace convoy::data
