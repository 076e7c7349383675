// SPDX-License-Identifier: Apache-2.0
//
// The row source of each file format, and what they share. open_rows() chooses.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "convoy/data/row_source.h"

namespace convoy::data {

// Limits on one row, whatever the format: a larger one is a damaged or hostile file, not a training row.
constexpr size_t kMaxRowBytes = size_t{64} << 20;
constexpr int kMaxJsonDepth = 256;

// Bad bytes of a row. `byte` is 1-based within the row's text.
class JsonRowError : public DataError {
 public:
  JsonRowError(std::string_view what, size_t byte, std::string_view reason,
               const ErrorPlace& place);
  size_t byte() const { return byte_; }
  // The same, told by a place of its own.
  JsonRowError at(int64_t line, int64_t column) const;

 private:
  std::string what_;
  std::string reason_;  // empty, or what stands behind the place
  size_t byte_;
};

// Parses one JSON value. Throws JsonRowError with `place` and the byte within `text`: bad syntax,
// bad UTF-8, lone surrogates, NUL bytes, nesting deeper than kMaxJsonDepth. Throws DataError with
// the key for a number that no value here holds: a whole one of more than 64 bits, one beyond
// doubles.
nlohmann::ordered_json parse_json_row(std::string_view text, const ErrorPlace& place);

std::unique_ptr<RowSource> open_json_lines(const std::filesystem::path& path);
std::unique_ptr<RowSource> open_json_list(const std::filesystem::path& path);
std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path, char separator);
std::unique_ptr<RowSource> open_text(const std::filesystem::path& path, TextRows rows);
std::unique_ptr<RowSource> open_parquet(const std::filesystem::path& path);

}  // namespace convoy::data
