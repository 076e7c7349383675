// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/byte_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/nearby_files.h"
#include "convoy/data/datasets/formats/parquet_plugin.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

struct CompressionFormat {
  Compression compression;
  const char* name;
  const char* suffix;
  std::string_view magic;
};
constexpr std::array<CompressionFormat, 3> kFormats = {
    CompressionFormat{Compression::Gzip, "gzip", ".gz", "\x1f\x8b"},
    CompressionFormat{Compression::Zstd, "Zstandard", ".zst", "\x28\xb5\x2f\xfd"},
    CompressionFormat{Compression::Bzip2, "bzip2", ".bz2", "BZh"}};

struct Foreign {
  const char* name;
  std::string_view magic;
  const char* hint;
};
constexpr std::array<Foreign, 3> kForeign = {
    Foreign{"xz",
            std::string_view("\xfd"
                             "7zXZ\0",
                             6),
            "unpack it with `xz -d`, or pack it with gzip or zstd"},
    Foreign{"a zip archive", "PK\x03\x04", "unpack it, and name a file of it"},
    Foreign{"a pointer of git-lfs, not the file itself", "version https://git-lfs.github.com/spec/",
            "fetch the files with `git lfs pull`"}};

constexpr size_t kLongestMagic = 48;

std::ifstream open_plain(const fs::path& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code))
    throw DataError(
        code ? fmt::format("cannot read the file: {}", code.message()) : "wanted a regular file",
        {.file = path.string(),
         .hint = code ? unreadable_file_hint(path, code.value())
                      : "name a file of rows; a folder is read as a data set of its own"});
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int failure = errno;
    throw DataError(fmt::format("cannot read the file: {}", std::strerror(failure)),
                    {.file = path.string(), .hint = unreadable_file_hint(path, failure)});
  }
  return file;
}

std::string first_bytes(std::ifstream& file) {
  std::string bytes(kLongestMagic, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

// True when the bytes begin with the magic number of the format. A text may begin with "BZh". A
// bzip2 file continues with the block size and the digits of pi, or of its square root if the file
// is empty.
bool has_magic(const std::string& bytes, const CompressionFormat& format) {
  if (!bytes.starts_with(format.magic)) return false;
  if (format.compression != Compression::Bzip2) return true;
  const std::string_view block = std::string_view(bytes).substr(std::min<size_t>(4, bytes.size()));
  return block.starts_with("1AY&SY") || block.starts_with("\x17rE8P\x90");
}

class PlainStream : public ByteStream {
 public:
  PlainStream(const fs::path& path, std::ifstream file) : path_(path), file_(std::move(file)) {}

  size_t read(std::span<char> into) override {
    file_.read(into.data(), static_cast<std::streamsize>(into.size()));
    if (file_.bad())
      throw DataError(
          "reading the file failed",
          {.file = path_.string(), .hint = "copy the file to another disk and name it there"});
    return static_cast<size_t>(file_.gcount());
  }

 private:
  fs::path path_;
  std::ifstream file_;
};

Compression compression_by(const std::string& bytes, const fs::path& path) {
  for (const Foreign& foreign : kForeign)
    if (bytes.starts_with(foreign.magic))
      throw DataError(fmt::format("the file is {}", foreign.name),
                      {.file = path.string(), .hint = foreign.hint});
  const Compression named = compression_named_by(path);
  for (const CompressionFormat& format : kFormats)
    if (has_magic(bytes, format) && (named == Compression::None || named == format.compression))
      return format.compression;
  if (named != Compression::None)
    throw DataError(
        fmt::format("the name ends in `{}`, but the file is not {}", path.extension().string(),
                    compression_name(named)),
        {.file = path.string(),
         .hint = "was it cut, or unpacked and not renamed? Get it again, or rename it"});
  return Compression::None;
}

}  // namespace

const char* compression_name(Compression compression) {
  for (const CompressionFormat& format : kFormats)
    if (format.compression == compression) return format.name;
  return "none";
}

Compression compression_named_by(const fs::path& path) {
  const std::string suffix = path.extension().string();
  for (const CompressionFormat& format : kFormats)
    if (suffix == format.suffix) return format.compression;
  return Compression::None;
}

fs::path without_compression(const fs::path& path) {
  if (compression_named_by(path) == Compression::None) return path;
  fs::path plain = path;
  return plain.replace_extension();
}

Compression compression_of(const fs::path& path) {
  std::ifstream file = open_plain(path);
  return compression_by(first_bytes(file), path);
}

OpenBytes open_bytes(const fs::path& path) {
  std::ifstream file = open_plain(path);
  const Compression compression = compression_by(first_bytes(file), path);
  if (compression != Compression::None) return {open_compressed(path, compression), compression};
  file.clear();  // a short file set the end-of-file flag
  file.seekg(0);
  return {std::make_unique<PlainStream>(path, std::move(file)), compression};
}

}  // namespace convoy::data
