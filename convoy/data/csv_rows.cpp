// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/data/byte_reader.h"
#include "convoy/data/csv_cell.h"
#include "convoy/data/json_members.h"
#include "convoy/data/row_formats.h"
#include "convoy/data/utf8.h"

namespace convoy::data {
namespace {

// RFC 4180 with a header: quoted fields may hold separators, newlines and doubled quotes; LF and CRLF both end a row. A
// quote inside an unquoted field is an ordinary character. Every value is a string.
class CsvRows : public RowSource {
 public:
  CsvRows(const std::filesystem::path& path, char separator)
      : reader_(path), separator_(separator), ends_(byte_set(std::string("\r\n") + separator)) {
    line_ = reader_.line();
    if (!read_record(header_))
      throw DataError("wanted a header line, found an empty file", place());
    check_text(header_);
    std::set<std::string_view> names;
    for (const std::string& name : header_)
      if (!names.insert(name).second)
        throw DataError(fmt::format("the header names column `{}` twice", name), place());
  }

  std::optional<Row> next() override {
    row_is_lost_ = false;
    rest_.clear();
    if (!read_record(fields_)) return std::nullopt;
    row_is_lost_ = true;
    const int64_t index = index_++;
    check_text(fields_);
    if (fields_.size() != header_.size())
      throw DataError(fmt::format("wanted {} fields as in the header, found {}", header_.size(),
                                  fields_.size()),
                      place());
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
  ErrorPlace place() const { return {.file = reader_.path().string(), .line = line_}; }

  void check_text(const std::vector<std::string>& fields) const {
    for (size_t column = 0; column < fields.size(); ++column) {
      if (const size_t nul = fields[column].find('\0'); nul != std::string::npos)
        throw DataError(fmt::format("NUL byte at byte {} of field {}", nul + 1, column + 1),
                        place());
      if (const auto bad = find_invalid_utf8(fields[column]))
        throw DataError(fmt::format("not valid UTF-8 at byte {} of field {}", *bad + 1, column + 1),
                        place());
    }
  }

  // One record into `fields`; empty lines are skipped. Returns false at the end of the file.
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
          place());
  }

  void read_quoted(std::string& field) {
    static constexpr ByteSet kQuote = byte_set("\"");
    const int64_t opened_line = reader_.line();
    reader_.get();
    while (true) {
      take_until(kQuote, field);
      if (reader_.peek() == ByteReader::kEnd)
        throw DataError("a quote opened on this line is never closed",
                        {.file = reader_.path().string(), .line = opened_line});
      reader_.get();
      if (reader_.peek() != '"') return;
      count_bytes(1);
      field.push_back(static_cast<char>(reader_.get()));
    }
  }

  // What stands behind the last field of a record must be a line end.
  void end_line() {
    if (reader_.peek() == '\r') reader_.get();
    if (reader_.peek() == ByteReader::kEnd) return;
    if (reader_.peek() == '\n') {
      reader_.get();
      return;
    }
    const ErrorPlace here{.file = reader_.path().string(), .line = reader_.line()};
    reader_.read_line(rest_, kMaxRowBytes);
    row_is_lost_ = true;
    ++index_;
    throw DataError("wanted a separator or a line end after a closing quote", here);
  }

  ByteReader reader_;
  int separator_;
  ByteSet ends_;  // of a field that is not quoted
  std::vector<std::string> header_;
  std::vector<std::string> fields_;  // of the last record
  std::string rest_;                 // what wrongly stands behind them
  int64_t line_ = 0;
  int64_t index_ = 0;
  size_t record_bytes_ = 0;
  bool row_is_lost_ = false;
};

}  // namespace

std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path, char separator) {
  return std::make_unique<CsvRows>(path, separator);
}

}  // namespace convoy::data
