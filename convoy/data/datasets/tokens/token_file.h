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
  uint32_t crc = 0;  // CRC32C of all bytes behind this member
  uint32_t zero = 0;
  int64_t json_bytes = 0;
  int64_t num_rows = 0;
  int64_t num_tokens = 0;
  int64_t num_weights = 0;
  int64_t num_labels = 0;

  static constexpr size_t checked_from() { return offsetof(TokenFileHeader, zero); }
};

constexpr size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

// CRC32C of the bytes [begin, end) of an open file, which is read in pieces to limit memory. Throws
// IoError.
uint32_t crc32c_of_file(int descriptor, int64_t begin_bytes, int64_t end_bytes);

struct TokenFileShape {
  int64_t num_rows = 0;
  int64_t num_tokens = 0;
  bool has_weights = false;  // at least one row has weights
  bool has_labels = false;   // at least one row is not desirable
};

// Fills an empty file row by row, writing its pieces in parallel. One thread. Throws IoError.
class TokenFileWriter {
 public:
  // `json_bytes`: size of the text that finish() will get. Does not own the descriptor.
  TokenFileWriter(int descriptor, int64_t json_bytes, const TokenFileShape& shape);

  // Empty `weights`: 1 for all tokens. `is_desirable` is written only if the file has labels.
  void add(int64_t source_index, std::span<const int32_t> ids, std::span<const uint8_t> supervised,
           std::span<const float> weights, bool is_desirable);
  // SHA-256 over offsets, ids, mask, weights and labels. Call it after the last row.
  std::string content_hash();
  // Writes the JSON text and the header, which completes the file.
  void finish(std::string_view json);

 private:
  // A piece of the file, into which rows are written from front to back.
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
  int64_t tokens_ = 0;  // number of tokens added so far
  std::array<Piece, 7> pieces_;
};

}  // namespace convoy::data
