// SPDX-License-Identifier: Apache-2.0
//
// Samples and all their metrics.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/evaluate/scored_answer.h"
#include "convoy/data/evaluate/text_metrics.h"

namespace convoy::evaluate {

struct AnswerScores {
  std::vector<std::string> metrics;  // names
  std::vector<RowScores> rows;       // by sample
  nlohmann::json figures;            // MetricMeans::json()
};

// Uses all available CPUs. Blocks.
AnswerScores score_answers(const TextMetrics& metrics, const std::vector<ScoredAnswer>& samples);

}  // namespace convoy::evaluate
