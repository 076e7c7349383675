// SPDX-License-Identifier: Apache-2.0
//
// Samples and all their metrics.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/evaluate/sample.h"
#include "convoy/data/evaluate/text_metrics.h"

namespace convoy::evaluate {

struct ScoredSamples {
  std::vector<std::string> metrics;  // names
  std::vector<RowScores> rows;       // by sample
  nlohmann::json figures;            // MetricMeans::json()
};

// Uses all available CPUs. Blocks.
ScoredSamples score_samples(const TextMetrics& metrics, const std::vector<Sample>& samples);

}  // namespace convoy::evaluate
