// SPDX-License-Identifier: Apache-2.0
//
// The result table of workload `mf` as the program that its users come from wrote it.
#pragma once

#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::experiments {

// `<width|depth>_results_gt_rank=R_act=A_gnc_init=I[_gd_momentum=M][_completion].csv`: a row per
// value of `axis`, "width", "depth", or "" for the one that varies; per seed the guess-and-check
// loss, over widths the mean loss of the prior, exact or of guesses, and the loss of gradient
// descent.
sweep::NamedFile mf_wide_csv(const sweep::SweepResults& results, const std::string& axis = "");

}  // namespace convoy::experiments
