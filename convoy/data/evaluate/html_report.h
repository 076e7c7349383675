// SPDX-License-Identifier: Apache-2.0
//
// An evaluation as one HTML page that asks for nothing else: the figures, how one metric spreads
// over the rows, and the rows that are worst by it, side by side. For light and dark screens.
#pragma once

#include <string>
#include <vector>

#include "convoy/data/evaluate/scored_samples.h"

namespace convoy::evaluate {

// The metric that a report of `measured` is ordered by. `wanted` empty: rougeL, else the first.
// Throws ConfigError.
std::string metric_of_report(const std::string& wanted, const std::vector<std::string>& measured);

struct ReportOptions {
  std::string title = {};
  std::string metric = {};  // of `scored`: orders the rows
  size_t rows = 50;
};

// Every text of the samples is shown as text. Rows that are equally bad keep their order.
std::string html_report(const ReportOptions& options, const std::vector<Sample>& samples,
                        const ScoredSamples& scored);

}  // namespace convoy::evaluate
