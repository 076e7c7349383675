// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_rows_check.h"

#include <fmt/format.h>

#include <string_view>

#include "convoy/apps/front/process/process_rows_source.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/process/parsing/wanted_columns.h"
#include "convoy/farm/process/pipeline/row_pipeline.h"

namespace convoy::apps {
namespace {

// A column may be sparse, so all rows count, not only the selected ones.
void require_columns(const data::Dataset& dataset, const process::PipelinePlan& plan) {
  process::ColumnSearch search(process::wanted_columns(plan));
  if (search.found_all()) return;
  settings::ProcessDataSettings whole = plan.settings.data;
  whole.start_from = 0;
  whole.num_examples = -1;
  whole.bad_rows = "keep";
  const process::RowStream rows = selected_rows(dataset, whole);
  while (!search.found_all()) {
    const std::optional<process::SourceRow> row = rows();
    if (!row) break;
    if (row->unreadable.empty()) search.look_at(row->value);
  }
  try {
    search.require_all();
  } catch (DataError& error) {
    error.location().file = dataset.files.front().string();
    throw;
  }
}

// Checks only the first rows: the rows of one data set have the same columns, except a few columns
// that the first rows may lack.
void refuse_foreign_names(const data::Dataset& dataset, const process::PipelinePlan& plan) {
  settings::ProcessDataSettings first = plan.settings.data;
  first.start_from = 0;
  first.num_examples = 100;
  first.bad_rows = "keep";
  const process::RowStream rows = selected_rows(dataset, first);
  while (const std::optional<process::SourceRow> row = rows())
    if (row->unreadable.empty()) process::refuse_foreign_names(plan, row->value);
}

[[noreturn]] void refuse_empty(const data::Dataset& dataset,
                               const settings::ProcessDataSettings& data) {
  const std::string file = dataset.files.front().string();
  if (data.num_examples == 0)
    throw DataError(
        "no row is selected",
        {.file = file, .key = "data.num_examples", .hint = "--limit 0 takes no row; -1 takes all"});
  if (data.start_from == 0)
    throw DataError("the data set has no rows", {.file = file, .hint = "name another"});
  throw DataError("no row is selected",
                  {.file = file, .key = "data.start_from", .hint = "lower --start-from"});
}

}  // namespace

std::optional<std::string> check_rows(const data::Dataset& dataset,
                                      const process::PipelinePlan& plan,
                                      const process::ModelFacts& facts) {
  require_columns(dataset, plan);
  refuse_foreign_names(dataset, plan);
  const process::RowPipeline pipeline(plan);
  const process::RowStream rows = selected_rows(dataset, plan.settings.data);
  std::string first_problem;
  int64_t count = 0;
  while (const std::optional<process::SourceRow> row = rows()) {
    ++count;
    const process::NextSteps next =
        pipeline.next({.value = row->value, .unreadable = row->unreadable}, {});
    if (!next.steps.empty())
      return process::rendered_prompt(next.steps.front().request.prompt, plan.settings.model,
                                      facts);
    if (next.finished->state != "bad_input") return std::nullopt;
    if (first_problem.empty())
      first_problem = next.finished->value.at("metadata").at("error").get<std::string>();
  }
  if (count == 0) refuse_empty(dataset, plan.settings.data);
  throw DataError(fmt::format("none of the {} can be used; the first: {}", counted(count, "row"),
                              first_problem),
                  {.file = dataset.files.front().string(),
                   .hint = "name the columns with --problem-field, --solution-field and "
                           "--answer-field"});
}

}  // namespace convoy::apps
