// SPDX-License-Identifier: Apache-2.0
//
// Rows of a data file as JSON values, streamed: JSON lines, a JSON list or {"data": [...]}, CSV
// with a header, Parquet, plain text as rows {"text": ...}; all but Parquet compressed or not. The
// suffix decides the format, or the content when the suffix is unknown. One thread per source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::data {

struct Row {
  nlohmann::ordered_json value;  // an object, or a list (loose rows: ["q", {"answer": ..}])
  std::string file;
  int64_t line = 0;                 // 1-based line on which the row begins; 0 in Parquet
  int64_t index = 0;                // 0-based number; unreadable rows count
  int64_t characters_replaced = 0;  // number of characters replaced under BadRows::Replace
  // For a pair made from a ranked list: the place of each side in the list, "responses[2]". Empty:
  // the sides are columns of the file.
  std::string chosen_from = {};
  std::string rejected_from = {};
};

// The policy for bad rows. Replace: damaged characters in JSON (lone surrogates, bytes that are no
// UTF-8) become U+FFFD; any other fault is an error.
enum class BadRows { Error, Skip, Replace };

// The policy for "error", "skip" or "replace", as in data.bad_rows and --bad-rows.
BadRows bad_rows_named(std::string_view name);

// A row cut out of its file. It may not be parsed yet, so that another thread can parse it.
struct RawRow {
  Row row;             // without its value when `text` must be parsed first
  std::string text;    // JSON to parse; empty when the row has its value already
  int64_t column = 1;  // 1-based column, in bytes, where the text begins in its line
};

// Parses the text of a row. Throws DataError with the file, the line and the byte in that line.
Row parse_row(RawRow raw, BadRows bad_rows = BadRows::Error);

// Line and column in the file for a byte of the text, all 1-based.
struct RowPosition {
  int64_t line = 0;
  int64_t column = 0;
};
RowPosition position_in(const RawRow& raw, size_t byte);

// How to cut a .txt file into rows: the whole file is one row, or each line that is not blank.
enum class TextRows { Document, Line };

// The value for "document" or "line", as in data.text_rows and --text-rows.
TextRows text_rows_named(std::string_view name);

struct BadRow {
  int64_t line = 0;
  int64_t index = 0;
  std::string message;
};

// The bad rows of a file. Under BadRows::Skip all skipped rows are counted and the first ones are
// listed. Under BadRows::Replace the mended rows are counted.
class BadRowList {
 public:
  // Rethrows `error` unless the policy is BadRows::Skip. Throws DataError when the bad rows are
  // more than 100 and more than a tenth of `rows_seen`.
  void add(const DataError& error, int64_t index, int64_t rows_seen, BadRows policy);
  void add_replaced(int64_t characters);  // characters replaced in one row; 0: it was not damaged
  int64_t count() const { return count_; }
  const std::vector<BadRow>& first() const { return first_; }  // at most 20
  // A sentence such as "3 unreadable rows skipped: lines 2, 7, 9; first: ..."; empty when nothing
  // was skipped or mended.
  std::string summary() const;

 private:
  int64_t count_ = 0;
  int64_t rows_replaced_ = 0;
  int64_t characters_replaced_ = 0;
  std::vector<BadRow> first_;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // Returns the next row; empty at the end of the file. Throws DataError with file and line. After
  // an error that concerns one row only (`row_is_lost()`), the next call continues behind it.
  virtual std::optional<Row> next() = 0;
  // Like next(), but as cheap as the format allows: JSON is returned as text, and parse_row()
  // reports its errors.
  virtual std::optional<RawRow> next_raw();
  // Skips the next `count` rows, without parsing them when the format allows it. Unreadable rows
  // count as rows. Returns the number of skipped rows, which is smaller only at the end. Throws
  // DataError.
  virtual int64_t skip(int64_t count);
  // True when the last error of next() concerned one row, not the rest of the file.
  virtual bool row_is_lost() const { return false; }
  // The raw bytes of the row that the last error of next() concerned. A CSV row is reassembled from
  // its fields. Empty when the row is too long or its bytes are unknown.
  virtual std::string lost_row() const { return {}; }
};

// True when the suffix, before a suffix of compression, belongs to a known format.
bool names_rows(const std::filesystem::path& path);
// True when the suffix, before a suffix of compression, belongs to plain text.
bool names_text(const std::filesystem::path& path);

// The names of the formats and the suffixes of compression, for messages.
std::string known_row_formats();

// Opens a file. Throws DataError when the file cannot be read or its format is unknown.
std::unique_ptr<RowSource> open_rows(const std::filesystem::path& path,
                                     TextRows text_rows = TextRows::Document);

}  // namespace convoy::data
