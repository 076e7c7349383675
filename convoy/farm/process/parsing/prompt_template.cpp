// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/prompt_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/wide_text.h"

namespace convoy::process {
namespace {

constexpr int64_t kMostPromptBytes = int64_t{1} << 20;
constexpr std::string_view kOpenField = "{{";
constexpr std::string_view kCloseField = "}}";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string file_content(std::string text) {
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::string trimmed_field(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// Spellings of names in other programs. The last spellings also occur in tags, lists and prices. A
// longer opening stands before its beginning.
struct NameForm {
  std::string_view open;
  std::string_view close;
  bool is_common_text = false;
};
constexpr std::array<NameForm, 8> kOtherForms = {{{"${", "}"},
                                                  {"{", "}"},
                                                  {"%(", ")s"},
                                                  {"<%=", "%>"},
                                                  {"[[", "]]"},
                                                  {"<", ">", true},
                                                  {"[", "]", true},
                                                  {"$", "", true}}};

// Names between double underscores that are Python's own.
constexpr std::array<std::string_view, 10> kNamesOfPython = {
    "name", "main", "init", "file", "doc", "class", "dict", "str", "repr", "call"};
constexpr std::string_view kUnderscores = "__";

struct OtherSpelling {
  size_t at = 0;
  std::string text;
  std::string name;  // name; empty for %s
  bool is_common_text = false;
};

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool begins_name(char letter) {
  return is_name_letter(letter) && std::isdigit(static_cast<unsigned char>(letter)) == 0;
}

size_t end_of_name(std::string_view text, size_t begin) {
  while (begin < text.size() && is_name_letter(text[begin])) ++begin;
  return begin;
}

bool is_name(std::string_view text) {
  return !text.empty() && begins_name(text[0]) && end_of_name(text, 0) == text.size();
}

// True for Python's "s", ".2f" and ">10". A number alone may be a value of an object: {hint:1}.
bool is_format(std::string_view text) {
  constexpr std::string_view kTypes = "bcdeEfFgGnosxX%";
  constexpr std::string_view kAligned = "<>^=+,.";
  const bool has_type = !text.empty() && kTypes.find(text.back()) != kTypes.npos;
  const std::string_view before = has_type ? text.substr(0, text.size() - 1) : text;
  return before.find_first_not_of("<>^=+,.-#*_0123456789 ") == before.npos &&
         (has_type || before.find_first_of(kAligned) != before.npos);
}

// The key of "[hint]", "['hint']" or "[\"hint\"]".
std::string_view key_in(std::string_view index) {
  for (const char quote : {'\'', '"'})
    if (index.size() > 2 && index.front() == quote && index.back() == quote)
      return index.substr(1, index.size() - 2);
  return index;
}

// Python's fields with a conversion, a format or an index: "{hint!r}", "{hint:s}", "{row[hint]}".
std::optional<OtherSpelling> python_field_at(std::string_view text) {
  if (text.size() < 2 || text[0] != '{' || !begins_name(text[1])) return std::nullopt;
  size_t at = end_of_name(text, 1);
  std::string name(text.substr(1, at - 1));
  const auto next_is = [&](char letter) { return at < text.size() && text[at] == letter; };
  if (next_is('[')) {
    const size_t close = text.find(']', at);
    if (close == text.npos) return std::nullopt;
    const std::string_view key = key_in(text.substr(at + 1, close - at - 1));
    if (is_name(key)) name = fmt::format("{}{}", name == "row" ? "row." : "", key);
    at = close + 1;
  }
  if (next_is('!') && at + 1 < text.size() && std::string_view("rsa").find(text[at + 1]) < 3)
    at += 2;
  if (next_is(':')) {
    const size_t close = std::min(text.find('}', at), text.size());
    if (!is_format(text.substr(at + 1, close - at - 1))) return std::nullopt;
    at = close;
  }
  if (!next_is('}')) return std::nullopt;
  return OtherSpelling{.text = std::string(text.substr(0, at + 1)), .name = std::move(name)};
}

// "__hint__", which may be bold text of Markdown too.
std::optional<OtherSpelling> underscored_at(std::string_view text) {
  if (!text.starts_with(kUnderscores)) return std::nullopt;
  const size_t close = text.find(kUnderscores, kUnderscores.size());
  if (close == text.npos) return std::nullopt;
  const std::string_view name = text.substr(kUnderscores.size(), close - kUnderscores.size());
  const size_t end = close + kUnderscores.size();
  if (!is_name(name) || (end < text.size() && is_name_letter(text[end])) ||
      std::find(kNamesOfPython.begin(), kNamesOfPython.end(), name) != kNamesOfPython.end())
    return std::nullopt;
  return OtherSpelling{
      .text = std::string(text.substr(0, end)), .name = std::string(name), .is_common_text = true};
}

// The name that is spelt in `form` at the start of `text`.
std::optional<OtherSpelling> spelling_at(std::string_view text, const NameForm& form) {
  if (!text.starts_with(form.open)) return std::nullopt;
  const auto skip = [&](size_t at, const auto& belongs) {
    while (at < text.size() && belongs(text[at])) ++at;
    return at;
  };
  const auto is_blank = [](char letter) { return letter == ' ' || letter == '\t'; };
  const size_t begin = skip(form.open.size(), is_blank);
  const size_t end =
      skip(begin, [](char letter) { return is_name_letter(letter) || letter == '.'; });
  const size_t close = form.close.empty() ? end : skip(end, is_blank);
  if (begin == end || std::isdigit(static_cast<unsigned char>(text[begin])) != 0 ||
      !text.substr(close).starts_with(form.close))
    return std::nullopt;
  return OtherSpelling{.text = std::string(text.substr(0, close + form.close.size())),
                       .name = std::string(text.substr(begin, end - begin)),
                       .is_common_text = form.is_common_text};
}

std::vector<OtherSpelling> other_spellings(const std::string& text) {
  std::vector<OtherSpelling> found;
  for (size_t at = 0; at < text.size(); ++at) {
    // Skips \boxed{answer} and {{ name }}.
    if (at > 0 && (is_name_letter(text[at - 1]) || text[at - 1] == '{')) continue;
    const std::string_view rest = std::string_view(text).substr(at);
    std::optional<OtherSpelling> spelling = python_field_at(rest);
    if (!spelling) spelling = underscored_at(rest);
    for (const NameForm& form : kOtherForms)
      if (!spelling) spelling = spelling_at(rest, form);
    if (!spelling && rest.starts_with("%s")) spelling = OtherSpelling{.text = "%s", .name = {}};
    if (!spelling) continue;
    spelling->at = at;
    at += spelling->text.size() - 1;
    found.push_back(std::move(*spelling));
  }
  return found;
}

std::string_view line_around(std::string_view text, size_t at) {
  const size_t before = at == 0 ? text.npos : text.rfind('\n', at - 1);
  const size_t begin = before == text.npos ? 0 : before + 1;
  return text.substr(begin, std::min(text.find('\n', at), text.size()) - begin);
}

// True for "$x$" and "$x + y$": at least one dollar sign of the line begins no name.
bool has_formula(std::string_view line) {
  for (size_t at = line.find('$'); at != line.npos; at = line.find('$', at + 1))
    if (at + 1 == line.size() || !(is_name_letter(line[at + 1]) || line[at + 1] == '{'))
      return true;
  return false;
}

// True in x^{n}, \frac{1}{n} and \{n}: the braces belong to the text before them.
bool belongs_to_formula(std::string_view text, size_t at) {
  if (at == 0) return false;
  const char before = text[at - 1];
  if (before == '}') return !text.substr(0, at).ends_with(kCloseField);
  return std::string_view("^_)]\\").find(before) != std::string_view::npos;
}

// True for "%s" between blanks, as in "Solve: %s". "%s\n" within quotes is code.
bool stands_alone(std::string_view text, size_t at, size_t length) {
  constexpr std::string_view kAround = " \t\r\n.,:;?!";
  const auto is_around = [&](char letter) { return kAround.find(letter) != kAround.npos; };
  return (at == 0 || is_around(text[at - 1])) &&
         (at + length == text.size() || is_around(text[at + length]));
}

std::vector<std::string> name_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char letter : text) {
    if (is_name_letter(letter)) {
      word += letter;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

bool is_known(const std::string& name, const std::vector<std::string>& known_names) {
  return (name.starts_with("row.") && name.size() > 4) ||
         std::find(known_names.begin(), known_names.end(), name) != known_names.end();
}

}  // namespace

std::string read_prompt_file(const std::string& file, const std::string& key) {
  try {
    std::string text = read_file(file, kMostPromptBytes);
    refuse_wide_text(text, file);
    return text;
  } catch (const DataError& error) {
    ErrorLocation place = error.location();
    place.key = key;
    throw ConfigError(error.what(), place);
  }
}

PromptTemplate::PromptTemplate(const std::string& text, const std::string& name,
                               const std::vector<std::string>& known_names)
    : text_(file_content(text)), name_(name) {
  if (text_.find_first_not_of(" \t\r\n") == std::string::npos)
    throw ConfigError(
        "a prompt is empty",
        {.file = name, .hint = "write a prompt into it, such as Solve: {{ problem }}"});
  size_t at = 0;
  for (;;) {
    const size_t open = text_.find(kOpenField, at);
    if (open == std::string::npos) break;
    const size_t close = text_.find(kCloseField, open);
    if (close == std::string::npos)
      throw ConfigError("a prompt's {{ is never closed by }}", place_of(open, known_names));
    const std::string found =
        trimmed_field(std::string_view(text_).substr(open + 2, close - open - 2));
    if (!is_known(found, known_names))
      throw ConfigError(
          fmt::format("unknown name `{}` in a prompt{}", found, did_you_mean(found, known_names)),
          place_of(open, known_names));
    parts_.push_back({text_.substr(at, open - at), found});
    at = close + kCloseField.size();
  }
  parts_.push_back({text_.substr(at), ""});
  require_names(known_names);
}

ErrorLocation PromptTemplate::place_of(size_t at,
                                       const std::vector<std::string>& known_names) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(at);
  return {
      .file = name_,
      .line = 1 + std::count(text_.begin(), end, '\n'),
      .hint = fmt::format("this prompt may use {}, and row.COLUMN", fmt::join(known_names, ", "))};
}

// Names that a person spelt as in another program would be sent as plain text, without their
// values.
void PromptTemplate::require_names(const std::vector<std::string>& known_names) const {
  const std::vector<OtherSpelling> spellings = other_spellings(text_);
  const bool has_names = !names().empty();
  const auto is_slip = [&](const OtherSpelling& spelling) {
    return is_known(spelling.name, known_names) && !reads(spelling.name) &&
           !(has_names && spelling.is_common_text);
  };
  auto slip = std::find_if(spellings.begin(), spellings.end(), is_slip);
  const bool is_name = slip != spellings.end();
  if (has_names && !is_name) return;
  if (!is_name)
    slip = std::find_if(spellings.begin(), spellings.end(),
                        [](const OtherSpelling& other) { return !other.is_common_text; });
  const bool has_one = slip != spellings.end();
  ErrorLocation place = place_of(has_one ? slip->at : 0, known_names);
  place.hint = fmt::format("write {{{{ {} }}}} where a text of the row goes; {}",
                           is_name               ? slip->name
                           : known_names.empty() ? "row.COLUMN"
                                                 : known_names.front(),
                           place.hint);
  throw ConfigError(
      has_names ? fmt::format("`{}` in a prompt is plain text, and nothing else in it reads {}",
                              slip->text, slip->name)
                : fmt::format("a prompt reads no column of the row, so every row would send the "
                              "same text{}",
                              has_one ? fmt::format("; `{}` is plain text", slip->text) : ""),
      place);
}

std::vector<ForeignName> foreign_names(const std::string& text) {
  std::vector<ForeignName> found;
  const auto line_of = [&](size_t at) {
    return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  };
  for (const OtherSpelling& spelling : other_spellings(text)) {
    const bool is_dollar = spelling.text.starts_with('$') && !spelling.text.starts_with("${");
    const bool is_underscored = spelling.text.starts_with(kUnderscores);
    if (spelling.is_common_text && !is_dollar && !is_underscored) continue;
    if (is_dollar && has_formula(line_around(text, spelling.at))) continue;
    if (belongs_to_formula(text, spelling.at)) continue;
    if (spelling.name.empty() && !stands_alone(text, spelling.at, spelling.text.size())) continue;
    std::vector<std::string> names;
    if (!spelling.name.empty())
      names.push_back(spelling.name.starts_with("row.") ? spelling.name.substr(4) : spelling.name);
    found.push_back(
        {.text = spelling.text, .names = std::move(names), .line = line_of(spelling.at)});
  }
  for (const auto& [open, close] : {std::pair("{#", "#}"), {"{%", "%}"}})
    for (size_t at = text.find(open); at != text.npos; at = text.find(open, at + 2)) {
      const size_t end = text.find(close, at + 2);
      if (end == text.npos) break;
      const std::string statement = text.substr(at, end + 2 - at);
      found.push_back({.text = statement,
                       .names = name_words(statement),
                       .line = line_of(at),
                       .is_statement = true});
    }
  return found;
}

bool PromptTemplate::reads(const std::string& name) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.name == name; });
}

std::string PromptTemplate::render(const std::map<std::string, std::string>& values) const {
  std::string rendered;
  for (const Part& part : parts_) {
    rendered += part.text;
    if (part.name.empty()) continue;
    const auto value = values.find(part.name);
    if (value == values.end())
      throw DataError(fmt::format("the row has no {}, which the prompt {} needs", part.name, name_),
                      {.hint = "name another column in the prompt, or leave such rows out"});
    rendered += value->second;
  }
  return rendered;
}

std::vector<std::string> PromptTemplate::names() const {
  std::vector<std::string> found;
  for (const Part& part : parts_)
    if (!part.name.empty()) found.push_back(part.name);
  return found;
}

}  // namespace convoy::process
