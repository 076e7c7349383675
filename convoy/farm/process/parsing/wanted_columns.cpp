// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/wanted_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::process {
namespace {

constexpr size_t kMostListed = 64;
constexpr std::string_view kOfRow = "row.";

std::vector<const PromptTemplate*> prompts_in_use(const PipelinePlan& plan) {
  std::vector<const PromptTemplate*> prompts;
  for (const auto& [stage, prompt] :
       {std::pair("generate", &plan.generate), std::pair("evaluate", &plan.evaluate),
        std::pair("improve", &plan.improve)})
    if (plan.has_stage(stage)) prompts.push_back(prompt);
  return prompts;
}

void add_columns(const PromptTemplate& prompt, std::vector<WantedColumn>& wanted) {
  for (const std::string& name : prompt.names())
    if (name.starts_with(kOfRow)) wanted.push_back({name.substr(kOfRow.size()), prompt.name()});
}

}  // namespace

std::vector<WantedColumn> wanted_columns(const PipelinePlan& plan) {
  const settings::ProcessDataSettings& data = plan.settings.data;
  std::vector<WantedColumn> wanted = {{data.problem_field, "--problem-field"},
                                      {data.solution_field, "--solution-field"},
                                      {data.answer_field, "--answer-field"}};
  std::erase_if(wanted, [](const WantedColumn& column) { return column.name.empty(); });
  for (const PromptTemplate* prompt : prompts_in_use(plan)) add_columns(*prompt, wanted);
  return wanted;
}

void refuse_foreign_names(const PipelinePlan& plan, const nlohmann::ordered_json& row) {
  if (!row.is_object()) return;
  for (const PromptTemplate* prompt : prompts_in_use(plan))
    for (const ForeignName& foreign : prompt->foreign_names())
      for (const std::string& name : foreign.names) {
        if (!row.contains(name)) continue;
        const std::vector<std::string> read = prompt->names();
        const bool is_read = std::find(read.begin(), read.end(), name) != read.end();
        throw ConfigError(
            fmt::format("`{}` in a prompt is plain text, but `{}` is a column of the rows",
                        foreign.text, name),
            {.file = prompt->name(),
             .line = foreign.line,
             .hint = fmt::format("write {{{{ {}{} }}}} where its value goes; where the text itself "
                                 "is meant, write the name without braces and signs",
                                 is_read ? "" : kOfRow, name)});
      }
}

std::vector<std::string> prompt_warnings(const PipelinePlan& plan) {
  std::vector<std::string> warnings;
  for (const PromptTemplate* prompt : prompts_in_use(plan))
    for (const ForeignName& foreign : prompt->foreign_names())
      if (foreign.is_statement || foreign.names.empty())
        warnings.push_back(
            fmt::format("{}:{}: `{}` is sent as it stands: a prompt has {{{{ name }}}} alone",
                        prompt->name(), foreign.line, foreign.text));
  // The shipped prompt reads the whole text.
  if (!plan.has_stage("evaluate") || plan.settings.prompts.evaluate.empty()) return warnings;
  const std::vector<std::string> read = plan.evaluate.names();
  const auto reads = [&read](const char* name) {
    return std::find(read.begin(), read.end(), name) != read.end();
  };
  if (!reads("solution"))
    warnings.push_back(fmt::format(
        "{} never reads {{{{ solution }}}}: the judge sees {}", plan.evaluate.name(),
        reads("reasoning") ? "the whole text, and not which answer it came to"
                           : "nothing of what it judges; {{ reasoning }} is the whole text"));
  return warnings;
}

ColumnSearch::ColumnSearch(std::vector<WantedColumn> wanted) : missing_(std::move(wanted)) {}

void ColumnSearch::look_at(const nlohmann::ordered_json& row) {
  if (!row.is_object()) return;
  std::erase_if(missing_, [&](const WantedColumn& column) { return row.contains(column.name); });
  if (missing_.empty()) return;
  for (const auto& [key, value] : row.items())
    if (seen_.size() < kMostListed && std::find(seen_.begin(), seen_.end(), key) == seen_.end())
      seen_.push_back(key);
}

void ColumnSearch::require_all() const {
  if (missing_.empty()) return;
  std::vector<std::string> names;
  for (const WantedColumn& column : missing_)
    names.push_back(fmt::format("`{}` (needed by {}{})", column.name, column.wanted_by,
                                did_you_mean(column.name, seen_)));
  throw DataError(
      fmt::format("no row has {}; the rows have {}", fmt::join(names, ", "),
                  seen_.empty() ? "no columns" : fmt::format("{}", fmt::join(seen_, ", "))),
      {.key = missing_.front().name, .hint = "name columns that the data set has"});
}

}  // namespace convoy::process
