// SPDX-License-Identifier: Apache-2.0
//
// Temporary bytes: a file without a name that disappears with the process, or memory with the same
// interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "convoy/core/base/descriptor.h"

namespace convoy::data {

// One thread, except for read_at(). All members throw IoError.
class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& folder);
  static ScratchFile in_memory();

  void append(std::string_view bytes);
  template <class Plain>
  void append_plain(const Plain& value) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    append({reinterpret_cast<const char*>(&value), sizeof(Plain)});
  }
  void flush();  // call it before reading appended bytes
  int64_t size_bytes() const { return size_bytes_; }
  // Thread-safe. The range must be within the file.
  void read_at(int64_t offset_bytes, std::span<char> into) const;
  int descriptor() const { return file_.get(); }

 private:
  ScratchFile(Descriptor file, std::string place)
      : file_(std::move(file)), place_(std::move(place)) {}

  Descriptor file_;
  std::string place_;  // name of the place, for errors
  std::string pending_;
  int64_t size_bytes_ = 0;
};

// Reads a range of a scratch file from its begin to its end. One thread; refers to the file.
class ScratchReader {
 public:
  ScratchReader(const ScratchFile& file, int64_t begin_bytes, int64_t end_bytes,
                size_t buffer_bytes = size_t{1} << 20);
  explicit ScratchReader(const ScratchFile& file) : ScratchReader(file, 0, file.size_bytes()) {}

  bool at_end() const { return next_ == end_ && at_ == filled_; }
  // Fills `into`. Throws StateError when the range has fewer bytes left.
  void read(std::span<char> into);
  template <class Plain>
  Plain read_plain() {
    Plain value;
    read({reinterpret_cast<char*>(&value), sizeof(Plain)});
    return value;
  }

 private:
  const ScratchFile& file_;
  // Offset in the file of the bytes that are read into the buffer next.
  int64_t next_;
  int64_t end_;
  std::string buffer_;
  size_t at_ = 0;
  size_t filled_ = 0;
};

}  // namespace convoy::data
