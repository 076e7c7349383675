// SPDX-License-Identifier: Apache-2.0
//
// The scores of samples in all metrics.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/evaluate/scored_answer.h"
#include "convoy/data/evaluate/text_metrics.h"

namespace convoy::evaluate {

struct AnswerScores {
  std::vector<std::string> metrics;  // names of the metrics
  std::vector<RowScores> rows;       // scores by sample
  nlohmann::json figures;            // see MetricMeans::json()
};

// Scores all samples, on all available CPUs. Blocks.
AnswerScores score_answers(const TextMetrics& metrics, const std::vector<ScoredAnswer>& samples);

}  // namespace convoy::evaluate
