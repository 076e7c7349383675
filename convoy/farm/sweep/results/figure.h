// SPDX-License-Identifier: Apache-2.0
//
// The figure of a sweep: left, medians over seeds with their quartile bands, the closed forms
// dashed; right, a line per seed. Cells that failed or were censored are counted in it and leave
// gaps.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

struct FigureOptions {
  int64_t width = 1400;  // pixels, of both halves together
  int64_t height = 600;
  bool log_y = false;
};

std::string figure_svg(const SweepResults& results, const FigureOptions& options);

}  // namespace convoy::sweep
