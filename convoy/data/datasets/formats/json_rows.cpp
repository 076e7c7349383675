// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/json_rows.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "convoy/data/datasets/formats/output_file.h"

namespace convoy::data {
namespace {

bool is_json_space(int byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; }

class JsonLines : public RowSource {
 public:
  explicit JsonLines(ByteReader file) : reader_(std::move(file)) {}

  std::optional<Row> next() override {
    std::optional<RawRow> raw = next_raw();
    if (!raw) return std::nullopt;
    return parse_row(std::move(*raw));
  }
  std::optional<RawRow> next_raw() override {
    row_is_lost_ = false;
    while (reader_.peek() != ByteReader::kEnd) {
      const ErrorLocation location{.file = reader_.path().string(), .line = reader_.line()};
      text_.clear();
      const bool fits = reader_.read_line(text_, kMaxRowBytes);
      if (fits && text_.find_first_not_of(" \t\r") == std::string::npos) continue;
      const int64_t index = index_++;
      row_is_lost_ = true;
      if (!fits) {
        text_.clear();
        throw DataError(fmt::format("the line is longer than {} MiB", kMaxRowBytes >> 20),
                        {.file = location.file,
                         .line = location.line,
                         .hint = "write one row a line, or cut the row"});
      }
      return RawRow{{nullptr, location.file, location.line, index}, text_, 1};
    }
    return std::nullopt;
  }
  int64_t skip(int64_t count) override {
    int64_t skipped = 0;
    while (skipped < count && reader_.peek() != ByteReader::kEnd) {
      text_.clear();
      const bool fits = reader_.read_line(text_, kMaxRowBytes);
      skipped += !fits || text_.find_first_not_of(" \t\r") != std::string::npos;
    }
    index_ += skipped;
    return skipped;
  }
  bool row_is_lost() const override { return row_is_lost_; }
  std::string lost_row() const override { return text_; }

 private:
  ByteReader reader_;
  std::string text_;
  int64_t index_ = 0;
  bool row_is_lost_ = false;
};

// Reads the elements of a JSON list one by one. Each is parsed alone, so memory holds one row.
class JsonList : public RowSource {
 public:
  explicit JsonList(ByteReader file) : reader_(std::move(file)) {}

  std::optional<Row> next() override {
    std::optional<RawRow> raw = next_raw();
    if (!raw) return std::nullopt;
    return parse_row(std::move(*raw));
  }
  std::optional<RawRow> next_raw() override {
    if (state_ == State::Before) open_list();
    if (state_ == State::After) return std::nullopt;
    row_is_lost_ = false;
    skip_space();
    if (reader_.peek() == ']' && !after_comma_) {
      close_list();
      return std::nullopt;
    }
    const ErrorLocation here = location();
    const int64_t column = reader_.column();
    const int64_t index = index_++;
    read_value();
    skip_space();
    after_comma_ = reader_.peek() == ',';
    if (after_comma_) {
      reader_.get();
    } else if (reader_.peek() != ']') {
      fail("wanted ',' or ']' after a row");
    }
    row_is_lost_ = true;
    return RawRow{{nullptr, here.file, here.line, index}, text_, column};
  }
  bool row_is_lost() const override { return row_is_lost_; }
  std::string lost_row() const override { return text_; }

 private:
  enum class State { Before, Inside, After };

  ErrorLocation location() const {
    return {.file = reader_.path().string(), .line = reader_.line()};
  }
  [[noreturn]] void fail(std::string_view wanted) {
    row_is_lost_ = false;
    const char* found = reader_.peek() == ByteReader::kEnd ? ", found the end of the file" : "";
    throw DataError(fmt::format("{}{} at byte {}", wanted, found, reader_.offset_bytes() + 1),
                    {.file = reader_.path().string(),
                     .line = reader_.line(),
                     .hint = "write [ROW, ROW], or a row a line into a .jsonl file"});
  }
  void skip_space() {
    while (is_json_space(reader_.peek())) reader_.get();
  }
  void expect(char wanted) {
    skip_space();
    if (reader_.peek() != wanted) fail(fmt::format("wanted '{}'", wanted));
    reader_.get();
  }

  void take() {
    if (text_.size() >= kMaxRowBytes)
      fail(fmt::format("a row is longer than {} MiB", kMaxRowBytes >> 20));
    text_.push_back(static_cast<char>(reader_.get()));
  }

  // Reads the text of one value: up to the bracket that closes it, or the separator that ends a
  // bare word.
  void read_value() {
    text_.clear();
    int depth = 0;
    do {
      const int byte = reader_.peek();
      if (byte == ByteReader::kEnd) fail("wanted the end of a row");
      if (depth == 0 && (byte == ',' || byte == ']' || byte == '}' || byte == ':')) {
        if (text_.empty()) fail("wanted a value");
        return;
      }
      if (byte == '"') {
        read_string();
      } else {
        depth += byte == '{' || byte == '[';
        depth -= byte == '}' || byte == ']';
        take();
      }
      if (depth > kMaxJsonDepth)
        fail(fmt::format("JSON nested deeper than {} levels", kMaxJsonDepth));
    } while (depth > 0 || !ends_value());
  }
  bool ends_value() {
    const char last = text_.back();
    if (last == '}' || last == ']' || last == '"') return true;
    const int byte = reader_.peek();
    return is_json_space(byte) || byte == ByteReader::kEnd;
  }
  void read_string() {
    take();
    while (true) {
      static constexpr ByteSet kStops = byte_set("\"\\");
      reader_.read_until(kStops, text_, kMaxRowBytes);
      if (reader_.peek() == '"') break;
      if (reader_.peek() == '\\') take();
      if (reader_.peek() == ByteReader::kEnd) fail("wanted the end of a string");
      take();
    }
    take();
  }

  void open_list() {
    skip_space();
    if (reader_.peek() == '{') {
      reader_.get();
      find_data_key();
      in_object_ = true;
    }
    skip_space();
    if (reader_.peek() != '[') fail("wanted a list of rows, [...] or {\"data\": [...]}");
    reader_.get();
    state_ = State::Inside;
  }
  std::string read_key() {
    skip_space();
    if (reader_.peek() != '"') fail("wanted a key");
    read_value();
    const auto key = parse_json_row(text_, location()).get<std::string>();
    expect(':');
    skip_space();
    return key;
  }
  void find_data_key() {
    while (read_key() != "data") {
      read_value();
      parse_json_row(text_, location());
      skip_space();
      if (reader_.peek() != ',') fail("wanted the key \"data\" with a list of rows");
      reader_.get();
    }
  }
  void close_list() {
    reader_.get();
    state_ = State::After;
    skip_space();
    while (in_object_ && reader_.peek() == ',') {
      reader_.get();
      if (read_key() == "data") fail("the key \"data\" appears twice");
      read_value();
      parse_json_row(text_, location());
      skip_space();
    }
    if (in_object_) expect('}');
    skip_space();
    if (reader_.peek() != ByteReader::kEnd)
      fail("wanted the end of the file after the list of rows");
  }

  ByteReader reader_;
  State state_ = State::Before;
  bool in_object_ = false;
  bool after_comma_ = false;
  bool row_is_lost_ = false;
  std::string text_;
  int64_t index_ = 0;
};

class JsonLinesWriter : public RowWriter {
 public:
  explicit JsonLinesWriter(const std::filesystem::path& path) : path_(path), file_(path) {}

  void write(const nlohmann::ordered_json& row) override {
    file_.write(json_row_text(row, -1, rows_ + 1, path_));
    file_.write("\n");
    ++rows_;
  }
  WrittenFile finish() override { return file_.publish(rows_); }

 private:
  std::filesystem::path path_;
  OutputFile file_;
  int64_t rows_ = 0;
};

class JsonListWriter : public RowWriter {
 public:
  explicit JsonListWriter(const std::filesystem::path& path) : path_(path), file_(path) {}

  void write(const nlohmann::ordered_json& row) override {
    const std::string text = json_row_text(row, 2, rows_ + 1, path_);
    file_.write(rows_ == 0 ? "[\n  " : ",\n  ");
    std::string_view rest = text;  // no line break of it is inside a string
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
  std::filesystem::path path_;
  OutputFile file_;
  int64_t rows_ = 0;
};

// The first byte ahead that is not white space, or 0 without one; sets `begin` to its offset.
char first_byte_ahead(ByteReader& file, size_t& begin) {
  constexpr size_t kFirstLook = size_t{1} << 12;
  for (size_t wanted = kFirstLook;; wanted *= 2) {
    const std::string_view text = file.ahead(wanted);
    begin = text.find_first_not_of(" \t\r\n");
    if (begin != std::string_view::npos) return text[begin];
    if (text.size() < wanted || wanted > kMaxRowBytes) return '\0';
  }
}

// The line that begins at `begin`; empty when it is longer than the row limit.
std::optional<std::string> line_ahead(ByteReader& file, size_t begin) {
  for (size_t wanted = begin + 1;; wanted *= 2) {
    const std::string_view text = file.ahead(wanted).substr(begin);
    const size_t end = text.find('\n');
    if (std::min(end, text.size()) > kMaxRowBytes) return std::nullopt;
    if (end != std::string_view::npos || begin + text.size() < wanted)
      return std::string(text.substr(0, end));
  }
}

// A file that begins with '{' is JSON lines when its first line is one complete value and not the
// {"data": [...]} form.
bool is_json_lines(ByteReader& file) {
  size_t begin = 0;
  if (first_byte_ahead(file, begin) != '{') return false;
  std::optional<std::string> line = line_ahead(file, begin);
  if (!line) return false;
  replace_damaged_text(*line);  // damage does not change the format
  try {
    const auto value = parse_json_row(*line, {});
    const auto data = value.find("data");
    return data == value.end() || !data->is_array();
  } catch (const JsonRowError&) {
    return false;
  } catch (const DataError&) {  // JSON with a number out of range, which reading the row refuses
    return true;
  }
}

bool is_json(ByteReader& file) {
  size_t begin = 0;
  const char byte = first_byte_ahead(file, begin);
  return byte == '{' || byte == '[';
}

std::unique_ptr<RowSource> open_json(ByteReader file, TextRows /*text_rows*/) {
  if (is_json_lines(file)) return open_json_lines(std::move(file));
  return std::make_unique<JsonList>(std::move(file));
}

}  // namespace

std::unique_ptr<RowSource> open_json_lines(ByteReader file) {
  return std::make_unique<JsonLines>(std::move(file));
}

RowFormat json_lines_format() {
  return {.name = "JSON lines",
          .suffixes = {".jsonl", ".ndjson"},
          .sniff = is_json_lines,
          .open = [](ByteReader file, TextRows) { return open_json_lines(std::move(file)); },
          .create = [](const std::filesystem::path& path) -> std::unique_ptr<RowWriter> {
            return std::make_unique<JsonLinesWriter>(path);
          }};
}

RowFormat json_format() {
  return {.name = "JSON",
          .suffixes = {".json"},
          .sniff = is_json,
          .open = open_json,
          .create = [](const std::filesystem::path& path) -> std::unique_ptr<RowWriter> {
            return std::make_unique<JsonListWriter>(path);
          }};
}

}  // namespace convoy::data
