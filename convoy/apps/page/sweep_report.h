// SPDX-License-Identifier: Apache-2.0
//
// The results of a sweep as the page's tables: values instead of texts, so that the page can sort
// them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::page {

// {counts, settings: {name: its one value}, axes: {name: [values]}, over_seeds: TABLE, cells:
// TABLE, num_cells, failures: TABLE}; TABLE is {columns: [text], rows: [[value]]}, null for a value
// that a cell does not have. At most kMostShownCells cells are included.
inline constexpr size_t kMostShownCells = 2000;
nlohmann::json sweep_report(const sweep::SweepResults& results);

}  // namespace convoy::page
