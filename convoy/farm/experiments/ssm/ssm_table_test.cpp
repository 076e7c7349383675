// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace convoy::experiments {
namespace {

sweep::CellResult cell_of(const std::string& method, int64_t dim, int64_t seed,
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
  cell.theory.curve = 0.5;
  return cell;
}

// Seeds 3 and 1; one cell of each state.
sweep::SweepResults example() {
  sweep::SweepResults results{
      .workload = "ssm", .version = "1", .axes = {"student_dim"}, .cells = {}};
  results.cells = {cell_of("gnc", 150, 3, sweep::CellState::Value, 0.25),
                   cell_of("gnc", 150, 1, sweep::CellState::Censored),
                   cell_of("gnc", 300, 3, sweep::CellState::Failed),
                   cell_of("gnc", 300, 1, sweep::CellState::Partial),
                   cell_of("gd", 150, 3, sweep::CellState::Value, 1e-5),
                   cell_of("gd", 300, 1, sweep::CellState::Value, 2)};
  return results;
}

TEST(SsmTable, ColumnsOfTheReferenceAndNoFalseZero) {
  const auto files = ssm_wide_csv(example(), "20250902_080855");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "results__seq_len=5_seeds=3-1_time=20250902_080855.csv");
  EXPECT_EQ(files[0].text,
            "student_dim,gnc_gen_seed=3,gnc_gen_seed=3_theoretical,gnc_gen_seed=3_asymptotic,"
            "gnc_gen_seed=1,gnc_gen_seed=1_theoretical,gnc_gen_seed=1_asymptotic,gd_gen_seed=3,"
            "gd_gen_seed=1\n"
            "150,0.25,0.5,nan,nan,0.5,nan,1e-05,\n"
            "300,,0.5,nan,,0.5,nan,,2\n");
}

}  // namespace
}  // namespace convoy::experiments
