// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/quoting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"

namespace convoy::launch {
namespace {

bool is_plain(char letter, std::string_view others) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         others.find(letter) != std::string_view::npos;
}

// Words that YAML 1.1 takes for a boolean or for nothing.
bool is_yaml_word(const std::string& text) {
  const std::string lower = lower_case(text);
  return lower == "true" || lower == "false" || lower == "yes" || lower == "no" || lower == "on" ||
         lower == "off" || lower == "y" || lower == "n" || lower == "null";
}

// The first character is a letter, so YAML reads no number, date, sign or tag.
bool needs_no_quotes(const std::string& text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0) return false;
  return !is_yaml_word(text) && std::all_of(text.begin(), text.end(),
                                            [](char letter) { return is_plain(letter, "_./-"); });
}

// JSON's quoting is valid in YAML, except for characters that a YAML reader takes for line breaks
// or refuses.
std::string quoted(const std::string& text) {
  std::string json;
  try {
    json = nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw ConfigError("a manifest holds UTF-8 text only, but a value or argument is not UTF-8",
                      {.hint = "pass such bytes in a file"});
  }
  struct Escape {
    std::string_view bytes;
    std::string_view text;
  };
  static constexpr Escape kEscapes[] = {{"\x7f", "\\u007f"},
                                        {"\xc2\x85", "\\u0085"},
                                        {"\xe2\x80\xa8", "\\u2028"},
                                        {"\xe2\x80\xa9", "\\u2029"},
                                        {"\xef\xbb\xbf", "\\ufeff"}};
  for (const Escape& escape : kEscapes)
    for (size_t at = json.find(escape.bytes); at != std::string::npos; at = json.find(escape.bytes))
      json.replace(at, escape.bytes.size(), escape.text);
  // The other C1 controls are two bytes each: C2 80 to C2 9F.
  std::string clean;
  for (size_t at = 0; at < json.size(); ++at) {
    const auto byte = static_cast<unsigned char>(json[at]);
    const auto next = static_cast<unsigned char>(at + 1 < json.size() ? json[at + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      clean += fmt::format("\\u{:04x}", next);
      ++at;
    } else {
      clean += json[at];
    }
  }
  return clean;
}

std::string scalar(const nlohmann::ordered_json& value) {
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  return needs_no_quotes(text) ? text : quoted(text);
}

bool is_block(const nlohmann::ordered_json& value) {
  return value.is_structured() && !value.empty();
}

// Appends `value` at the end of the current line. Its further lines are indented by `depth` spaces.
void append_block(std::string& text, const nlohmann::ordered_json& value, size_t depth) {
  const std::string indent(depth, ' ');
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) text += indent;
    first = false;
    if (value.is_array()) {
      text += "- ";
      if (is_block(member)) {
        append_block(text, member, depth + 2);
      } else {
        text += scalar(member) + "\n";
      }
    } else if (is_block(member)) {
      text += scalar(key) + ":\n" + indent + "  ";
      append_block(text, member, depth + 2);
    } else {
      text += scalar(key) + ": " + scalar(member) + "\n";
    }
  }
}

}  // namespace

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += shell_word(word);
  }
  return text;
}

std::string yaml_text(const nlohmann::ordered_json& document) {
  std::string text;
  append_block(text, document, 0);
  return text;
}

}  // namespace convoy::launch
