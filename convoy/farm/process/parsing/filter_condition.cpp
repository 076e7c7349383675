// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/filter_condition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/text_as.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {
namespace {

struct Name {
  std::string_view name;
  std::vector<std::string_view> words = {};  // allowed words; empty: the value is a number
  std::string_view stage = {};               // stage that computes the figure
};

const std::vector<Name>& names() {
  static const std::vector<Name> list = [] {
    std::vector<Name> all;
    for (const Stage& stage : all_stages())
      for (const StageFigure& figure : stage.figures)
        all.push_back({figure.name, figure.words, stage.name});
    // These figures exist for every text.
    all.push_back({"finish", {"stop", "length"}});
    for (const char* number : {"samples", "tokens", "characters"}) all.push_back({number});
    all.push_back({"has_answer", {"yes", "no"}});
    return all;
  }();
  return list;
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

ConfigError wrong(const std::string& text, const std::string& why, const std::string& hint = {}) {
  return ConfigError(fmt::format("filter.keep: `{}`: {}", text, why),
                     {.key = "filter.keep", .hint = hint.empty() ? "such as: score >= 0.8" : hint});
}

bool compare(double left, const std::string& comparison, double right) {
  if (comparison == ">=") return left >= right;
  if (comparison == "<=") return left <= right;
  if (comparison == ">") return left > right;
  if (comparison == "<") return left < right;
  return comparison == "==" ? left == right : left != right;
}

}  // namespace

std::string filter_names() {
  std::vector<std::string> list;
  for (const Name& name : names()) list.emplace_back(name.name);
  return fmt::format("{}", fmt::join(list, ", "));
}

FilterCondition::FilterCondition(const std::string& text) : text_(trimmed(text)) {
  const size_t at = text_.find_first_of("=<>!");
  if (at == std::string::npos) throw wrong(text_, "wanted NAME COMPARISON VALUE");
  const size_t end = text_.find_first_not_of("=<>!", at);
  name_ = trimmed(std::string_view(text_).substr(0, at));
  comparison_ = text_.substr(at, end == std::string::npos ? end : end - at);
  const std::string value =
      end == std::string::npos ? "" : trimmed(std::string_view(text_).substr(end));
  const std::array<const char*, 6> comparisons = {">=", "<=", ">", "<", "==", "!="};
  if (std::find(comparisons.begin(), comparisons.end(), comparison_) == comparisons.end())
    throw wrong(text_, fmt::format("wanted one of {}, found `{}`", fmt::join(comparisons, " "),
                                   comparison_));
  const auto known = std::find_if(names().begin(), names().end(),
                                  [&](const Name& one) { return name_ == one.name; });
  if (known == names().end()) {
    std::vector<std::string> list;
    for (const Name& name : names()) list.emplace_back(name.name);
    throw wrong(text_, fmt::format("unknown name `{}`{}", name_, did_you_mean(name_, list)),
                "conditions can use " + filter_names());
  }
  is_number_ = known->words.empty();
  if (is_number_) {
    const auto number = text_as<double>(value);
    if (!number) throw wrong(text_, fmt::format("wanted a number, found `{}`", value));
    number_ = *number;
    return;
  }
  if (std::find(known->words.begin(), known->words.end(), value) == known->words.end())
    throw wrong(text_,
                fmt::format("wanted one of {}, found `{}`", fmt::join(known->words, ", "), value));
  if (comparison_ != "==" && comparison_ != "!=")
    throw wrong(text_, fmt::format("{} is a word: wanted == or !=", name_));
  word_ = value;
}

std::string_view FilterCondition::stage() const {
  return std::find_if(names().begin(), names().end(),
                      [&](const Name& one) { return name_ == one.name; })
      ->stage;
}

bool FilterCondition::holds(const nlohmann::ordered_json& figures) const {
  const auto figure = figures.find(name_);
  if (figure == figures.end() || figure->is_null()) return comparison_ == "!=";
  if (is_number_) return compare(figure->get<double>(), comparison_, number_);
  return (figure->get<std::string>() == word_) == (comparison_ == "==");
}

}  // namespace convoy::process
