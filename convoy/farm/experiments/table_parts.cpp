// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/table_parts.h"

#include <algorithm>
#include <cmath>

#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::experiments {

int64_t whole_parameter(const sweep::CellResult& cell, const std::string& name) {
  const double value = sweep::number_parameter(cell.cell, name);
  return std::isfinite(value) ? static_cast<int64_t>(value) : 0;
}

void add_distinct(std::vector<int64_t>& values, int64_t value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

std::string value_text(const sweep::CellResult* cell) {
  if (cell == nullptr) return "";
  if (cell->state == sweep::CellState::Censored) return "nan";
  return cell->state == sweep::CellState::Value ? sweep::number_text(cell->value) : "";
}

}  // namespace convoy::experiments
