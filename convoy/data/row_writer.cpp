// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/row_writer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "convoy/base/error.h"
#include "convoy/base/json_reason.h"
#include "convoy/data/column_type.h"
#include "convoy/data/csv_cell.h"
#include "convoy/data/json_members.h"
#include "convoy/data/output_file.h"
#include "convoy/data/parquet_writer.h"
#include "convoy/data/row_spool.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

enum class Format { JsonList, JsonLines, Csv, Tsv, Parquet };

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string text_of(const Json& row, int indent, int64_t number, const fs::path& path) {
  try {
    return row.dump(indent);
  } catch (const Json::exception& error) {  // text that is not UTF-8
    throw DataError(fmt::format("row {} cannot be written: {}", number, json_reason(error.what())),
                    {.file = path.string()});
  }
}

class JsonLinesWriter : public RowWriter {
 public:
  explicit JsonLinesWriter(const fs::path& path) : path_(path), file_(path) {}

  void write(const Json& row) override {
    file_.write(text_of(row, -1, rows_ + 1, path_));
    file_.write("\n");
    ++rows_;
  }
  WrittenFile finish() override { return file_.publish(rows_); }

 private:
  fs::path path_;
  OutputFile file_;
  int64_t rows_ = 0;
};

class JsonListWriter : public RowWriter {
 public:
  explicit JsonListWriter(const fs::path& path) : path_(path), file_(path) {}

  void write(const Json& row) override {
    const std::string text = text_of(row, 2, rows_ + 1, path_);
    file_.write(rows_ == 0 ? "[\n  " : ",\n  ");
    std::string_view rest = text;  // no line of it ends within a string
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      file_.write(rest.substr(0, end + 1));
      file_.write("  ");
      rest.remove_prefix(end + 1);
    }
    file_.write(rest);
    ++rows_;
  }
  WrittenFile finish() override {
    file_.write(rows_ == 0 ? "[]" : "\n]");
    return file_.publish(rows_);
  }

 private:
  fs::path path_;
  OutputFile file_;
  int64_t rows_ = 0;
};

// Formats whose head names all columns: rows wait until all were seen.
class TableWriter : public RowWriter {
 public:
  explicit TableWriter(const fs::path& path) : path_(path), file_(path), spool_(folder_of(path)) {}

  void write(const Json& row) override {
    if (!row.is_object())
      throw DataError(fmt::format("row {} is no object, which a table needs", rows_ + 1),
                      {.file = path_.string()});
    spool_.add(text_of(row, -1, rows_ + 1, path_));
    columns_.add(row);
    ++rows_;
  }

  WrittenFile finish() override {
    columns_.kind = ColumnType::Kind::Struct;  // of no rows, too
    for (auto& [name, type] : columns_.fields) type.settle();
    begin_table(columns_, file_);
    const auto rows = spool_.rows();
    while (const auto row = rows->next()) write_row(row->value);
    end_table();
    return file_.publish(rows_);
  }

 protected:
  virtual void begin_table(const ColumnType& columns, OutputFile& file) = 0;
  virtual void write_row(const Json& row) = 0;
  virtual void end_table() {}

 private:
  fs::path path_;
  OutputFile file_;
  RowSpool spool_;
  ColumnType columns_;
  int64_t rows_ = 0;
};

class ParquetTableWriter : public TableWriter {
 public:
  using TableWriter::TableWriter;

 protected:
  void begin_table(const ColumnType& columns, OutputFile& file) override {
    parquet_ = create_parquet(columns, file);
  }
  void write_row(const Json& row) override { parquet_->write(row); }
  void end_table() override { parquet_->finish(); }

 private:
  std::unique_ptr<ParquetWriter> parquet_;
};

class CsvWriter : public TableWriter {
 public:
  CsvWriter(const fs::path& path, char separator) : TableWriter(path), separator_(separator) {}

 protected:
  void begin_table(const ColumnType& columns, OutputFile& file) override {
    file_ = &file;
    std::vector<std::string> names;
    for (const auto& [name, type] : columns.fields) names.push_back(name);
    names_ = names;
    if (!names.empty()) write_record(names);
  }
  void write_row(const Json& row) override {
    std::vector<std::string> cells;
    MemberCursor members(row);
    for (const std::string& name : names_) {
      const Json* const found = members.find(name);
      cells.push_back(found == nullptr || found->is_null() ? "" : cell_text(*found));
    }
    write_record(cells);
  }

 private:
  void write_record(const std::vector<std::string>& cells) {
    std::string line;
    for (const std::string& cell : cells) {
      if (&cell != cells.data()) line += separator_;
      // The only cell of a line is quoted when it is empty: an empty line is no row.
      if (cells.size() == 1 && cell.empty()) {
        add_quoted_csv_cell(cell, line);
      } else {
        add_csv_cell(cell, separator_, line);
      }
    }
    line += "\r\n";
    file_->write(line);
  }

  char separator_;
  OutputFile* file_ = nullptr;
  std::vector<std::string> names_;
};

Format format_of(const fs::path& path) {
  const fs::path plain = without_compression(path);
  std::string suffix = plain.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (suffix == ".json") return Format::JsonList;
  if (suffix == ".jsonl" || suffix == ".ndjson") return Format::JsonLines;
  if (suffix == ".csv") return Format::Csv;
  if (suffix == ".tsv") return Format::Tsv;
  if (suffix == ".parquet" && plain == path) return Format::Parquet;
  throw ConfigError(
      fmt::format("the name of the output does not say its format: `{}`", path.filename().string()),
      {.file = path.string(),
       .hint = "end it in .jsonl, .json, .csv, .tsv (all with .gz, .zst or .bz2 behind it too) or "
               ".parquet"});
}

}  // namespace

void require_row_format(const fs::path& path) {
  std::error_code code;
  if (path.filename().empty() || fs::is_directory(path, code))
    throw ConfigError("the output is a folder, wanted the name of a file", {.file = path.string()});
  format_of(path);
}

void require_row_output(const fs::path& path) {
  require_row_format(path);
  std::error_code code;
  const fs::path folder = folder_of(path);
  fs::create_directories(folder, code);
  if (::access(folder.c_str(), W_OK) != 0)
    throw IoError(fmt::format("no file can be written into the folder of the output: {}",
                              std::strerror(errno)),
                  {.file = folder.string(), .hint = "check permissions, or name another output"});
}

std::unique_ptr<RowWriter> create_rows(const fs::path& path) {
  require_row_output(path);
  switch (format_of(path)) {
    case Format::JsonList:
      return std::make_unique<JsonListWriter>(path);
    case Format::JsonLines:
      return std::make_unique<JsonLinesWriter>(path);
    case Format::Csv:
      return std::make_unique<CsvWriter>(path, ',');
    case Format::Tsv:
      return std::make_unique<CsvWriter>(path, '\t');
    case Format::Parquet:
      break;
  }
  return std::make_unique<ParquetTableWriter>(path);
}

}  // namespace convoy::data
