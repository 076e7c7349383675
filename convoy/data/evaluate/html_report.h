// SPDX-License-Identifier: Apache-2.0
//
// An evaluation as one self-contained HTML page: the metrics, the distribution of one metric over
// the rows, and the worst rows by it, side by side. For light and dark screens.
#pragma once

#include <string>
#include <vector>

#include "convoy/data/evaluate/answer_scores.h"

namespace convoy::evaluate {

// The metric that orders the rows of a report. `wanted`: the user's choice; empty = rougeL if
// `measured` has it, else the first of `measured`. Throws ConfigError.
std::string metric_of_report(const std::string& wanted, const std::vector<std::string>& measured);

struct ReportOptions {
  std::string title = {};
  std::string metric = {};  // metric of `scored` that orders the rows
  size_t rows = 50;
};

// The page as text. Every text of the samples is escaped. Rows with equal scores keep their order.
std::string html_report(const ReportOptions& options, const std::vector<ScoredAnswer>& samples,
                        const AnswerScores& scored);

}  // namespace convoy::evaluate
