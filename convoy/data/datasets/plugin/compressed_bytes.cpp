// SPDX-License-Identifier: Apache-2.0
#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/util/compression.h>

#include <string>
#include <type_traits>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/formats/parquet_plugin.h"
#include "convoy/data/datasets/plugin/arrow_status.h"

namespace convoy::data {
namespace {

std::unique_ptr<arrow::util::Codec> codec_of(Compression compression) {
  const auto type = compression == Compression::Gzip   ? arrow::Compression::GZIP
                    : compression == Compression::Zstd ? arrow::Compression::ZSTD
                                                       : arrow::Compression::BZ2;
  auto codec = arrow::util::Codec::Create(type);
  check(codec.status());
  return std::move(*codec);
}

// Reads all members, frames or streams of a file as one stream.
class CompressedBytes : public ByteStream {
 public:
  CompressedBytes(std::filesystem::path path, Compression compression)
      : path_(std::move(path)), compression_(compression) {
    guarded([&] {
      codec_ = codec_of(compression);
      auto file = arrow::io::ReadableFile::Open(path_.string());
      check(file.status());
      auto stream = arrow::io::CompressedInputStream::Make(codec_.get(), *file);
      check(stream.status());
      stream_ = *stream;
    });
  }

  size_t read(std::span<char> into) override {
    int64_t count = 0;
    guarded([&] {
      const auto bytes = stream_->Read(static_cast<int64_t>(into.size()), into.data());
      check(bytes.status());
      count = *bytes;
    });
    return static_cast<size_t>(count);
  }

 private:
  template <class Action>
  void guarded(Action&& action) {
    try {
      action();
    } catch (const std::exception& error) {
      const std::string_view reason = find_invalid_utf8(error.what()) ? "damaged" : error.what();
      throw DataError(fmt::format("the {} bytes cannot be unpacked: {}",
                                  compression_name(compression_), reason),
                      {.file = path_.string(), .hint = "the file is damaged or cut: get it again"});
    }
  }

  std::filesystem::path path_;
  Compression compression_;
  std::unique_ptr<arrow::util::Codec> codec_;
  std::shared_ptr<arrow::io::CompressedInputStream> stream_;
};

class ArrowCompressor : public Compressor {
 public:
  explicit ArrowCompressor(Compression compression) {
    guarded([&] {
      codec_ = codec_of(compression);
      auto packer = codec_->MakeCompressor();
      check(packer.status());
      packer_ = *packer;
    });
  }

  void add(std::string_view bytes, std::string& packed) override {
    guarded([&] {
      while (!bytes.empty()) {
        auto [into, room] = grown(packed);
        const auto step =
            packer_->Compress(static_cast<int64_t>(bytes.size()),
                              reinterpret_cast<const uint8_t*>(bytes.data()), room, into);
        check(step.status());
        shrink(packed, room - step->bytes_written);
        bytes.remove_prefix(static_cast<size_t>(step->bytes_read));
      }
    });
  }

  void finish(std::string& packed) override {
    guarded([&] {
      bool again = true;
      while (again) {
        auto [into, room] = grown(packed);
        const auto step = packer_->End(room, into);
        check(step.status());
        shrink(packed, room - step->bytes_written);
        again = step->should_retry;
      }
    });
  }

 private:
  static constexpr size_t kRoomBytes = size_t{1} << 17;

  static std::pair<uint8_t*, int64_t> grown(std::string& packed) {
    const size_t filled = packed.size();
    packed.resize(filled + kRoomBytes);
    return {reinterpret_cast<uint8_t*>(packed.data() + filled), kRoomBytes};
  }
  static void shrink(std::string& packed, int64_t unused) {
    packed.resize(packed.size() - static_cast<size_t>(unused));
  }
  template <class Action>
  void guarded(Action&& action) {
    try {
      action();
    } catch (const std::exception& error) {
      throw IoError(
          fmt::format("the bytes cannot be packed: {}", error.what()),
          {.hint = "write the file without compression: leave .gz or .zst out of its name"});
    }
  }

  std::unique_ptr<arrow::util::Codec> codec_;
  std::shared_ptr<arrow::util::Compressor> packer_;
};

}  // namespace
}  // namespace convoy::data

extern "C" __attribute__((visibility("default"))) convoy::data::ByteStream* convoy_open_compressed(
    const std::filesystem::path& path, convoy::data::Compression compression) {
  return new convoy::data::CompressedBytes(path, compression);
}

extern "C" __attribute__((visibility("default"))) convoy::data::Compressor* convoy_make_compressor(
    convoy::data::Compression compression) {
  return new convoy::data::ArrowCompressor(compression);
}

static_assert(
    std::is_same_v<decltype(convoy_open_compressed), convoy::data::OpenCompressedFunction>);
static_assert(
    std::is_same_v<decltype(convoy_make_compressor), convoy::data::MakeCompressorFunction>);
