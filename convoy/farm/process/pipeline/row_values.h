// SPDX-License-Identifier: Apache-2.0
//
// Values made from a row's state: values for prompts, figures for conditions, the row of the
// output. Thread-safe.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/farm/process/pipeline/row_state.h"

namespace convoy::process {

// The values "problem", and "row.COLUMN" for each column that has a value.
std::map<std::string, std::string> row_values(const RowState& row);
std::map<std::string, std::string> prompt_values(const std::string& problem,
                                                 const nlohmann::ordered_json& columns);

// Figures by name, as in filter_names(); null = unknown.
nlohmann::ordered_json filter_figures(const RowState& row);

// The candidate that represents the row: the candidate that a stage chose, else the verified
// candidate with the best score, else the candidate with the best score, else the first that has a
// text. Null: no candidate has a text.
const Candidate* chosen_candidate(const RowState& row);

// One of "ok", "truncated" and "engine_error".
std::string row_state_name(const RowState& row);

// The column "gold": a text, or a list of texts each of which is right; null = none is known.
nlohmann::ordered_json golds_json(const std::vector<std::string>& golds);

// The row of the output, without "timestamp", with the figures that conditions use. `kept`: the
// texts, for the row's cost in tokens.
nlohmann::ordered_json output_value(const PipelinePlan& plan, const RowState& row,
                                    std::span<const KeptStep> kept);
// Removes the figures from a value of output_value(). A value with a text that fails a condition
// gets the state "rejected" and names the condition.
void apply_conditions(const std::vector<FilterCondition>& conditions,
                      nlohmann::ordered_json& value);
// The value of a row that was read but not processed. `state` and `reason` say why.
nlohmann::ordered_json input_only_value(const InputRow& input, const std::string& state,
                                        const std::string& reason);

}  // namespace convoy::process
