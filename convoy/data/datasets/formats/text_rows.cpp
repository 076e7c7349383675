// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/text_rows.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "convoy/core/base/utf8.h"

namespace convoy::data {
namespace {

// Reads plain text as rows {"text": ...}: the whole file is one row, or every line that is not
// blank.
class TextFileRows : public RowSource {
 public:
  TextFileRows(ByteReader file, TextRows rows) : reader_(std::move(file)), rows_(rows) {}

  std::optional<Row> next() override {
    row_is_lost_ = false;
    while (reader_.peek() != ByteReader::kEnd) {
      const ErrorLocation location{.file = reader_.path().string(), .line = reader_.line()};
      text_.clear();
      const bool fits = rows_ == TextRows::Line ? read_line() : read_all();
      if (fits && text_.empty()) continue;
      const int64_t index = index_++;
      row_is_lost_ = true;
      if (!fits) {
        text_.clear();
        throw DataError(
            fmt::format("the {} is longer than {} MiB",
                        rows_ == TextRows::Line ? "line" : "document", kMaxRowBytes >> 20),
            {.file = location.file,
             .line = location.line,
             .hint = "text_rows: line makes a row of every line; or cut the file"});
      }
      check_text(location);
      return Row{{{"text", text_}}, location.file, location.line, index};
    }
    return std::nullopt;
  }
  bool row_is_lost() const override { return row_is_lost_; }
  std::string lost_row() const override { return text_; }

 private:
  bool read_line() {
    const bool fits = reader_.read_line(text_, kMaxRowBytes);
    if (text_.ends_with('\r')) text_.pop_back();
    if (text_.find_first_not_of(" \t") == std::string::npos) text_.clear();
    return fits;
  }

  bool read_all() {
    static constexpr ByteSet kNone{};
    reader_.read_until(kNone, text_, kMaxRowBytes + 1);
    const bool fits = text_.size() <= kMaxRowBytes;
    std::string rest;
    while (!fits && reader_.peek() != ByteReader::kEnd) {
      rest.clear();
      reader_.read_until(kNone, rest, kMaxRowBytes);
    }
    return fits;
  }

  void check_text(ErrorLocation location) const {
    const auto line_of = [&](size_t byte) {
      return location.line +
             std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(byte), '\n');
    };
    if (const size_t nul = text_.find('\0'); nul != std::string::npos) {
      location.line = line_of(nul);
      location.hint = "remove it: tr -d '\\000' < FILE > NEW";
      throw DataError("NUL byte, which no text has", location);
    }
    if (const auto bad = find_invalid_utf8(text_)) {
      location.line = line_of(*bad);
      location.hint = "save the file as UTF-8: iconv -f latin1 -t utf-8 FILE > NEW";
      throw DataError("not valid UTF-8", location);
    }
  }

  ByteReader reader_;
  TextRows rows_;
  std::string text_;
  int64_t index_ = 0;
  bool row_is_lost_ = false;
};

}  // namespace

TextRows text_rows_named(std::string_view name) {
  return name == "line" ? TextRows::Line : TextRows::Document;
}

RowFormat text_format() {
  return {.name = "text",
          .suffixes = {".txt"},
          .open = [](ByteReader file, TextRows rows) -> std::unique_ptr<RowSource> {
            return std::make_unique<TextFileRows>(std::move(file), rows);
          },
          .is_text = true};
}

}  // namespace convoy::data
