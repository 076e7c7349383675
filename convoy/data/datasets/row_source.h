// SPDX-License-Identifier: Apache-2.0
//
// Rows of a data file as JSON values, streamed: JSON lines, a JSON list or {"data": [...]}, CSV
// with a header, Parquet, plain text as rows {"text": ...}; all but Parquet compressed or not. The
// format follows the suffix, or the content where the suffix says nothing. One thread per source.
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
  int64_t line = 0;   // 1-based line on which the row starts; 0 in Parquet
  int64_t index = 0;  // 0-based, unreadable rows counted too
};

// A row that was cut out of its file, and perhaps not looked into yet: that may be done by another
// thread.
struct RawRow {
  Row row;             // its value is what the text says once it is parsed
  std::string text;    // JSON; empty where the row came as a value
  int64_t column = 1;  // 1-based, in bytes, of the text's first byte in its line
};

// Throws DataError with the file, the line at fault and the byte in that line.
Row parse_row(RawRow raw);

// Line and column in the file of a byte of the text, all from 1 on.
struct RowPosition {
  int64_t line = 0;
  int64_t column = 0;
};
RowPosition position_in(const RawRow& raw, size_t byte);

// The rows of a .txt file: itself, or each of its lines that is not blank.
enum class TextRows { Document, Line };

// "document" or "line", as data.text_rows and --text-rows spell them.
TextRows text_rows_named(std::string_view name);

enum class BadRows { Error, Skip };

// "error" or "skip", as data.bad_rows and --bad-rows spell them.
BadRows bad_rows_named(std::string_view name);

struct BadRow {
  int64_t line = 0;
  int64_t index = 0;
  std::string message;
};

// Rows left out under BadRows::Skip: all counted, the first ones listed, limited.
class BadRowList {
 public:
  // Throws `error` again under BadRows::Error, and a DataError when more than 100 rows and a tenth
  // of `rows_seen` are bad.
  void add(const DataError& error, int64_t index, int64_t rows_seen, BadRows policy);
  int64_t count() const { return count_; }
  const std::vector<BadRow>& first() const { return first_; }  // at most 20
  std::string summary() const;  // "3 unreadable rows skipped: lines 2, 7, 9; first: ..."

 private:
  int64_t count_ = 0;
  std::vector<BadRow> first_;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // The next row; nothing at the end of the file. Throws DataError with file and line; after an
  // error that concerns one row only (`row_is_lost()`), the next call goes on behind it.
  virtual std::optional<Row> next() = 0;
  // The same, and as cheap as the format allows: JSON comes as text. What is wrong with the text
  // parse_row() says.
  virtual std::optional<RawRow> next_raw();
  // Passes over the next `count` rows without looking into them where the format allows it;
  // unreadable ones count. Returns how many there were: fewer only at the end. Throws DataError.
  virtual int64_t skip(int64_t count);
  // Whether the last error of next() cost one row, not the rest of the file.
  virtual bool row_is_lost() const { return false; }
  // The raw bytes of that row. A CSV row is put together from its fields again. Empty when the row
  // is too long or its bytes are not known.
  virtual std::string lost_row() const { return {}; }
};

// Whether the name, without a suffix of compression, ends as one of a known format does.
bool names_rows(const std::filesystem::path& path);
// Whether it ends as one of plain text does.
bool names_text(const std::filesystem::path& path);

// The formats and the suffixes of compression, for messages.
std::string known_row_formats();

// Throws DataError when the file cannot be read or its format is unknown.
std::unique_ptr<RowSource> open_rows(const std::filesystem::path& path,
                                     TextRows text_rows = TextRows::Document);

}  // namespace convoy::data
