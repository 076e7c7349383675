// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/csv_rows.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/base/csv_cell.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/json_members.h"
#include "convoy/data/datasets/table_writer.h"

namespace convoy::data {
namespace {

// RFC 4180 with a header: quoted fields may contain separators, newlines and doubled quotes; LF and
// CRLF both end a row. A quote inside an unquoted field is an ordinary character. Every value is a
// string.
class CsvRows : public RowSource {
 public:
  CsvRows(ByteReader file, char separator)
      : reader_(std::move(file)),
        separator_(separator),
        ends_(byte_set(std::string("\r\n") + separator)) {
    line_ = reader_.line();
    if (!read_record(header_))
      throw DataError(
          "wanted a header line, found an empty file",
          location(
              "write the names of the columns on the first line, and a row on each further one"));
    check_text(header_);
    std::set<std::string_view> names;
    for (const std::string& name : header_)
      if (!names.insert(name).second)
        throw DataError(fmt::format("the header names column `{}` twice", name),
                        location("give each column a name of its own"));
  }

  std::optional<Row> next() override {
    row_is_lost_ = false;
    rest_.clear();
    if (!read_record(fields_)) return std::nullopt;
    row_is_lost_ = true;
    const int64_t index = index_++;
    check_text(fields_);
    if (fields_.size() != header_.size())
      throw DataError(
          fmt::format("wanted {} fields as in the header, found {}", header_.size(),
                      fields_.size()),
          location("put a field that holds a separator, a quote or a line end in quotes"));
    Row row{object_with_room(header_.size()), reader_.path().string(), line_, index};
    for (size_t column = 0; column < fields_.size(); ++column)
      add_member(row.value, header_[column], std::move(fields_[column]));
    return row;
  }
  bool row_is_lost() const override { return row_is_lost_; }
  std::string lost_row() const override {
    std::string line;
    for (const std::string& field : fields_) {
      if (&field != &fields_.front()) line += static_cast<char>(separator_);
      add_csv_cell(field, static_cast<char>(separator_), line);
    }
    return line + rest_;
  }

 private:
  ErrorLocation location(std::string hint) const {
    return {.file = reader_.path().string(), .line = line_, .hint = std::move(hint)};
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

  // Reads one record into `fields`; skips empty lines. Returns false at the end of the file.
  bool read_record(std::vector<std::string>& fields) {
    while (reader_.peek() == '\n' || reader_.peek() == '\r') reader_.get();
    if (reader_.peek() == ByteReader::kEnd) return false;
    line_ = reader_.line();
    record_bytes_ = 0;
    fields.clear();
    bool more = true;
    while (more) {
      std::string& field = fields.emplace_back();
      if (reader_.peek() == '"') {
        read_quoted(field);
      } else {
        take_until(ends_, field);
      }
      more = reader_.peek() == separator_;
      if (more) reader_.get();
    }
    end_line();
    return true;
  }

  // Moves the reader to one of `stops` or to the end.
  void take_until(const ByteSet& stops, std::string& field) {
    const size_t before = field.size();
    reader_.read_until(stops, field, before + kMaxRowBytes + 1 - record_bytes_);
    count_bytes(field.size() - before);
  }

  void count_bytes(size_t bytes) {
    record_bytes_ += bytes;
    if (record_bytes_ > kMaxRowBytes)
      throw DataError(
          fmt::format("the row is longer than {} MiB; is a quote left open?", kMaxRowBytes >> 20),
          location("close the quote; a quote within a quoted field is written twice"));
  }

  void read_quoted(std::string& field) {
    static constexpr ByteSet kQuote = byte_set("\"");
    const int64_t opened_line = reader_.line();
    reader_.get();
    while (true) {
      take_until(kQuote, field);
      if (reader_.peek() == ByteReader::kEnd)
        throw DataError("a quote opened on this line is never closed",
                        {.file = reader_.path().string(),
                         .line = opened_line,
                         .hint = "close it; a quote within a quoted field is written twice"});
      reader_.get();
      if (reader_.peek() != '"') return;
      count_bytes(1);
      field.push_back(static_cast<char>(reader_.get()));
    }
  }

  // A line end must follow the last field of a record.
  void end_line() {
    if (reader_.peek() == '\r') reader_.get();
    if (reader_.peek() == ByteReader::kEnd) return;
    if (reader_.peek() == '\n') {
      reader_.get();
      return;
    }
    const ErrorLocation here{.file = reader_.path().string(), .line = reader_.line()};
    reader_.read_line(rest_, kMaxRowBytes);
    row_is_lost_ = true;
    ++index_;
    throw DataError("wanted a separator or a line end after a closing quote",
                    {.file = here.file,
                     .line = here.line,
                     .hint = "a quote within a quoted field is written twice"});
  }

  ByteReader reader_;
  int separator_;
  ByteSet ends_;  // ends of an unquoted field
  std::vector<std::string> header_;
  std::vector<std::string> fields_;  // fields of the last record
  // The text that wrongly follows the last field.
  std::string rest_;
  int64_t line_ = 0;
  int64_t index_ = 0;
  size_t record_bytes_ = 0;
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
      // The only cell of a line is quoted when it is empty, because an empty line is no row.
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
          .create = create_separated<','>};
}

RowFormat tsv_format() {
  return {.name = "TSV",
          .suffixes = {".tsv"},
          .open = open_separated<'\t'>,
          .create = create_separated<'\t'>};
}

}  // namespace convoy::data
