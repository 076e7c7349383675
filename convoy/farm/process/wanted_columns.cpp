// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/wanted_columns.h"

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
  for (const auto& [stage, prompt] :
       {std::pair("generate", &plan.generate), std::pair("evaluate", &plan.evaluate),
        std::pair("improve", &plan.improve)})
    if (plan.has_stage(stage)) add_columns(*prompt, wanted);
  return wanted;
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
