// SPDX-License-Identifier: Apache-2.0
//
// The result table of workload `ssm`, in the format of the program that users had before.
#pragma once

#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::experiments {

// The files `results_<gnc|gd|>_seq_len=K[_num_seq=N]_seeds=0-1-2.csv`; many consecutive seeds are
// written as 0..99. There is one row per student dimension. The columns are, per seed, the
// guess-and-check loss with its theory curve and its asymptote, then per seed the loss of gradient
// descent. A failed or unfinished cell is empty, and a censored cell is `nan`. With several teacher
// ranks there is one file per rank, with `_teacher_rank=R` before `_seeds`. The text depends only
// on the results.
std::vector<sweep::NamedFile> ssm_wide_csv(const sweep::SweepResults& results);

}  // namespace convoy::experiments
