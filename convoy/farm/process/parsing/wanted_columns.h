// SPDX-License-Identifier: Apache-2.0
//
// Columns that settings and prompts name, looked for in the rows before the work: one that no row
// has is a slip.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::process {

struct WantedColumn {
  std::string name;
  std::string wanted_by;  // "--answer-field", or the prompt's name
};

// The columns that the settings name, then those in the prompts of the stages that run.
std::vector<WantedColumn> wanted_columns(const PipelinePlan& plan);

// Throws ConfigError where a prompt in use spells a column of the row as another program would: it
// would be sent as it stands.
void refuse_foreign_names(const PipelinePlan& plan, const nlohmann::ordered_json& row);

// Names, of the prompts in use, what no row shows to be a slip: statements of template languages,
// "%s", and an evaluation of the user's that never reads the solution.
std::vector<std::string> prompt_warnings(const PipelinePlan& plan);

// One thread.
class ColumnSearch {
 public:
  explicit ColumnSearch(std::vector<WantedColumn> wanted);

  // Null counts as there: any row may lack a value.
  void look_at(const nlohmann::ordered_json& row);
  bool found_all() const { return missing_.empty(); }
  // Throws DataError that names what no row had, and what they have.
  void require_all() const;

 private:
  std::vector<WantedColumn> missing_;
  std::vector<std::string> seen_;  // columns of the rows, in their order, limited
};

}  // namespace convoy::process
