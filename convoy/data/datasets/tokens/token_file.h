// SPDX-License-Identifier: Apache-2.0
//
// The file of encoded rows: Header, then pieces each padded to 8 bytes: JSON (key, report, policy,
// content hash), offsets int64[rows + 1], source indices int64[rows], supervised counts
// int64[rows], ids int32[tokens], mask uint8[tokens], weights float[weights]: none, or one for each
// token, labels uint8[labels]: none, or one for each row. Little-endian hosts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace convoy::data {

struct TokenFileHeader {
  std::array<char, 8> magic = {'C', 'V', 'Y', 'T', 'O', 'K', 'N', '3'};
  uint32_t crc = 0;  // CRC32C of everything behind this member
  uint32_t zero = 0;
  int64_t json_bytes = 0;
  int64_t num_rows = 0;
  int64_t num_tokens = 0;
  int64_t num_weights = 0;
  int64_t num_labels = 0;

  static constexpr size_t checked_from() { return offsetof(TokenFileHeader, zero); }
};

constexpr size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

// CRC32C of the bytes [begin, end) of an open file, read in pieces to bound memory. Throws IoError.
uint32_t crc32c_of_file(int descriptor, int64_t begin_bytes, int64_t end_bytes);

struct TokenFileShape {
  int64_t num_rows = 0;
  int64_t num_tokens = 0;
  bool has_weights = false;  // some row has
  bool has_labels = false;   // some row is not desirable
};

// Fills an empty file row by row, writing its pieces in parallel. One thread. Throws IoError.
class TokenFileWriter {
 public:
  // `json_bytes`: size of the text for finish(). Does not own the descriptor.
  TokenFileWriter(int descriptor, int64_t json_bytes, const TokenFileShape& shape);

  // `weights` may be empty: 1 for all. Labels are written where the file has some.
  void add(int64_t source_index, std::span<const int32_t> ids, std::span<const uint8_t> supervised,
           std::span<const float> weights, bool is_desirable);
  // Call it after the last row. SHA-256 over offsets, ids, mask, weights and labels.
  std::string content_hash();
  // Writes JSON and header, which completes the file.
  void finish(std::string_view json);

 private:
  // A piece of the file that grows towards the next one.
  struct Piece {
    int64_t at_bytes = 0;
    int64_t end_bytes = 0;
    std::string pending = {};
  };

  void append(Piece& piece, std::string_view bytes);
  void flush(Piece& piece);

  int descriptor_;
  TokenFileHeader header_;
  int64_t size_bytes_ = 0;
  int64_t tokens_ = 0;  // so far
  std::array<Piece, 7> pieces_;
};

}  // namespace convoy::data
