// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a file as they were before somebody compressed it: plain files, gzip, Zstandard and
// bzip2.
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
  // Fills `into` from its start and returns how much was filled: nothing only at the end. Throws
  // DataError with the file, also where compressed bytes end early or do not fit their checksum.
  virtual size_t read(std::span<char> into) = 0;
};

enum class Compression { None, Gzip, Zstd, Bzip2 };

const char* compression_name(Compression compression);  // "gzip", ...

// By the suffix: .gz, .zst, .bz2.
Compression compression_named_by(const std::filesystem::path& path);

// The path without a suffix of compression: "rows.jsonl.gz" becomes "rows.jsonl".
std::filesystem::path without_compression(const std::filesystem::path& path);

// By the first bytes of the file; what its name promises must be true. Throws DataError for that,
// for xz and for archives, which are not read.
Compression compression_of(const std::filesystem::path& path);

struct OpenBytes {
  std::unique_ptr<ByteStream> stream;
  Compression compression = Compression::None;  // of the file
};

// Throws DataError when it cannot be read, is not a regular file, or is only the pointer that
// git-lfs puts in its place; IoError when what decompresses is not there.
OpenBytes open_bytes(const std::filesystem::path& path);

}  // namespace convoy::data
