// SPDX-License-Identifier: Apache-2.0
//
// The scores in a judge's reply. Strict: a text that is not clearly a score of 0 to 1 gives no
// score, and a missing score never counts as 0. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::process {

struct JudgeScores {
  std::map<std::string, std::optional<double>> criteria = {};  // one score per weight
  std::optional<double> score = {};  // weighted sum; none if a criterion has no score
};

// `weights`: weight by criterion; the words of a criterion are joined by "_". The first line that
// has a criterion and then a score counts: "Correctness: 0.8", "**Step-by-step clarity** (20 %):
// 8/10", "| precision | 80% |", or a heading with the score on the next line.
JudgeScores read_judge_scores(std::string_view reply, const std::map<std::string, double>& weights);

// The same of a reply in JSON: the members of its object with the criteria's names, each a number
// from 0 to 1, or a text that read_score() reads.
JudgeScores read_json_scores(std::string_view reply, const std::map<std::string, double>& weights);

// The score at the start of `text`: "0.8", "8/10", "8 out of 10", "80%", possibly with marks around
// it. Returns nullopt for values outside 0 to 1, for ranges, and for numbers that are parts of
// something else.
std::optional<double> read_score(std::string_view text);

}  // namespace convoy::process
