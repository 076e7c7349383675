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

bool shows(const std::vector<FigurePanel>& panels, FigurePanel panel);

// The cell guesses and checks: guesses of the prior, which all pass, do not.
bool checks_guesses(const CellResult& cell);

std::string measure_label(const SweepResults& results, const FigureMeasure& measure);

// The only seed of the cells; none: there are several, or no cells.
std::optional<int64_t> only_seed(const SweepResults& results);

// Medians of the measure have the band at one place at least. Intervals need six values.
bool has_band(const FigureLines& figure, const FigureMeasure& measure, FigureBand band);

// `panels`: the panels that are drawn.
std::string figure_caption(const SweepResults& results, const FigureLines& figure,
                           const std::vector<FigureMeasure>& measures,
                           const std::vector<FigurePanel>& panels, FigureBand band);

}  // namespace convoy::sweep
