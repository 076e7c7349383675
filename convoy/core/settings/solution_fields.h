// SPDX-License-Identifier: Apache-2.0
//
// Keys that `convoy process` and task rejection share: how solutions of problems are drawn, and
// which columns hold a problem. Each has members and defaults of its own.
#pragma once

#include <string>

namespace convoy::settings {

// `temperature_note`: text appended to the help of the temperature.
template <class Settings, class Visitor>
void visit_draw_fields(Settings& draw, Visitor& visit, const std::string& temperature_note) {
  visit("temperature", draw.temperature,
        "temperature of solutions; 0 = always the most likely token; " + temperature_note)
      .at_least(0);
  visit("top_k", draw.top_k, "most likely tokens kept; 0 = all").at_least(0);
  visit("top_p", draw.top_p, "nucleus share").above(0).at_most(1);
  visit("min_p", draw.min_p, "drop tokens below this share of the likeliest token's probability")
      .at_least(0)
      .at_most(1);
  visit("repetition_penalty", draw.repetition_penalty, "1 = none").above(0);
  visit("max_tokens", draw.max_tokens, "longest solution in tokens").at_least(1);
  visit("stop", draw.stop, "string that ends a solution; may be given more than once");
}

template <class Settings, class Visitor>
void visit_problem_columns(Settings& columns, Visitor& visit) {
  visit("problem_field", columns.problem_field, "column of the problem; empty = by the schema");
  visit("solution_field", columns.solution_field, "column of the reference solution");
  visit("answer_field", columns.answer_field, "column of the reference answer");
}

}  // namespace convoy::settings
