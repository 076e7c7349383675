// SPDX-License-Identifier: Apache-2.0
//
// The table of file formats, and what their readers and writers share.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/data/datasets/formats/byte_reader.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::data {

// Limits for one row of any format. A larger row indicates a damaged or hostile file.
constexpr size_t kMaxRowBytes = size_t{64} << 20;
constexpr int kMaxJsonDepth = 256;

// Invalid bytes in a row. `byte` is the 1-based position in the row's text.
class JsonRowError : public DataError {
 public:
  JsonRowError(std::string_view what, size_t byte, std::string_view reason,
               const ErrorLocation& location);
  size_t byte() const { return byte_; }
  // The same error, at a line and column of the file.
  JsonRowError at(int64_t line, int64_t column, std::string hint) const;

 private:
  std::string what_;
  std::string reason_;  // text behind the place in the message; may be empty
  size_t byte_;
};

// Parses one JSON value. Throws JsonRowError with `location` and the byte within `text` for bad
// syntax, bad UTF-8, lone surrogates, NUL bytes, and nesting deeper than kMaxJsonDepth. Throws
// DataError with the key for a number out of range: an integer of more than 64 bits, or a number
// beyond double.
nlohmann::ordered_json parse_json_row(std::string_view text, const ErrorLocation& location);

// Replaces lone surrogates and bytes that are no UTF-8 in a JSON text by U+FFFD. Returns their
// number.
int64_t replace_damaged_text(std::string& json);

// The hint for a text with such damage.
inline constexpr const char* kReplaceDamageHint =
    "bad_rows: replace puts U+FFFD in the place of such characters";

// The JSON text of a row to write. `number`: number of the row, from 1, for errors. Throws
// DataError for text that is not UTF-8.
std::string json_row_text(const nlohmann::ordered_json& row, int indent, int64_t number,
                          const std::filesystem::path& path);

// A file format for rows. The reader, the writer, the help and the error texts all use its entry in
// the table.
//
// To add a format: x_rows.h with `RowFormat x_format();`, x_rows.cpp with the reader, the writer
// and this entry, and one line in row_formats.cpp.
struct RowFormat {
  std::string_view name;                   // "CSV"
  std::vector<std::string_view> suffixes;  // in lower case; messages name the first
  // True when the next bytes show this format, for a file without a known suffix; consumes nothing.
  // nullptr: only the suffix decides.
  bool (*sniff)(ByteReader& file) = nullptr;
  std::unique_ptr<RowSource> (*open)(ByteReader file, TextRows text_rows) = nullptr;
  // nullptr: the format can only be read.
  std::unique_ptr<RowWriter> (*create)(const std::filesystem::path& path) = nullptr;
  bool is_text = false;           // true: rows are plain text
  bool may_be_compressed = true;  // true: the file may be .gz, .zst or .bz2
  bool is_table = false;          // true: a TableWriter writes it, whose spool is compressed
};

class RowFormats {
 public:
  explicit RowFormats(std::vector<RowFormat> list) : list_(std::move(list)) {}

  // The table of all formats.
  static const RowFormats& built_in();

  const std::vector<RowFormat>& list() const { return list_; }
  // The format of the suffix, which may stand before a suffix of compression. nullptr when it is
  // unknown.
  const RowFormat* named_by(const std::filesystem::path& path) const;
  // Opens the file in the format of its suffix, or else of its content. Opens the file once. Throws
  // DataError.
  std::unique_ptr<RowSource> open(const std::filesystem::path& path, TextRows text_rows) const;
  // The format for writing. Throws ConfigError when the suffix has no writable format.
  const RowFormat& to_write(const std::filesystem::path& path) const;
  // The suffixes of formats and compression that can be read or written, for messages.
  std::string readable() const;
  std::string writable() const;

 private:
  std::vector<RowFormat> list_;
};

}  // namespace convoy::data
