// SPDX-License-Identifier: Apache-2.0
//
// The uncompressed bytes of a file: plain files, gzip, Zstandard and bzip2.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace convoy::data {

// One thread.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `into` from its start and returns the number of bytes, which is 0 only at the end. Throws
  // DataError with the file name, also when compressed bytes end early or fail their checksum.
  virtual size_t read(std::span<char> into) = 0;
};

enum class Compression { None, Gzip, Zstd, Bzip2 };

const char* compression_name(Compression compression);  // "gzip", ...

// The compression that the suffix names: .gz, .zst, .bz2.
Compression compression_named_by(const std::filesystem::path& path);

// The path without a suffix of compression: "rows.jsonl.gz" becomes "rows.jsonl".
std::filesystem::path without_compression(const std::filesystem::path& path);

// The compression that the first bytes of the file show. Throws DataError when the suffix disagrees
// with it, and for xz and archives, which are not supported.
Compression compression_of(const std::filesystem::path& path);

struct OpenBytes {
  std::unique_ptr<ByteStream> stream;
  Compression compression = Compression::None;  // compression of the file
};

// Throws DataError when the file cannot be read, is not a regular file, or is only a git-lfs
// pointer; IoError when the decompression plugin is missing.
OpenBytes open_bytes(const std::filesystem::path& path);

}  // namespace convoy::data
