// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/prompt_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::process {
namespace {

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

// How other programs write names. Tags, lists and prices look like the last ones.
struct NameForm {
  std::string_view open;
  std::string_view close;
  bool is_common_text = false;
};
constexpr std::array<NameForm, 6> kOtherForms = {
    {{"${", "}"}, {"{", "}"}, {"%(", ")s"}, {"<", ">", true}, {"[", "]", true}, {"$", "", true}}};

struct OtherSpelling {
  size_t at = 0;
  std::string text;
  std::string name;  // empty: %s
  bool is_common_text = false;
};

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The name in `form` at the begin of `text`.
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
    // \boxed{answer}, {{ name }}
    if (at > 0 && (is_name_letter(text[at - 1]) || text[at - 1] == '{')) continue;
    const std::string_view rest = std::string_view(text).substr(at);
    std::optional<OtherSpelling> spelling;
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

bool is_known(const std::string& name, const std::vector<std::string>& known_names) {
  return (name.starts_with("row.") && name.size() > 4) ||
         std::find(known_names.begin(), known_names.end(), name) != known_names.end();
}

}  // namespace

PromptTemplate::PromptTemplate(const std::string& text, const std::string& name,
                               const std::vector<std::string>& known_names)
    : text_(file_content(text)), name_(name) {
  if (text_.find_first_not_of(" \t\r\n") == std::string::npos)
    throw ConfigError("a prompt is empty", {.file = name});
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

// Names that a person wrote as other programs do are plain text, and their values would be missed.
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
      throw DataError(
          fmt::format("the row has no {}, which the prompt {} needs", part.name, name_));
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
