// SPDX-License-Identifier: Apache-2.0
//
// The scores in a judge's reply. Strict: what is not surely a score of 0 to 1 has none, and a
// missing score is never 0. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::process {

struct JudgeScores {
  std::map<std::string, std::optional<double>> criteria = {};  // one for each weight
  std::optional<double> score = {};  // the weighted sum; none where a criterion has none
};

// `weights`: by criterion, words joined by "_". The first line that names a criterion and goes on
// with a score counts: "Correctness: 0.8", "**Step-by-step clarity** (20 %): 8/10", "| precision |
// 80% |", or a heading with the score on the next line.
JudgeScores read_judge_scores(std::string_view reply, const std::map<std::string, double>& weights);

// A score at the start of `text`: "0.8", "8/10", "8 out of 10", "80%", with marks around it. None
// for what is not within 0 and 1, for ranges, and for numbers that go on.
std::optional<double> read_score(std::string_view text);

}  // namespace convoy::process
