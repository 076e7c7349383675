// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/grid_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {
namespace {

// The value as tables show it: a text that is a number becomes that number.
nlohmann::json shown_value(const nlohmann::json& value) {
  if (!value.is_string()) return value;
  return number_json(value.get_ref<const std::string&>()).value_or(value);
}

std::string spelling(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void check_grid_values(const std::string& name, const std::vector<nlohmann::json>& values) {
  if (values.empty())
    throw ConfigError(fmt::format("the grid has no value of `{}`", name),
                      {.hint = "give it a value, or leave the name out"});
  std::map<nlohmann::json, nlohmann::json> known;
  for (const nlohmann::json& value : values) {
    const auto [first, added] = known.emplace(shown_value(value), value);
    if (!added)
      throw ConfigError(fmt::format("the grid has a value of `{}` twice, as {} and as {}", name,
                                    spelling(first->second), spelling(value)),
                        {.hint = "write it once"});
  }
}

std::vector<std::string> listed_values(const std::string& text) {
  constexpr std::string_view kOpen = "([{", kClose = ")]}", kQuotes = "\"'", kBlanks = " \t\r\n";
  std::vector<std::string> values;
  std::string open;  // brackets to close, the innermost last; within a quote, the closing quote
  size_t begin = 0;
  bool begins_word = true;  // an apostrophe within a word does not begin a quote
  const auto refuse = [&](const std::string& what,
                          const char* hint = "--cells FILE.csv takes any text as a value") {
    throw ConfigError(fmt::format("`{}`: {}", text, what), {.hint = hint});
  };
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || (text[at] == ',' && open.empty())) {
      if (!open.empty())
        refuse(fmt::format("wanted `{}`, which closes what was opened", open.back()));
      values.emplace_back(trimmed(std::string_view(text).substr(begin, at - begin), kBlanks));
      if (values.back().empty() && values.size() > 1)
        refuse("a value behind a comma is empty",
               "remove the comma; an empty value that is meant stands first: `,1,2`");
      begin = at + 1;
      begins_word = true;
      continue;
    }
    const char letter = text[at];
    const bool quoted = !open.empty() && kQuotes.find(open.back()) != std::string_view::npos;
    if (quoted) {
      if (letter == '\\' && at + 1 < text.size()) ++at;
      if (letter == open.back()) open.pop_back();
    } else if (const size_t kind = kOpen.find(letter); kind != std::string_view::npos) {
      open += kClose[kind];
    } else if (begins_word && kQuotes.find(letter) != std::string_view::npos) {
      open += letter;
    } else if (kClose.find(letter) != std::string_view::npos) {
      if (open.empty() || open.back() != letter) refuse(fmt::format("`{}` closes nothing", letter));
      open.pop_back();
    }
    constexpr std::string_view kBeforeWords = "([{,:= \t";
    begins_word = kBeforeWords.find(letter) != std::string_view::npos;
  }
  return values;
}

}  // namespace convoy::sweep
