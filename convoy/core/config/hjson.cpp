// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/hjson.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "convoy/core/base/utf8.h"

namespace convoy::config {
namespace {

constexpr size_t kMaxHjsonDepth = 32;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
}

std::string_view without_spaces_after(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Removes the digits that `text` begins with. Returns false when there are none.
bool take_digits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  text.remove_prefix(count);
  return count > 0;
}

// True for numbers in JSON's syntax.
bool is_hjson_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0' && is_digit(text[1])) return false;
  if (!take_digits(text)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!take_digits(text)) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (!take_digits(text)) return false;
  }
  return text.empty();
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

class Reader {
 public:
  Reader(std::string_view text, std::string name, ErrorList* errors)
      : text_(text), name_(std::move(name)), errors_(errors) {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  Node read() {
    skip_blanks();
    Node root;
    if (peek() == '{' || peek() == '[') {
      root = value();
    } else {
      root = make(NodeKind::Map);
      members(root, '\0');
    }
    skip_blanks();
    if (!done()) fail("text after the end of the file's value");
    return root;
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool next_is(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  void step(size_t letters = 1) {
    for (; letters > 0 && !done(); --letters) line_ += text_[at_++] == '\n' ? 1 : 0;
  }

  [[noreturn]] void fail(const std::string& message,
                         const std::string& hint =
                             "a member is KEY: VALUE on a line of its own, each { and [ is closed "
                             "by } and ], and a text with , : or # stands in quotes") const {
    throw ConfigError(message, {.file = name_, .line = line_, .hint = hint});
  }

  Node make(NodeKind kind) const {
    Node node;
    node.kind = kind;
    node.file = name_;
    node.line = line_;
    return node;
  }

  bool at_comment() const { return peek() == '#' || next_is("//") || next_is("/*"); }

  void skip_blanks() {
    while (!done()) {
      if (is_space(peek())) {
        step();
      } else if (next_is("/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fail("the comment that begins here has no end");
        step(end + 2 - at_);
      } else if (at_comment()) {
        while (!done() && peek() != '\n') step();
      } else {
        return;
      }
    }
  }

  void skip_comma() {
    skip_blanks();
    if (peek() != ',') return;
    step();
    skip_blanks();
  }

  Node value() {
    if (peek() == '{' || peek() == '[') return container();
    if (next_is("'''")) return multi_line();
    if (peek() == '"' || peek() == '\'') {
      Node node = make(NodeKind::Scalar);
      node.quoted = true;
      node.text = quoted();
      return node;
    }
    return plain();
  }

  Node container() {
    if (++depth_ > kMaxHjsonDepth)
      fail(fmt::format("nested deeper than {} levels", kMaxHjsonDepth));
    const bool is_map = peek() == '{';
    Node node = make(is_map ? NodeKind::Map : NodeKind::List);
    step();
    skip_blanks();
    if (is_map)
      members(node, '}');
    else
      items(node);
    --depth_;
    return node;
  }

  void members(Node& map, char closing) {
    while (closing == '\0' ? !done() : peek() != closing) {
      if (done()) fail(fmt::format("the {{ of line {} is not closed", map.line));
      const int64_t line = line_;
      std::string key = read_key();
      skip_blanks();
      if (peek() != ':') fail(fmt::format("wanted : after the key `{}`", key));
      step();
      skip_blanks();
      Node member = value();
      member.line = line;
      add_member(map, std::move(key), std::move(member));
      skip_comma();
    }
    if (closing != '\0') step();
  }

  void add_member(Node& map, std::string key, Node member) const {
    if (const Node* first = map.find(key)) {
      const ConfigError twice =
          member.error(fmt::format("`{}` is given twice, first on line {}", key, first->line), key,
                       "keep one of them");
      if (errors_ == nullptr) throw ConfigError(twice);
      errors_->add(twice);
      return;
    }
    map.entries.emplace_back(std::move(key), std::move(member));
  }

  void items(Node& list) {
    while (peek() != ']') {
      if (done()) fail(fmt::format("the [ of line {} is not closed", list.line));
      list.items.push_back(value());
      skip_comma();
    }
    step();
  }

  std::string read_key() {
    if (peek() == '"' || peek() == '\'') return quoted();
    const size_t begin = at_;
    while (!done() && !is_space(peek()) &&
           std::string_view(",:[]{}").find(peek()) == std::string_view::npos)
      step();
    if (at_ == begin) fail("wanted a key");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // A literal ends at a delimiter; unquoted text extends to the end of its line.
  Node plain() {
    Node node = make(NodeKind::Scalar);
    const size_t begin = at_;
    while (true) {
      const bool line_ends = done() || peek() == '\n' || peek() == '\r';
      const bool may_end =
          line_ends || peek() == ',' || peek() == '}' || peek() == ']' || at_comment();
      const std::string_view word = without_spaces_after(text_.substr(begin, at_ - begin));
      if (may_end &&
          (word == "true" || word == "false" || word == "null" || is_hjson_number(word))) {
        node.text = word;
        if (word == "null") node.kind = NodeKind::Null;
        return node;
      }
      if (line_ends) {
        if (word.empty()) fail("wanted a value");
        node.text = word;
        node.quoted = true;
        return node;
      }
      if (word.empty() && may_end) fail("wanted a value");
      step();
    }
  }

  std::string quoted() {
    const char quote = peek();
    const int64_t begin_line = line_;
    std::string out;
    for (step(); peek() != quote; step()) {
      if (done() || peek() == '\n') {
        line_ = begin_line;
        fail("the text in quotes that begins here has no end");
      }
      if (peek() != '\\')
        out += peek();
      else
        escape(out);
    }
    step();
    return out;
  }

  void escape(std::string& out) {
    step();
    constexpr std::string_view kLetters = "\"'\\/bfnrt";
    constexpr std::string_view kMeanings = "\"'\\/\b\f\n\r\t";
    if (const size_t index = kLetters.find(peek()); !done() && index != std::string_view::npos) {
      out += kMeanings[index];
      return;
    }
    if (peek() != 'u') fail("unknown \\ sequence in a text");
    uint32_t code = hexadecimal();
    if (code >= 0xD800 && code < 0xDC00 && peek(1) == '\\' && peek(2) == 'u') {
      step(2);
      const uint32_t low = hexadecimal();
      if (low < 0xDC00 || low > 0xDFFF) fail("half of a \\u pair without its other half");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code <= 0xDFFF) fail("half of a \\u pair without its other half");
    append_utf8(out, code);
  }

  // Leaves the position on the last digit.
  uint32_t hexadecimal() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
    const auto [end, status] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || status != std::errc() || end != digits.data() + 4)
      fail("wanted four hexadecimal digits after \\u");
    step(4);
    return code;
  }

  // The indentation of the opening quotes is removed from each line. The last line break is not
  // part of the text.
  Node multi_line() {
    Node node = make(NodeKind::Scalar);
    node.quoted = true;
    const size_t line_begin = text_.rfind('\n', at_);
    const size_t indent = at_ - (line_begin == std::string_view::npos ? 0 : line_begin + 1);
    const size_t end = text_.find("'''", at_ + 3);
    if (end == std::string_view::npos) fail("the ''' text that begins here has no end");
    std::string_view text = text_.substr(at_ + 3, end - at_ - 3);
    step(end + 3 - at_);
    if (const size_t first = text.find('\n');
        first != std::string_view::npos && without_spaces_after(text.substr(0, first)).empty())
      text.remove_prefix(first + 1);
    while (!text.empty()) {
      for (size_t spaces = 0;
           spaces < indent && !text.empty() && (text[0] == ' ' || text[0] == '\t'); ++spaces)
        text.remove_prefix(1);
      const size_t line_end = std::min(text.find('\n'), text.size());
      node.text += text.substr(0, line_end);
      if (line_end < text.size()) node.text += '\n';
      text.remove_prefix(std::min(line_end + 1, text.size()));
    }
    if (node.text.ends_with('\n')) node.text.pop_back();
    return node;
  }

  std::string_view text_;
  std::string name_;
  ErrorList* errors_;  // null: errors are thrown
  size_t at_ = 0;
  int64_t line_ = 1;
  size_t depth_ = 0;
};

}  // namespace

Node parse_hjson(const std::string& text, const std::string& name, ErrorList* errors) {
  if (text.find('\0') != std::string::npos || find_invalid_utf8(text))
    throw ConfigError("this file is not UTF-8 text",
                      {.file = name, .hint = "save it as UTF-8: iconv -f latin1 -t utf-8 FILE"});
  return Reader(text, name, errors).read();
}

Node load_hjson(const std::filesystem::path& path, ErrorList* errors) {
  return parse_hjson(read_config_text(path), path.string(), errors);
}

}  // namespace convoy::config
