// SPDX-License-Identifier: Apache-2.0
//
// Writes rows into a file, in the given order and in bounded memory: a JSON list as Python's
// json.dump(indent=2, ensure_ascii=False) writes it, JSON lines, CSV and TSV (RFC 4180), Parquet.
// The suffix decides the format; all but Parquet are compressed when .gz, .zst or .bz2 follows.
//
// Reading JSON and JSON lines back gives the same rows. Parquet gives the same values, and null for
// a key that a row lacks: numbers, texts, lists and objects are columns of their own type when all
// rows agree, else text (column_type.h). CSV gives texts: numbers, true, false, and nested values
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
  std::string sha256;  // hexadecimal hash of the file
};

// One thread.
class RowWriter {
 public:
  virtual ~RowWriter() =
      default;  // without finish() the path keeps its earlier file, or stays empty
  // `row`: an object; JSON and JSON lines take any value. Throws IoError, and DataError for a row
  // that cannot be written.
  virtual void write(const nlohmann::ordered_json& row) = 0;
  // Publishes the complete, synced file under its name; must be the last call. Throws IoError,
  // DataError.
  virtual WrittenFile finish() = 0;
};

// Throws ConfigError when the path is a folder, or its suffix is no known format, and IoError when
// the plugin that writes such a file is missing. Changes nothing.
void require_row_format(const std::filesystem::path& path);

// Creates the folder of the output, and checks that it is writable. Call it before computing the
// rows. Throws as require_row_format() does, and IoError when the folder is not writable.
void require_row_output(const std::filesystem::path& path);

// Creates a writer in the format of the suffix. A CSV or Parquet file has the columns of all rows,
// in order of appearance. Therefore the rows are stored compressed, in a nameless file beside
// `path`, until finish(). Throws as require_row_output() does.
std::unique_ptr<RowWriter> create_rows(const std::filesystem::path& path);

}  // namespace convoy::data
