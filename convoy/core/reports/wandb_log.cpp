// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/reports/wandb_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/protobuf_fields.h"

namespace convoy::reports {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockBytes = 32768;
constexpr int64_t kPieceHeadBytes = 7;                        // checksum 4, length 2, kind 1
constexpr std::string_view kFileHead{":W&B\xe1\xbe\x00", 7};  // name, 0xbee1, version 0

enum Kind : char { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::string piece_of(Kind kind, std::string_view bytes) {
  const std::string typed = std::string(1, kind) + std::string(bytes);
  std::string piece;
  put_fixed32(piece, crc32(typed));
  piece += static_cast<char>(bytes.size() & 0xff);
  piece += static_cast<char>(bytes.size() >> 8);
  return piece + typed;
}

uint32_t fixed32(std::string_view bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

int64_t file_bytes(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// Offset of the next piece: the rest of a block that is too short for a piece's head is not used.
int64_t next_piece(int64_t offset) {
  const int64_t left = kBlockBytes - offset % kBlockBytes;
  return left < kPieceHeadBytes ? offset + left : offset;
}

}  // namespace

uint32_t crc32(std::string_view bytes, uint32_t crc) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t index = 0; index < 256; ++index) {
      uint32_t value = index;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
      made[index] = value;
    }
    return made;
  }();
  crc = ~crc;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

WandbLog::WandbLog(const fs::path& file, const Log& log)
    : file_(file, log), size_bytes_(file_bytes(file)) {
  if (size_bytes_ == 0 && file_.append(kFileHead))
    size_bytes_ = static_cast<int64_t>(kFileHead.size());
}

void WandbLog::append(std::string_view record) {
  std::string text;  // all pieces of the record, so that it is written whole or not at all
  int64_t at = size_bytes_;
  bool is_first = true;
  do {
    const int64_t begin = next_piece(at);
    text.append(static_cast<size_t>(begin - at), '\0');
    const int64_t room = kBlockBytes - begin % kBlockBytes - kPieceHeadBytes;
    const std::string_view part = record.substr(0, static_cast<size_t>(room));
    record.remove_prefix(part.size());
    const Kind kind = record.empty() ? (is_first ? kWhole : kLast) : (is_first ? kFirst : kMiddle);
    text += piece_of(kind, part);
    at = begin + kPieceHeadBytes + static_cast<int64_t>(part.size());
    is_first = false;
  } while (!record.empty());
  if (file_.append(text)) size_bytes_ = at;
}

int64_t cut_wandb_log(const fs::path& file,
                      const std::function<bool(std::string_view record)>& ends) {
  const std::string bytes = read_file(file);
  if (!std::string_view(bytes).starts_with(kFileHead))
    throw DataError(fmt::format("{} is no file of a wandb run", file.string()),
                    {.file = file.string(), .hint = "move it away"});
  const auto size = static_cast<int64_t>(bytes.size());
  int64_t num_kept = 0;
  auto kept_bytes = static_cast<int64_t>(kFileHead.size());
  std::string record;
  for (int64_t at = next_piece(kept_bytes); at + kPieceHeadBytes <= size; at = next_piece(at)) {
    const std::string_view head = std::string_view(bytes).substr(static_cast<size_t>(at));
    const int64_t length = static_cast<uint8_t>(head[4]) | static_cast<uint8_t>(head[5]) << 8;
    if (at + kPieceHeadBytes + length > size) break;
    const std::string_view typed = head.substr(6, static_cast<size_t>(length) + 1);
    if (crc32(typed) != fixed32(head)) break;
    const char kind = typed[0];
    if (kind == kWhole || kind == kFirst) record.clear();
    record += typed.substr(1);
    at += kPieceHeadBytes + length;
    if (kind != kWhole && kind != kLast) continue;
    if (ends(record)) break;
    kept_bytes = at;
    ++num_kept;
  }
  std::error_code error;
  if (kept_bytes < size) fs::resize_file(file, static_cast<uintmax_t>(kept_bytes), error);
  if (error)
    throw IoError(fmt::format("could not shorten {}: {}", file.string(), error.message()),
                  {.file = file.string(), .hint = "check its rights"});
  return num_kept;
}

}  // namespace convoy::reports
