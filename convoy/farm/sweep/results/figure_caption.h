// SPDX-License-Identifier: Apache-2.0
//
// The caption of a sweep's figure: it says what the numbers are, how many seeds and guesses they
// come from, and how many cells have no number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convoy/farm/sweep/results/figure.h"
#include "convoy/farm/sweep/results/figure_lines.h"

namespace convoy::sweep {

bool shows(const std::vector<FigurePanel>& panels, FigurePanel panel);

// True if the cell guesses and checks its guesses. False for guesses of the prior, which all pass.
bool checks_guesses(const CellResult& cell);

std::string measure_label(const SweepResults& results, const FigureMeasure& measure);

// The only seed of the cells; nullopt if there are several seeds or no cells.
std::optional<int64_t> only_seed(const SweepResults& results);

// True if the medians of the measure have this band at one place at least. Intervals need six
// values.
bool has_band(const FigureLines& figure, const FigureMeasure& measure, FigureBand band);

// `panels`: the panels that are drawn.
std::string figure_caption(const SweepResults& results, const FigureLines& figure,
                           const std::vector<FigureMeasure>& measures,
                           const std::vector<FigurePanel>& panels, FigureBand band);

}  // namespace convoy::sweep
