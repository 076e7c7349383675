// SPDX-License-Identifier: Apache-2.0
//
// Rows into a file, in the order given and in bounded memory: a JSON list as Python's
// json.dump(indent=2, ensure_ascii=False) writes it, JSON lines, CSV and TSV (RFC 4180), Parquet.
// The format follows the suffix; with .gz, .zst or .bz2 behind it all but Parquet are compressed.
//
// What reading back gives: JSON and JSON lines the same rows. Parquet the same values, null for a
// key that a row lacks: numbers, texts, lists and objects are columns of their own type when all
// rows agree, else text (column_type.h). CSV the texts: numbers, true, false, and nested values as
// JSON, null as nothing.
//
//   const auto writer = create_rows("data/final.jsonl.gz");
//   for (...) writer->write(row);
//   const WrittenFile file = writer->finish();
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace convoy::data {

struct WrittenFile {
  std::filesystem::path path;
  int64_t rows = 0;
  int64_t bytes = 0;
  std::string sha256;  // hexadecimal
};

// One thread.
class RowWriter {
 public:
  virtual ~RowWriter() =
      default;  // without finish() nothing is at the path, or what was there before
  // An object; for JSON and JSON lines any value. Throws DataError for a row that cannot be
  // written, IoError.
  virtual void write(const nlohmann::ordered_json& row) = 0;
  // Publishes the file, whole and synced, under its name; the last call. Throws IoError, DataError.
  virtual WrittenFile finish() = 0;
};

// Throws ConfigError when the path is a folder, or its suffix names no format. Changes nothing.
void require_row_format(const std::filesystem::path& path);

// Throws as require_row_format() does, and IoError when the folder cannot be written to. To be
// asked before the work whose rows are to be written. Creates the folder.
void require_row_output(const std::filesystem::path& path);

// Columns of CSV and Parquet are those of all rows, as they come first: until finish() the rows lie
// packed in a file without a name beside `path`. Throws as require_row_output() does.
std::unique_ptr<RowWriter> create_rows(const std::filesystem::path& path);

}  // namespace convoy::data
