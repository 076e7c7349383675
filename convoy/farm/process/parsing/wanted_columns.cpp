// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/wanted_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/trimmed.h"

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

constexpr const char* kSystemPrompt = "prompts.system";
constexpr const char* kOneSystemPrompt =
    "the system prompt is one text for all rows: write what changes into a prompt's file, as "
    "{{ row.COLUMN }}; where the text itself is meant, write the name without braces and signs";

bool is_letter_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
}

// True for a name that has to be meant as a field, unlike "$x" and "__x__". One letter in braces
// may be a set: {x}.
bool is_in_braces(const ForeignName& foreign) {
  const std::string& text = foreign.text;
  const bool braces = text.starts_with('{') || text.starts_with("${") || text.starts_with("%(") ||
                      text.starts_with("<%=");
  return braces && foreign.names.front().size() > 1;
}

// The column of the row that the spelling means; empty when there is none. Names of shells
// ($PATH) and words of statements are told from columns by their case.
std::string column_meant(const ForeignName& foreign, const nlohmann::ordered_json& row) {
  for (const std::string& name : foreign.names) {
    if (row.contains(name)) return name;
    if (foreign.is_statement || foreign.text.starts_with('$')) continue;
    for (const auto& [column, value] : row.items())
      if (lower_case(column) == lower_case(name)) return column;
  }
  return {};
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
    for (const ForeignName& foreign : foreign_names(prompt->text()))
      if (const std::string column = column_meant(foreign, row); !column.empty()) {
        const std::vector<std::string> read = prompt->names();
        const bool is_read = std::find(read.begin(), read.end(), column) != read.end();
        throw ConfigError(
            fmt::format("`{}` in a prompt is plain text, but `{}` is a column of the rows",
                        foreign.text, column),
            {.file = prompt->name(),
             .line = foreign.line,
             .hint = fmt::format("write {{{{ {}{} }}}} where its value goes; where the text itself "
                                 "is meant, write the name without braces and signs",
                                 is_read ? "" : kOfRow, column)});
      }
  for (const ForeignName& foreign : foreign_names(plan.settings.prompts.system))
    if (const std::string column = column_meant(foreign, row); !column.empty())
      throw ConfigError(fmt::format("`{}` in the system prompt is plain text, but `{}` is a column "
                                    "of the rows",
                                    foreign.text, column),
                        {.key = kSystemPrompt, .hint = kOneSystemPrompt});
}

void check_system_prompt(const std::string& text) {
  const auto refuse = [](const std::string& spelling) {
    throw ConfigError(fmt::format("`{}` in the system prompt would be sent as it stands", spelling),
                      {.key = kSystemPrompt, .hint = kOneSystemPrompt});
  };
  for (const ForeignName& foreign : foreign_names(text))
    if (!foreign.is_statement && !foreign.names.empty() && is_in_braces(foreign))
      refuse(foreign.text);
  for (size_t open = text.find("{{"); open != text.npos; open = text.find("{{", open + 2)) {
    const size_t close = text.find("}}", open);
    if (close == text.npos) break;
    const std::string_view name =
        convoy::trimmed(std::string_view(text).substr(open + 2, close - open - 2), " \t");
    if (!name.empty() && std::all_of(name.begin(), name.end(), is_letter_of_name))
      refuse(text.substr(open, close + 2 - open));
  }
}

std::vector<std::string> prompt_warnings(const PipelinePlan& plan) {
  std::vector<std::string> warnings;
  for (const PromptTemplate* prompt : prompts_in_use(plan))
    for (const ForeignName& foreign : foreign_names(prompt->text()))
      if (foreign.is_statement || foreign.names.empty())
        warnings.push_back(
            fmt::format("{}:{}: `{}` is sent as it stands: a prompt has {{{{ name }}}} alone",
                        prompt->name(), foreign.line, foreign.text));
  for (const ForeignName& foreign : foreign_names(plan.settings.prompts.system))
    if (foreign.is_statement || foreign.names.empty())
      warnings.push_back(fmt::format(
          "prompts.system: `{}` is sent as it stands: nothing is filled in there", foreign.text));
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
