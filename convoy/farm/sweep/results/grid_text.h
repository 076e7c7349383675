// SPDX-License-Identifier: Apache-2.0
//
// The grid of a sweep in words, for lists of sweeps. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// {"student_dim": [150, 300]}: the distinct values of each parameter that varies.
nlohmann::ordered_json grid_json(const SweepResults& results);

// "student_dim 150, 175, 200 .. 300 (7); teacher_rank 1, 2" of an object of arrays.
std::string named_values_text(const nlohmann::ordered_json& values);

// The same of the grid, with "; seeds 0 .. 3; gnc, gd".
std::string grid_text(const SweepResults& results);

// Words as a shell reads them.
std::string shell_text(const std::vector<std::string>& words);

}  // namespace convoy::sweep
