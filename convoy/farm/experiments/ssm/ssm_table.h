// SPDX-License-Identifier: Apache-2.0
//
// The result table of workload `ssm` as the program that its users come from wrote it.
#pragma once

#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::experiments {

// `results_<gnc|gd|>_seq_len=K[_num_seq=N]_seeds=0-1-2.csv`, 0..99 for many seeds in a row: a row
// per student dimension; per seed the guess-and-check loss with its theory curve and asymptote,
// then per seed the loss of gradient descent. A failed or unfinished cell is empty, a censored one
// `nan`. With several teacher ranks a file each, `_teacher_rank=R` before `_seeds`. The text
// depends on the results alone.
std::vector<sweep::NamedFile> ssm_wide_csv(const sweep::SweepResults& results);

}  // namespace convoy::experiments
