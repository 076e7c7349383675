// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/prompt_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::process {
namespace {

constexpr std::string_view kOpenField = "{{";
constexpr std::string_view kCloseField = "}}";

std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::string trimmed_field(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

bool is_known(const std::string& name, const std::vector<std::string>& known_names) {
  return (name.starts_with("row.") && name.size() > 4) ||
         std::find(known_names.begin(), known_names.end(), name) != known_names.end();
}

}  // namespace

PromptTemplate::PromptTemplate(const std::string& text, const std::string& name,
                               const std::vector<std::string>& known_names)
    : text_(without_last_newline(text)), name_(name) {
  const auto location = [&](size_t at) {
    return ErrorLocation{
        .file = name,
        .line =
            1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
        .hint =
            fmt::format("this prompt may use {}, and row.COLUMN", fmt::join(known_names, ", "))};
  };
  if (text_.find_first_not_of(" \t\r\n") == std::string::npos)
    throw ConfigError("a prompt is empty", {.file = name});
  size_t at = 0;
  for (;;) {
    const size_t open = text_.find(kOpenField, at);
    if (open == std::string::npos) break;
    const size_t close = text_.find(kCloseField, open);
    if (close == std::string::npos)
      throw ConfigError("a prompt's {{ is never closed by }}", location(open));
    const std::string found =
        trimmed_field(std::string_view(text_).substr(open + 2, close - open - 2));
    if (!is_known(found, known_names))
      throw ConfigError(
          fmt::format("unknown name `{}` in a prompt{}", found, did_you_mean(found, known_names)),
          location(open));
    parts_.push_back({text_.substr(at, open - at), found});
    at = close + kCloseField.size();
  }
  parts_.push_back({text_.substr(at), ""});
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
