// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "convoy/data/byte_reader.h"
#include "convoy/data/row_formats.h"

namespace convoy::data {
namespace {

bool is_json_space(int byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; }

class JsonLines : public RowSource {
 public:
  explicit JsonLines(const std::filesystem::path& path) : reader_(path) {}

  std::optional<Row> next() override {
    std::optional<RawRow> raw = next_raw();
    if (!raw) return std::nullopt;
    return parse_row(std::move(*raw));
  }
  std::optional<RawRow> next_raw() override {
    row_is_lost_ = false;
    while (reader_.peek() != ByteReader::kEnd) {
      const ErrorPlace place{.file = reader_.path().string(), .line = reader_.line()};
      text_.clear();
      const bool fits = reader_.read_line(text_, kMaxRowBytes);
      if (fits && text_.find_first_not_of(" \t\r") == std::string::npos) continue;
      const int64_t index = index_++;
      row_is_lost_ = true;
      if (!fits) {
        text_.clear();
        throw DataError(fmt::format("the line is longer than {} MiB", kMaxRowBytes >> 20), place);
      }
      return RawRow{{nullptr, place.file, place.line, index}, text_, 1};
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

// Finds the elements of the list one by one; each is parsed alone, so memory holds one row.
class JsonList : public RowSource {
 public:
  explicit JsonList(const std::filesystem::path& path) : reader_(path) {}

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
    const ErrorPlace here = place();
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

  ErrorPlace place() const { return {.file = reader_.path().string(), .line = reader_.line()}; }
  [[noreturn]] void fail(std::string_view wanted) {
    row_is_lost_ = false;
    const char* found = reader_.peek() == ByteReader::kEnd ? ", found the end of the file" : "";
    throw DataError(fmt::format("{}{} at byte {}", wanted, found, reader_.offset_bytes() + 1),
                    place());
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

  // The text of one value: up to the bracket that closes it, or the separator that ends a bare word.
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
    const auto key = parse_json_row(text_, place()).get<std::string>();
    expect(':');
    skip_space();
    return key;
  }
  void find_data_key() {
    while (read_key() != "data") {
      read_value();
      parse_json_row(text_, place());
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
      if (read_key() == "data") fail("the key \"data\" stands twice");
      read_value();
      parse_json_row(text_, place());
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

}  // namespace

std::unique_ptr<RowSource> open_json_lines(const std::filesystem::path& path) {
  return std::make_unique<JsonLines>(path);
}

std::unique_ptr<RowSource> open_json_list(const std::filesystem::path& path) {
  return std::make_unique<JsonList>(path);
}

}  // namespace convoy::data
