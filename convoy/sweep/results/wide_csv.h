// SPDX-License-Identifier: Apache-2.0
//
// Result tables as the prior programs wrote them: one row per value of the axis, one column per seed and quantity.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/sweep/results/cell_result.h"

namespace convoy::sweep {

struct NamedFile {
  std::string name;
  std::string text;
};

// `results_<gnc|gd|>_seq_len=K[_num_seq=N]_seeds=0-1-2_time=TIME.csv`: a row per student dimension; per seed the
// guess-and-check loss with its theory curve and asymptote, then per seed that of gradient descent. A failed or
// unfinished cell is empty, a censored one `nan`. With several teacher ranks a file each, `_teacher_rank=R` before
// `_seeds`. The text depends on the results alone. `time`: as in the name, "20250902_080855".
std::vector<NamedFile> ssm_wide_csv(const SweepResults& results, const std::string& time);

// `<width|depth>_results_gt_rank=R_act=A_gnc_init=I[_gd_momentum=M][_completion].csv`: a row per value of `axis`, "width",
// "depth", or "" for the one that varies; per seed the guess-and-check loss, over widths the mean loss of the prior,
// exact or of guesses, and the loss of gradient descent. `_gnc_normalize` at the end of widths whose guesses are
// normalised, `_no_gnc_normalize` of depths whose guesses are not: the prior program's are the other way round.
NamedFile mf_wide_csv(const SweepResults& results, const std::string& axis = "");

// The shortest text that reads back as the same number; "nan".
std::string number_text(double value);

// Quoted where it must be (RFC 4180).
std::string csv_field(const std::string& text);

}  // namespace convoy::sweep
