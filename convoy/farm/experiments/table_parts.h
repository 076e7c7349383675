// SPDX-License-Identifier: Apache-2.0
//
// Parts of result tables with one row per value of the axis and one column per seed and quantity.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::experiments {

// A parameter of the cell that is an integer; 0 if the cell has no such parameter.
int64_t whole_parameter(const sweep::CellResult& cell, const std::string& name);

void add_distinct(std::vector<int64_t>& values, int64_t value);

// The number of a cell; "nan" for a censored cell; "" for null or a cell without a number.
std::string value_text(const sweep::CellResult* cell);

}  // namespace convoy::experiments
