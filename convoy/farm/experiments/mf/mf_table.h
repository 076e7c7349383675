// SPDX-License-Identifier: Apache-2.0
//
// The result table of workload `mf`, in the format of the program that users had before.
#pragma once

#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::experiments {

// The file `<width|depth>_results_gt_rank=R_act=A_gnc_init=I[_gd_momentum=M][_completion].csv` with
// one row per value of `axis`: "width", "depth", or "" for the parameter that varies. Each seed has
// a column for the guess-and-check loss and a column for the loss of gradient descent. If the axis
// is the width, it also has a column for the mean loss of the prior (exact, or from guesses).
sweep::NamedFile mf_wide_csv(const sweep::SweepResults& results, const std::string& axis = "");

}  // namespace convoy::experiments
