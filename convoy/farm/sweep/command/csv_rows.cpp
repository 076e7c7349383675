// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/csv_rows.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::sweep {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // as spreadsheets write it
  }

  // Empty at the end of the text.
  std::vector<std::string> next() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) step();
    std::vector<std::string> fields;
    begin_line_ = line_;
    while (at_ < text_.size()) {
      fields.push_back(text_[at_] == '"' ? quoted() : plain());
      if (at_ >= text_.size() || text_[at_] != ',') break;
      step();
      if (at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r') {
        fields.emplace_back();
        break;
      }
    }
    return fields;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(fmt::format("line {}: {}", begin_line_, what),
                    {.file = file_,
                     .hint = "the first line names the columns, each further one has a value for "
                             "each; a value with a comma or a quote stands in quotes"});
  }

 private:
  void step() { line_ += text_[at_++] == '\n' ? 1 : 0; }

  std::string plain() {
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string field(text_.substr(at_, end - at_));
    at_ = end;
    return field;
  }

  std::string quoted() {
    std::string field;
    for (step();; step()) {
      if (at_ >= text_.size()) refuse("a quote is not closed");
      const bool doubled = at_ + 1 < text_.size() && text_[at_ + 1] == '"';
      if (text_[at_] == '"' && !doubled) break;
      if (text_[at_] == '"') step();
      field += text_[at_];
    }
    step();
    if (at_ < text_.size() && std::string_view(",\r\n").find(text_[at_]) == std::string_view::npos)
      refuse("text follows a closed quote");
    return field;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  int64_t line_ = 1, begin_line_ = 1;
};

}  // namespace

CsvRows read_csv(std::string_view text, const std::string& file) {
  CsvReader reader(text, file);
  CsvRows csv;
  csv.names = reader.next();
  for (size_t at = 0; at < csv.names.size(); ++at) {
    if (csv.names[at].empty()) reader.refuse("a column has no name");
    if (std::find(csv.names.begin(), csv.names.begin() + static_cast<std::ptrdiff_t>(at),
                  csv.names[at]) != csv.names.begin() + static_cast<std::ptrdiff_t>(at))
      reader.refuse(fmt::format("the column `{}` is there twice", csv.names[at]));
  }
  for (std::vector<std::string> row = reader.next(); !row.empty(); row = reader.next()) {
    if (row.size() != csv.names.size())
      reader.refuse(fmt::format("wanted {} values, found {}", csv.names.size(), row.size()));
    csv.rows.push_back(std::move(row));
  }
  if (csv.rows.empty())
    throw DataError("it has no row",
                    {.file = file, .hint = "write a row for each cell below the names"});
  return csv;
}

}  // namespace convoy::sweep
