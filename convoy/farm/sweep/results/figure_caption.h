// SPDX-License-Identifier: Apache-2.0
//
// The words of a sweep's figure: what its numbers are, of how many seeds and guesses, and how many
// cells have none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convoy/farm/sweep/results/figure.h"
#include "convoy/farm/sweep/results/figure_lines.h"

namespace convoy::sweep {

// The cell guesses and checks: guesses of the prior, which all pass, do not.
bool checks_guesses(const CellResult& cell);

std::string measure_label(const SweepResults& results, const FigureMeasure& measure);

// The only seed of the cells; none: there are several, or no cells.
std::optional<int64_t> only_seed(const SweepResults& results);

std::string figure_caption(const SweepResults& results, const FigureLines& figure,
                           const std::vector<FigureMeasure>& measures,
                           const FigureOptions& options);

}  // namespace convoy::sweep
