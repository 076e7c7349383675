// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::testing {

inline sweep::CellResult example_cell(const std::string& method, int64_t dim, int64_t seed,
                                      sweep::CellState state, double value = std::nan("")) {
  sweep::CellResult cell;
  cell.cell = {.method = method,
               .seed = seed,
               .parameters = nlohmann::json{
                   {"student_dim", dim},
                   {"teacher_rank", 1},
                   {"sequence_length", 5},
                   {"num_sequences",
                    1}}.dump()};
  cell.state = state;
  cell.value = value;
  cell.planned_guesses = method == "gnc" ? 1000 : 0;
  if (method == "gnc") cell.tally.guesses = 1000;
  cell.reference.curve = 0.5;
  return cell;
}

// Returns results with the seeds 3 and 1, and one cell in each state.
inline sweep::SweepResults example_results() {
  using sweep::CellState;
  sweep::SweepResults results{
      .workload = "ssm", .version = "1", .axes = {"student_dim"}, .cells = {}};
  results.cells = {example_cell("gnc", 150, 3, CellState::Value, 0.25),
                   example_cell("gnc", 150, 1, CellState::Censored),
                   example_cell("gnc", 300, 3, CellState::Failed),
                   example_cell("gnc", 300, 1, CellState::Partial),
                   example_cell("gd", 150, 3, CellState::Value, 1e-5),
                   example_cell("gd", 300, 1, CellState::Value, 2)};
  return results;
}

}  // namespace convoy::testing
