// SPDX-License-Identifier: Apache-2.0
//
// The grid of a sweep as text, for lists of sweeps. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// The distinct values of each parameter that varies, such as {"student_dim": [150, 300]}.
nlohmann::ordered_json grid_json(const SweepResults& results);

// An object of arrays as "student_dim 150, 175, 200 .. 300 (7); teacher_rank 1, 2".
std::string named_values_text(const nlohmann::ordered_json& values);

// The grid in the form of named_values_text(), followed by seeds and methods: "; seeds 0 .. 3; gnc,
// gd".
std::string grid_text(const SweepResults& results);

// The words as a command line for a shell.
std::string shell_text(const std::vector<std::string>& words);

}  // namespace convoy::sweep
