// SPDX-License-Identifier: Apache-2.0
//
// Whole-file reads and durable, atomic writes. No function here follows a path that a file's
// content names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

// Throws DataError when the file is missing or unreadable, or is larger than `max_bytes`.
std::string read_file(const std::filesystem::path& path, int64_t max_bytes = int64_t{4} << 30);

// Writes `bytes` under a temporary name beside `path`, fsyncs, renames over `path`, fsyncs the
// folder. Creates parent folders. Throws IoError; then `path` is as it was and the temporary file
// is gone.
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

// Streams a large file with the same guarantee: `path` does not exist or keeps its old content
// until commit(). A device or a pipe receives the bytes as they are written.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  // removes the temporary file when commit() was not reached
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);  // appends. Throws IoError
  void write(std::span<const std::byte> bytes);
  void commit();  // fsync, rename, fsync folder

 private:
  std::filesystem::path path_;
  // The temporary name, empty until the file is named; always empty for a device or a pipe, which
  // is written to directly.
  std::filesystem::path temporary_;
  bool is_named_ = false;
  int descriptor_ = -1;
};

// fsync of a folder, so that a rename in it survives a power loss. Throws IoError.
void sync_folder(const std::filesystem::path& folder);

// A read-only view of a file. If a file is truncated while it is mapped, a read ends the process by
// SIGBUS. So small reads use pread and only files whose length was just checked by the same
// descriptor are mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws DataError
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_bytes_)}; }
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }  // open as long as this object exists

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace convoy
