// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/tokens/token_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"

namespace convoy::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kTokenPieceBytes = size_t{1} << 20;

enum PieceName { Offsets, SourceIndices, SupervisedCounts, Ids, Mask, Weights, Labels };

template <class Value>
std::string_view bytes_of(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(Value)};
}

template <class Value>
std::string_view bytes_of(std::span<const Value> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

void write_at(int descriptor, int64_t at_bytes, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor, bytes.data(), bytes.size(), at_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw IoError(fmt::format("could not write: {}", std::strerror(errno)),
                    {.hint = "free space on the disk of the token cache"});
    bytes.remove_prefix(static_cast<size_t>(count));
    at_bytes += count;
  }
}

void for_each_piece(int descriptor, int64_t begin_bytes, int64_t end_bytes,
                    const std::function<void(std::string_view)>& take) {
  std::string buffer(kTokenPieceBytes, '\0');
  while (begin_bytes < end_bytes) {
    const auto wanted = std::min(static_cast<int64_t>(buffer.size()), end_bytes - begin_bytes);
    const ssize_t count =
        ::pread(descriptor, buffer.data(), static_cast<size_t>(wanted), begin_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw IoError(
          fmt::format("could not read: {}", count == 0 ? "the file ended" : std::strerror(errno)),
          {.hint = "put the token cache on another disk with data.cache_dir"});
    take({buffer.data(), static_cast<size_t>(count)});
    begin_bytes += count;
  }
}

}  // namespace

uint32_t crc32c_of_file(int descriptor, int64_t begin_bytes, int64_t end_bytes) {
  uint32_t crc = 0;
  for_each_piece(descriptor, begin_bytes, end_bytes,
                 [&](std::string_view bytes) { crc = crc32c(bytes, crc); });
  return crc;
}

TokenFileWriter::TokenFileWriter(int descriptor, int64_t json_bytes, const TokenFileShape& shape)
    : descriptor_(descriptor) {
  const auto [num_rows, num_tokens, has_weights, has_labels] = shape;
  header_.json_bytes = json_bytes;
  header_.num_rows = num_rows;
  header_.num_tokens = num_tokens;
  header_.num_weights = has_weights ? num_tokens : 0;
  header_.num_labels = has_labels ? num_rows : 0;
  const std::array<int64_t, 7> sizes_bytes = {
      (num_rows + 1) * 8,      num_rows * 8,      num_rows * 8, num_tokens * 4, num_tokens,
      header_.num_weights * 4, header_.num_labels};
  auto at = static_cast<int64_t>(sizeof(TokenFileHeader) + padded(static_cast<size_t>(json_bytes)));
  for (size_t piece = 0; piece < pieces_.size(); ++piece) {
    pieces_[piece] = {.at_bytes = at, .end_bytes = at + sizes_bytes[piece]};
    at += static_cast<int64_t>(padded(static_cast<size_t>(sizes_bytes[piece])));
  }
  size_bytes_ = at;
  // The padding is never written: unwritten bytes of the file read as zeros.
  if (::ftruncate(descriptor_, size_bytes_) != 0)
    throw IoError(
        fmt::format("could not make room for {} bytes: {}", size_bytes_, std::strerror(errno)),
        {.hint = "free space on the disk of the token cache"});
  append(pieces_[Offsets], bytes_of(int64_t{0}));
}

void TokenFileWriter::append(Piece& piece, std::string_view bytes) {
  piece.pending += bytes;
  if (piece.pending.size() >= kTokenPieceBytes) flush(piece);
}

void TokenFileWriter::flush(Piece& piece) {
  const auto bytes = static_cast<int64_t>(piece.pending.size());
  CONVOY_INVARIANT(piece.at_bytes + bytes <= piece.end_bytes, "more rows than were announced");
  write_at(descriptor_, piece.at_bytes, piece.pending);
  piece.at_bytes += bytes;
  piece.pending.clear();
}

void TokenFileWriter::add(int64_t source_index, std::span<const int32_t> ids,
                          std::span<const uint8_t> supervised, std::span<const float> weights,
                          bool is_desirable) {
  tokens_ += static_cast<int64_t>(ids.size());
  const auto count = std::accumulate(supervised.begin(), supervised.end(), int64_t{0});
  append(pieces_[Offsets], bytes_of(tokens_));
  append(pieces_[SourceIndices], bytes_of(source_index));
  append(pieces_[SupervisedCounts], bytes_of(count));
  append(pieces_[Ids], bytes_of(ids));
  append(pieces_[Mask], bytes_of(supervised));
  if (header_.num_labels > 0) append(pieces_[Labels], bytes_of(static_cast<uint8_t>(is_desirable)));
  if (header_.num_weights == 0) return;
  const std::vector<float> ones(weights.empty() ? ids.size() : 0, 1.0F);
  append(pieces_[Weights], bytes_of(weights.empty() ? std::span<const float>(ones) : weights));
}

std::string TokenFileWriter::content_hash() {
  Sha256 hash;
  for (Piece& piece : pieces_) {
    flush(piece);
    CONVOY_INVARIANT(piece.at_bytes == piece.end_bytes, "fewer rows than were announced");
  }
  const auto num_rows = header_.num_rows;
  const std::array<std::pair<PieceName, int64_t>, 5> hashed = {{{Offsets, (num_rows + 1) * 8},
                                                                {Ids, header_.num_tokens * 4},
                                                                {Mask, header_.num_tokens},
                                                                {Weights, header_.num_weights * 4},
                                                                {Labels, header_.num_labels}}};
  for (const auto& [name, bytes] : hashed) {
    const int64_t end = pieces_[name].end_bytes;
    for_each_piece(descriptor_, end - bytes, end,
                   [&](std::string_view piece) { hash.update(piece); });
  }
  return hash.hex();
}

void TokenFileWriter::finish(std::string_view json) {
  CONVOY_INVARIANT(static_cast<int64_t>(json.size()) == header_.json_bytes,
                   "{} bytes of JSON, {} were announced", json.size(), header_.json_bytes);
  write_at(descriptor_, sizeof(TokenFileHeader), json);
  write_at(descriptor_, 0, bytes_of(header_));
  header_.crc = crc32c_of_file(descriptor_, TokenFileHeader::checked_from(), size_bytes_);
  write_at(descriptor_, 0, bytes_of(header_));
}

}  // namespace convoy::data
