// SPDX-License-Identifier: Apache-2.0
//
// Searches the rows, before the work starts, for the columns that settings and prompts name. A
// column that no row has is a mistake.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::process {

struct WantedColumn {
  std::string name;
  std::string wanted_by;  // "--answer-field", or the name of a prompt
};

// The columns that the settings name, then the columns in the prompts of the stages that run.
std::vector<WantedColumn> wanted_columns(const PipelinePlan& plan);

// Throws ConfigError if a prompt in use, or the system prompt, spells a column of the row as
// another program would: the name would be sent as text.
void refuse_foreign_names(const PipelinePlan& plan, const nlohmann::ordered_json& row);

// Throws ConfigError if the system prompt has a name in braces, whatever the columns of the rows:
// nothing is filled in there.
void check_system_prompt(const std::string& text);

// Warnings about likely mistakes in the prompts in use that no row reveals: statements of template
// languages, "%s", and a user's evaluation prompt that never reads the solution.
std::vector<std::string> prompt_warnings(const PipelinePlan& plan);

// One thread.
class ColumnSearch {
 public:
  explicit ColumnSearch(std::vector<WantedColumn> wanted);

  // A column with a null value counts as present, because any row may lack a value.
  void look_at(const nlohmann::ordered_json& row);
  bool found_all() const { return missing_.empty(); }
  // Throws DataError that names the columns that no row had, and the columns that the rows have.
  void require_all() const;

 private:
  std::vector<WantedColumn> missing_;
  std::vector<std::string> seen_;  // columns of the rows, in their order; limited number
};

}  // namespace convoy::process
