// SPDX-License-Identifier: Apache-2.0
//
// Writes rows into a file, in the given order and in bounded memory: a JSON list as Python's
// json.dump(indent=2, ensure_ascii=False) writes it, JSON lines, CSV and TSV (RFC 4180), Parquet.
// The suffix decides the format; all but Parquet are compressed when .gz, .zst or .bz2 follows.
//
// Reading back gives: for JSON and JSON lines the same rows. For Parquet the same values, and null
// for a key that a row lacks: numbers, texts, lists and objects are columns of their own type when
// all rows agree, else text (column_type.h). For CSV texts: numbers, true, false, and nested values
// as JSON, null as an empty cell.
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
  // `row`: an object; for JSON and JSON lines any value. Throws DataError for a row that cannot be
  // written, IoError.
  virtual void write(const nlohmann::ordered_json& row) = 0;
  // Publishes the complete, synced file under its name; must be the last call. Throws IoError,
  // DataError.
  virtual WrittenFile finish() = 0;
};

// Throws ConfigError when the path is a folder, or its suffix is no known format. Changes nothing.
void require_row_format(const std::filesystem::path& path);

// Throws as require_row_format() does, and IoError when the folder is not writable. Call it before
// computing the rows. Creates the folder.
void require_row_output(const std::filesystem::path& path);

// CSV and Parquet have the columns of all rows, in order of appearance. So the rows are stored
// compressed, in a nameless file beside `path`, until finish(). Throws as require_row_output()
// does.
std::unique_ptr<RowWriter> create_rows(const std::filesystem::path& path);

}  // namespace convoy::data
