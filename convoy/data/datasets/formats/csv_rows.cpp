// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/csv_rows.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/base/csv_cell.h"
#include "convoy/core/base/csv_record.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/formats/json_members.h"
#include "convoy/data/datasets/formats/table_writer.h"

namespace convoy::data {
namespace {

// Reads CSV with a header line. Every value is a string.
class CsvRows : public RowSource {
 public:
  CsvRows(ByteReader file, char separator)
      : reader_(std::move(file)), separator_(separator), record_(separator) {
    line_ = reader_.line();
    if (!read_record())
      throw DataError(
          "wanted a header line, found an empty file",
          location(
              "write the names of the columns on the first line, and a row on each further one"));
    header_ = record_.cells();
    check_text(header_);
    std::set<std::string_view> names;
    for (const std::string& name : header_)
      if (!names.insert(name).second)
        throw DataError(fmt::format("the header names column `{}` twice", name),
                        location("give each column a name of its own"));
  }

  std::optional<Row> next() override {
    row_is_lost_ = false;
    if (!read_record()) return std::nullopt;
    row_is_lost_ = true;
    const int64_t index = index_++;
    std::vector<std::string>& fields = record_.cells();
    check_text(fields);
    if (fields.size() != header_.size())
      throw DataError(
          fmt::format("wanted {} fields as in the header, found {}", header_.size(), fields.size()),
          location("put a field that holds a separator, a quote or a line end in quotes"));
    Row row{object_with_room(header_.size()), reader_.path().string(), line_, index};
    for (size_t column = 0; column < fields.size(); ++column)
      add_member(row.value, header_[column], std::move(fields[column]));
    return row;
  }
  bool row_is_lost() const override { return row_is_lost_; }
  std::string lost_row() const override {
    std::string line;
    for (const std::string& field : record_.cells()) {
      if (&field != record_.cells().data()) line += separator_;
      add_csv_cell(field, separator_, line);
    }
    return line + record_.rest();
  }

 private:
  ErrorLocation location(std::string hint) const { return location(line_, std::move(hint)); }
  ErrorLocation location(int64_t line, std::string hint) const {
    return {.file = reader_.path().string(), .line = line, .hint = std::move(hint)};
  }

  void check_text(const std::vector<std::string>& fields) const {
    for (size_t column = 0; column < fields.size(); ++column) {
      if (const size_t nul = fields[column].find('\0'); nul != std::string::npos)
        throw DataError(fmt::format("NUL byte at byte {} of field {}", nul + 1, column + 1),
                        location("remove it: tr -d '\\000' < FILE > NEW"));
      if (const auto bad = find_invalid_utf8(fields[column]))
        throw DataError(fmt::format("not valid UTF-8 at byte {} of field {}", *bad + 1, column + 1),
                        location("save the file as UTF-8: iconv -f latin1 -t utf-8 FILE > NEW"));
    }
  }

  // Skips empty lines. Returns false at the end of the file.
  bool read_record() {
    while (reader_.peek() == '\n' || reader_.peek() == '\r') reader_.get();
    if (reader_.peek() == ByteReader::kEnd) return false;
    line_ = reader_.line();
    int64_t quote_line = line_;
    for (size_t fields = 0, bytes = 0;; bytes += text_.size() + 1) {
      const int64_t line = reader_.line();
      text_.clear();
      if (bytes > kMaxRowBytes || !reader_.read_line(text_, kMaxRowBytes - bytes))
        throw DataError(
            fmt::format("the row is longer than {} MiB; is a quote left open?", kMaxRowBytes >> 20),
            location("close the quote; a quote within a quoted field is written twice"));
      const CsvRecord::State state = record_.add(text_);
      if (state == CsvRecord::State::Whole) return true;
      if (state == CsvRecord::State::Broken) refuse_rest(line);
      // If a field began on this line, the open quote was opened on this line.
      if (record_.cells().size() > fields) quote_line = line;
      fields = record_.cells().size();
      if (reader_.peek() == ByteReader::kEnd)
        throw DataError(
            "a quote opened on this line is never closed",
            location(quote_line, "close it; a quote within a quoted field is written twice"));
    }
  }

  [[noreturn]] void refuse_rest(int64_t line) {
    row_is_lost_ = true;
    ++index_;
    throw DataError("wanted a separator or a line end after a closing quote",
                    location(line, "a quote within a quoted field is written twice"));
  }

  ByteReader reader_;
  char separator_;
  CsvRecord record_;  // the record that was read last
  std::vector<std::string> header_;
  std::string text_;  // the line that was read last
  int64_t line_ = 0;  // line on which the record begins
  int64_t index_ = 0;
  bool row_is_lost_ = false;
};

class CsvWriter : public TableWriter {
 public:
  CsvWriter(const std::filesystem::path& path, char separator)
      : TableWriter(path), separator_(separator) {}

 protected:
  void begin_table(const ColumnType& columns, OutputFile& file) override {
    file_ = &file;
    std::vector<std::string> names;
    for (const auto& [name, type] : columns.fields) names.push_back(name);
    names_ = names;
    if (!names.empty()) write_record(names);
  }
  void write_row(const nlohmann::ordered_json& row) override {
    std::vector<std::string> cells;
    MemberCursor members(row);
    for (const std::string& name : names_) {
      const nlohmann::ordered_json* const found = members.find(name);
      cells.push_back(found == nullptr || found->is_null() ? "" : cell_text(*found));
    }
    write_record(cells);
  }

 private:
  void write_record(const std::vector<std::string>& cells) {
    std::string line;
    for (const std::string& cell : cells) {
      if (&cell != cells.data()) line += separator_;
      // An empty line is no row, so a line with one empty cell has that cell quoted.
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

template <char separator>
std::unique_ptr<RowSource> open_separated(ByteReader file, TextRows /*text_rows*/) {
  return std::make_unique<CsvRows>(std::move(file), separator);
}

template <char separator>
std::unique_ptr<RowWriter> create_separated(const std::filesystem::path& path) {
  return std::make_unique<CsvWriter>(path, separator);
}

}  // namespace

RowFormat csv_format() {
  return {.name = "CSV",
          .suffixes = {".csv"},
          .open = open_separated<','>,
          .create = create_separated<','>,
          .is_table = true};
}

RowFormat tsv_format() {
  return {.name = "TSV",
          .suffixes = {".tsv"},
          .open = open_separated<'\t'>,
          .create = create_separated<'\t'>,
          .is_table = true};
}

}  // namespace convoy::data
